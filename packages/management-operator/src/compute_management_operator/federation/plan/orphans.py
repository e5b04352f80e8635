"""Copies whose deployment is gone: somebody stripped the finalizer. Pure (management.md 4, Orphan).

Removed only on proof of everything: we made it, its namespace stands for this project namespace and
for no other, and the project itself says that the deployment is gone. Less than that is left where
it is and counted.
"""

from __future__ import annotations

from compute_api_types import labels, reasons
from compute_management_operator.federation.observe import Deployment, Seen
from compute_management_operator.federation.plan.holding import ACTION, HOLD
from compute_management_operator.identities import Standing, judge_standing
from compute_operator_kit.intents import Delete, Emit, IfGone, Intent, Plan, Wait
from compute_operator_kit.keys import Uid
from compute_operator_kit.mass_delete import Held
from compute_operator_kit.objects import Absent


def plan_orphans(seen: Seen) -> Plan:
    if seen.fresh.hub_namespace is None:
        # It went while we asked; nothing was asked for this, and its event brings us back.
        return Plan()
    left = Wait(seen.key, reasons.ORPHANED, HOLD)
    if isinstance(seen.copy, Absent):
        # What names this deployment from elsewhere cannot be proven ours.
        return Plan.of(left) if seen.strays else Plan()
    if seen.copy.metadata.is_deleting:
        return Plan()
    if not is_proven(seen, seen.copy):
        return Plan.of(left)
    ruling = seen.fresh.ruling
    if isinstance(ruling, Held):
        # Too many at once: an empty plane looks just like this.
        return Plan((*_refusal(seen, ruling), left, _again(seen, ruling)))
    gone = IfGone(seen.key)
    copy = seen.copy
    return Plan.of(Delete(copy.key, copy.metadata.uid, reasons.ORPHANED, if_gone=gone))


def is_proven(seen: Seen, copy: Deployment) -> bool:
    """Whether the copy is ours to remove; the UID follows from `hub_name`, which was read fresh."""
    if isinstance(seen.hub_namespace, Absent) or not isinstance(seen.fresh.namespace, str):
        return False
    is_labelled = judge_standing(seen.hub_namespace, seen.place) is Standing.OURS
    return is_labelled and labels.PROJECT_GENERATION in copy.metadata.annotations


def _again(seen: Seen, ruling: Held) -> Wait:
    return Wait(seen.key, reasons.MASS_DELETE_REFUSED, ruling.wait)


def _refusal(seen: Seen, ruling: Held) -> tuple[Intent, ...]:
    if not ruling.is_news or seen.known.operator is None:
        return ()
    message = (
        f"{ruling.missing} of {ruling.total} deployments of a project are on the hub and not in "
        "the project; they are removed when a second look agrees"
    )
    return (
        Emit(
            seen.known.operator,
            Uid(""),
            reasons.MASS_DELETE_REFUSED,
            message,
            ACTION,
            type="Warning",
        ),
    )
