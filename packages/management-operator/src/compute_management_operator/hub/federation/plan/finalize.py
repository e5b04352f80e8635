"""The copy of a deployment that is being deleted, removed from the hub before the finalizer. Pure
(management.md 4, Finalize).

An annotation alone, which a user can forge, deletes nothing: the hub namespace follows from the UID
of the project namespace, or its labels prove the recorded one. The finalizer is removed last, after
a live read of the hub has shown that the copy does not exist.
"""

from __future__ import annotations

from datetime import datetime

from compute_api_types import labels, names, reasons
from compute_management_operator.hub.delays import IDENTITY_RETRY, RELEASE_LATE_AFTER, STEP
from compute_management_operator.hub.federation.observe import ObservedDeployment, ProjectDeployment
from compute_management_operator.hub.federation.plan.events import warn_once
from compute_management_operator.hub.federation.plan.hub_copy import find_policy
from compute_management_operator.hub.federation.plan.hub_namespace import (
    hold_conflict,
    label_namespace,
    resolve_conflict,
)
from compute_management_operator.hub.identity import IdentityMatch, match_identity
from compute_operator_kit.core.clock import age_of
from compute_operator_kit.core.objects import Absent, Metadata
from compute_operator_kit.intents.intents import (
    Delete,
    Intent,
    Plan,
    RemoveFinalizer,
    RequeueAfter,
    RequireGone,
)


def finalize(seen: ObservedDeployment, deployment: ProjectDeployment, now: datetime) -> Plan:
    if labels.FEDERATION_FINALIZER not in deployment.metadata.finalizers:
        return Plan()
    if seen.live.hub_namespace is None:
        # Its deletion began after the live reads, which did not cover it; its event enqueues it.
        return Plan()
    if not seen.hub_name:
        # Neither the project nor the deployment names the hub namespace of the copy.
        return _held(seen, deployment, _unresolved(seen, deployment), now)
    if isinstance(seen.hub_namespace, Absent):
        # Without the hub namespace there is no copy.
        return Plan.of(_release(seen, deployment))
    blocked = _plan_identity(seen, deployment, seen.hub_namespace)
    if blocked is not None:
        # The labels of the hub namespace do not prove it ours, or are repaired first.
        return _held(seen, deployment, blocked, now)
    if not isinstance(seen.copy, Absent):
        return _held(seen, deployment, _remove_copy(seen, seen.copy), now)
    if _has_needless_policy(seen, deployment):
        # Its key has been enqueued; its event, or the next step, shows its deletion.
        waits = Plan.of(RequeueAfter(seen.key, reasons.POLICY_STILL_THERE, STEP))
        return _held(seen, deployment, waits, now)
    return Plan.of(_release(seen, deployment))


def _unresolved(seen: ObservedDeployment, deployment: ProjectDeployment) -> Plan:
    message = "Its namespace is gone and nothing says where its copy on the hub is"
    reason = reasons.FEDERATION_NAMESPACE_UNRESOLVED
    warned = warn_once(seen, deployment.metadata.uid, reason, message)
    return Plan((*warned, RequeueAfter(seen.key, reason, IDENTITY_RETRY)))


def _plan_identity(
    seen: ObservedDeployment, deployment: ProjectDeployment, hub_namespace: Metadata
) -> Plan | None:
    match = match_identity(hub_namespace, seen.project_namespace)
    if match is IdentityMatch.OURS:
        return None
    uid = deployment.metadata.uid
    if isinstance(seen.live.namespace, Absent) or hub_namespace.is_deleting:
        # Only the labels could prove a recorded hub namespace, and they do not.
        return hold_conflict(seen, uid)
    if match is IdentityMatch.INCOMPLETE:
        return label_namespace(seen, hub_namespace)
    return resolve_conflict(seen, hub_namespace, uid)


def _remove_copy(seen: ObservedDeployment, copy: ProjectDeployment) -> Plan:
    waits = RequeueAfter(seen.key, reasons.STILL_TERMINATING, STEP)
    if copy.metadata.is_deleting:
        return Plan.of(waits)
    return Plan.of(Delete(copy.key, copy.metadata.uid, reasons.NOT_WANTED), waits)


def _has_needless_policy(seen: ObservedDeployment, deployment: ProjectDeployment) -> bool:
    """Whether a live policy exists that only this deployment needed."""
    code = seen.known.deleted_code or deployment.city_code
    if not names.is_routable_city(code) or code in seen.needed_by_others:
        return False
    return find_policy(seen, code) is not None


def _release(seen: ObservedDeployment, deployment: ProjectDeployment) -> RemoveFinalizer:
    return RemoveFinalizer(
        seen.key,
        deployment.metadata.uid,
        labels.FEDERATION_FINALIZER,
        reasons.FINALIZER_DONE,
        require_gone=RequireGone(seen.copy_key),
    )


def _held(
    seen: ObservedDeployment, deployment: ProjectDeployment, plan: Plan, now: datetime
) -> Plan:
    """The plan with the wait of the held finalizer, and an event once where it is late."""
    since = seen.known.since.get(reasons.TERMINATING)
    held: list[Intent] = [RequeueAfter(seen.key, reasons.TERMINATING, RELEASE_LATE_AFTER)]
    if since is not None and age_of(since, now) >= RELEASE_LATE_AFTER:
        reason = reasons.FEDERATION_RELEASE_DELAYED
        message = "Removing it from its city takes longer than five minutes"
        held += warn_once(seen, deployment.metadata.uid, reason, message)
        held.append(RequeueAfter(seen.key, reason, RELEASE_LATE_AFTER))
    return Plan((*plan.intents, *held))
