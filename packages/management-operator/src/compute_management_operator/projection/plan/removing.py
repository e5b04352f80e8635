"""Takes a projection away whose source is gone. Pure (management.md 8.4).

The hub itself must say that the source is gone, the project namespace must be the very one that the
hub namespace is named after, and the object must be a projection. Where nobody saw the source go,
many at once are held back.
"""

from __future__ import annotations

from compute_api_types import reasons
from compute_management_operator.identities import Place, Standing, judge_standing
from compute_management_operator.kinds import DEPLOYMENT
from compute_management_operator.projection.observe import Instance, Seen
from compute_operator_kit.intents import Delete, Emit, IfGone, Intent, Plan, Wait
from compute_operator_kit.keys import Uid
from compute_operator_kit.mass_delete import Held
from compute_operator_kit.objects import Metadata


def remove(seen: Seen) -> Plan:
    found = seen.found
    if seen.place is None or not isinstance(found, Instance) or found.metadata.is_deleting:
        # No projection, or nobody to ask: engagement brings everything back.
        return Plan()
    if seen.namespace_uid != seen.hub_uid or not is_projection(found.metadata, seen.place):
        # Of another life of the namespace, or somebody's own Instance.
        return Plan()
    if isinstance(seen.ruling, Held):
        return Plan((*_refusal(seen, seen.ruling), _again(seen, seen.ruling)))
    gone = IfGone(seen.key)
    return Plan.of(Delete(found.key, found.metadata.uid, reasons.NOT_WANTED, if_gone=gone))


def is_projection(found: Metadata, place: Place) -> bool:
    """Both identity labels name its own project and namespace, or its only owner is a
    deployment.
    """
    if judge_standing(found, place) is Standing.OURS:
        return True
    owners = found.owners
    return len(owners) == 1 and owners[0].kind == DEPLOYMENT.kind and not owners[0].controller


def _again(seen: Seen, ruling: Held) -> Wait:
    return Wait(seen.key, reasons.MASS_DELETE_REFUSED, ruling.wait)


def _refusal(seen: Seen, ruling: Held) -> tuple[Intent, ...]:
    if not ruling.is_news or seen.operator is None:
        return ()
    message = (
        f"{ruling.missing} of {ruling.total} projected Instances of a project have no source on "
        "the hub; they are removed when a second look agrees"
    )
    return (
        Emit(
            seen.operator,
            Uid(""),
            reasons.MASS_DELETE_REFUSED,
            message,
            "RemovingProjections",
            type="Warning",
        ),
    )
