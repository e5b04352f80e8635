"""Everything that is decided about one deployment in one pass, for `apply` and for the status.
Pure (cell.md 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, assert_never

from compute_api_types import labels, reasons
from compute_cell_operator.deployment.observe import Seen
from compute_cell_operator.deployment.plan import Demand, Step, plan_instances
from compute_cell_operator.deployment.plan.location import (
    Located,
    Resolution,
    Undecided,
    WrongCity,
    location_name,
    resolve,
)
from compute_cell_operator.deployment.plan.repairs import plan_gates, plan_repairs
from compute_cell_operator.deployment.plan.steps import Create, Hold, Purpose, Remove, Wait
from compute_cell_operator.deployment.plan.wanted import build_instance, refer_to_owner
from compute_cell_operator.network import plan as network
from compute_cell_operator.network.state import State
from compute_operator_kit import intents
from compute_operator_kit.intents import Delete, Emit, Intent, Plan, RemoveFinalizer
from compute_operator_kit.objects import Unreadable

ACTION: Final = "ReconcilingInstances"
# Not the way it usually goes on: caches that become readable wake the key.
RETRY_UNREADABLE: Final = timedelta(seconds=30)

_REASONS: Final = {
    Purpose.SURPLUS: reasons.SURPLUS,
    Purpose.RECREATE: reasons.STALE_TEMPLATE,
    Purpose.DELETING: reasons.NOT_WANTED,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a pass does, and what it rests on."""

    resolution: Resolution
    steps: tuple[Step, ...]
    readiness: network.Readiness | None  # None: not judged in this pass
    plan: Plan


def decide(seen: Seen) -> Decision:
    resolution = resolve(seen)
    demand = Demand(
        seen.desired,
        is_deleting=seen.is_deleting,
        is_wrong_city=isinstance(resolution, WrongCity),
    )
    steps = plan_instances(seen.slots, demand)
    acts = tuple(_carry_out(seen, steps, resolution))
    if seen.is_deleting:
        # Nothing is made, mended or waited for: what is left goes by ownership.
        return Decision(resolution, steps, None, Plan((*acts, *_retire_finalizers(seen))))
    judged = _judge_network(seen, resolution)
    readiness = judged.readiness if judged is not None else None
    gates = plan_gates(seen, resolution, readiness or network.Waiting(""))
    asked = judged.intents if judged is not None else ()
    waits = _waits(seen, resolution)
    plan = Plan((*acts, *plan_repairs(seen, resolution), *asked, *gates, *waits))
    return Decision(resolution, steps, readiness, plan)


def _carry_out(seen: Seen, steps: tuple[Step, ...], resolution: Resolution) -> Iterator[Intent]:
    for step in steps:
        match step:
            case Create(ordinal):
                if seen.networking is State.UNKNOWN:
                    continue  # whether it needs a Network gate is not known yet
                yield build_instance(
                    seen,
                    ordinal,
                    location=location_name(resolution),
                    has_network_gate=seen.networking is State.ON,
                )
            case Remove(candidate, purpose):
                yield from _remove(seen, candidate.name, purpose)
            case Wait() | Hold():
                continue  # whatever they wait for wakes the key
            case _:
                assert_never(step)


def _remove(seen: Seen, name: str, purpose: Purpose) -> Iterator[Intent]:
    found = seen.instances[name]
    removal = Delete(found.key, found.metadata.uid, _REASONS[purpose])
    yield removal
    if purpose is Purpose.RECREATE:
        yield Emit(
            seen.key,
            seen.metadata.uid,
            reasons.INSTANCE_REPLACED,
            f'Instance "{name}" is replaced to run the current template',
            ACTION,
            after=removal,
        )


def _retire_finalizers(seen: Seen) -> Iterator[RemoveFinalizer]:
    """Of an older operator, once what they stood for is done: no Instance of it is left."""
    if not seen.metadata.is_deleting or seen.owned:
        return
    for finalizer in labels.RETIRED_DEPLOYMENT_FINALIZERS:
        if finalizer in seen.metadata.finalizers:
            yield RemoveFinalizer(seen.key, seen.metadata.uid, finalizer, reasons.RETIRED_FINALIZER)


def _judge_network(seen: Seen, resolution: Resolution) -> network.NetworkPlan | None:
    if not isinstance(resolution, Located) or isinstance(seen.network, Unreadable):
        return None
    demand = network.Demand(
        seen.key,
        refer_to_owner(seen),
        resolution.name,
        max((found.interfaces for found in seen.owned), default=0),
    )
    return network.plan_network(seen.network, demand)


def _waits(seen: Seen, resolution: Resolution) -> Iterator[Intent]:
    if isinstance(resolution, Undecided) or isinstance(seen.network, Unreadable):
        yield intents.Wait(seen.key, reasons.CACHE_NOT_SYNCED, RETRY_UNREADABLE)
