"""Writes of the number of replicas: `SetScale` patches the `scale` subresource if it differs.

The subresource needs a right of its own, so that whoever sets the number of a workload need not be
able to write its spec. Written past it, the number would need the right to the whole object.
"""

from __future__ import annotations

from compute_operator_kit.apply.context import ApplyContext, moved_on, test_of
from compute_operator_kit.core.json import member_object
from compute_operator_kit.core.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.intents import SetScale
from compute_operator_kit.intents.outcomes import Effect, Outcome

_REPLICAS = pointer("spec", "replicas")


async def set_scale(context: ApplyContext, intent: SetScale) -> Outcome:
    existing = await context.find_same(intent.key, intent.uid)
    if _has_number(existing, intent):
        return Outcome(intent, Effect.EQUAL)
    context.log_write("Setting scale", intent, [_REPLICAS])
    steps = (
        test_of(intent.uid, "metadata", "uid"),
        PatchStep(PatchOp.ADD, _REPLICAS, intent.replicas),
    )
    answer = await context.or_read(
        context.kube_to_write(intent.key).patch_json(intent.key, steps, subresource="scale"),
        intent.key,
        is_done=lambda live: isinstance(live, Snapshot) and _has_number(live, intent),
    )
    if isinstance(answer, Absent):
        raise moved_on(intent.key)
    # The answer is a Scale with the version of the object: the key is held until the cache has it.
    context.expectations.expect_written(context.root, answer)
    return Outcome(intent, Effect.WRITTEN)


def _has_number(existing: Snapshot, intent: SetScale) -> bool:
    return member_object(existing.read(), "spec").get("replicas") == intent.replicas
