"""Takes a deployment off the hub before it goes from the project. Pure (management.md 4, Finalize).

Nothing is deleted on the word of an annotation: the hub namespace follows from the UID of the
project namespace, or its own labels prove the recorded one. The finalizer goes last, and only after
the hub itself says that the copy is gone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, names, reasons
from compute_management_operator.federation.observe import Deployment, Seen
from compute_management_operator.federation.plan.copying import find_policy
from compute_management_operator.federation.plan.holding import (
    RETRY_IDENTITY,
    STEP,
    tell_once,
)
from compute_management_operator.federation.plan.hub_namespace import (
    hold_conflict,
    label_namespace,
    resolve_conflict,
)
from compute_management_operator.identities import Standing, judge_standing
from compute_operator_kit.clock import age_of
from compute_operator_kit.intents import Delete, IfGone, Intent, Plan, RemoveFinalizer, Wait
from compute_operator_kit.objects import Absent, Metadata

LATE_AFTER: Final = timedelta(minutes=5)  # management.md 15, FederationReleaseDelayed


def finalize(seen: Seen, deployment: Deployment, now: datetime) -> Plan:
    if labels.FEDERATION_FINALIZER not in deployment.metadata.finalizers:
        return Plan()
    if seen.fresh.hub_namespace is None:
        # It began to go while we asked; nothing was asked for this, and its event brings us back.
        return Plan()
    if not seen.hub_name:
        # Neither the project nor the deployment says where its copy was.
        return _held(seen, deployment, _unresolved(seen, deployment), now)
    if isinstance(seen.hub_namespace, Absent):
        # Without its namespace there is no copy.
        return Plan.of(_release(seen, deployment))
    blocked = _plan_identity(seen, deployment, seen.hub_namespace)
    if blocked is not None:
        # Whose namespace this is cannot be proven, or is being put right first.
        return _held(seen, deployment, blocked, now)
    if not isinstance(seen.copy, Absent):
        return _held(seen, deployment, _remove_copy(seen, seen.copy), now)
    if _has_needless_policy(seen, deployment):
        # Its key has been woken; its event, or the next step, finds it going.
        waits = Plan.of(Wait(seen.key, reasons.POLICY_STILL_THERE, STEP))
        return _held(seen, deployment, waits, now)
    return Plan.of(_release(seen, deployment))


def _unresolved(seen: Seen, deployment: Deployment) -> Plan:
    message = "Its namespace is gone and nothing says where its copy on the hub is"
    reason = reasons.FEDERATION_NAMESPACE_UNRESOLVED
    told = tell_once(seen, deployment.metadata.uid, reason, message)
    return Plan((*told, Wait(seen.key, reason, RETRY_IDENTITY)))


def _plan_identity(seen: Seen, deployment: Deployment, found: Metadata) -> Plan | None:
    standing = judge_standing(found, seen.place)
    if standing is Standing.OURS:
        return None
    uid = deployment.metadata.uid
    if isinstance(seen.fresh.namespace, Absent) or found.is_deleting:
        # Only the labels could prove a recorded place, and they do not.
        return hold_conflict(seen, uid)
    if standing is Standing.INCOMPLETE:
        return label_namespace(seen, found)
    return resolve_conflict(seen, found, uid)


def _remove_copy(seen: Seen, copy: Deployment) -> Plan:
    waits = Wait(seen.key, reasons.STILL_TERMINATING, STEP)
    if copy.metadata.is_deleting:
        return Plan.of(waits)
    return Plan.of(Delete(copy.key, copy.metadata.uid, reasons.NOT_WANTED), waits)


def _has_needless_policy(seen: Seen, deployment: Deployment) -> bool:
    """Whether a live policy is left that only this deployment needed."""
    code = seen.known.deleted_code or deployment.city_code
    if not names.is_routable_city(code) or code in seen.needed_by_others:
        return False
    return find_policy(seen, code) is not None


def _release(seen: Seen, deployment: Deployment) -> RemoveFinalizer:
    return RemoveFinalizer(
        seen.key,
        deployment.metadata.uid,
        labels.FEDERATION_FINALIZER,
        reasons.FINALIZER_DONE,
        if_gone=IfGone(seen.copy_key),
    )


def _held(seen: Seen, deployment: Deployment, plan: Plan, now: datetime) -> Plan:
    """Since when the finalizer is held is a situation of its own, told once when it lasts."""
    since = seen.known.since.get(reasons.TERMINATING)
    held: list[Intent] = [Wait(seen.key, reasons.TERMINATING, LATE_AFTER)]
    if since is not None and age_of(since, now) >= LATE_AFTER:
        reason = reasons.FEDERATION_RELEASE_DELAYED
        message = "Removing it from its city takes longer than five minutes"
        held += tell_once(seen, deployment.metadata.uid, reason, message)
        held.append(Wait(seen.key, reason, LATE_AFTER))
    return Plan((*plan.intents, *held))
