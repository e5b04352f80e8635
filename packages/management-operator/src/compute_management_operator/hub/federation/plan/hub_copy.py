"""The copy on the hub: created under a live policy, kept equal, replaced when its city changes.
Pure.

Three labels, the annotations of `_desired` and the spec of a copy are ours. Everything else has
other writers, Karmada among them: its claim, its status, its finalizers (management.md 4, step 8).
Written too, they would be overwritten in turn for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from compute_api_types import labels, reasons
from compute_management_operator.hub import indexes
from compute_management_operator.hub.delays import LONGEST_FOR_BINDING, LOST_EVENT, STEP
from compute_management_operator.hub.federation.observe import (
    CopyPolicy,
    ObservedDeployment,
    ProjectDeployment,
)
from compute_management_operator.hub.federation.plan.events import ACTION
from compute_management_operator.hub.identity import (
    IdentityKeys,
    derive_identity,
    derive_missing_identity,
)
from compute_management_operator.planes import HUB, POLICY
from compute_operator_kit.core.clock import ZERO, age_of
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireExists,
)


def plan_copy(seen: ObservedDeployment, deployment: ProjectDeployment, now: datetime) -> Plan:
    copy = seen.copy
    if isinstance(copy, Absent):
        return _await_data(seen) or _create(seen, deployment, now)
    if copy.metadata.is_deleting:
        # Deleted by another client, or for a change of its city: recreated once it is gone.
        return Plan.of(RequeueAfter(seen.key, reasons.STILL_TERMINATING, LOST_EVENT))
    if copy.routed_to != deployment.city_code:
        # Karmada freezes a claimed object when its labels stop matching: replaced, never edited.
        return _reroute(seen, deployment, copy)
    waiting = _await_data(seen)
    if waiting is not None:
        return waiting
    identity = derive_missing_identity(copy.metadata, seen.project_namespace)
    desired = _desired(seen, deployment, identity)
    return Plan.of(
        Ensure(
            copy.key,
            desired,
            reasons.DRIFTED,
            uid=copy.metadata.uid,
            resource_version=copy.metadata.resource_version,
        )
    )


def find_policy(seen: ObservedDeployment, code: str) -> CopyPolicy | None:
    """The live policy that delivers this city."""
    return next((policy for policy in seen.policies if policy.code == code), None)


def derive_lock(hub_name: str, code: str) -> ObjectKey:
    """The lock between the creation of a copy and the deletion of a policy of the same base."""
    return ObjectKey(HUB, POLICY, hub_name, indexes.derive_base(code))


def _await_data(seen: ObservedDeployment) -> Plan | None:
    """A new generation waits for the verdicts about its data, which enqueue the key."""
    data = seen.live.data
    if data is None or data.awaited <= ZERO:
        return None
    return Plan.of(RequeueAfter(seen.key, reasons.RESOLVING, data.awaited))


def _create(seen: ObservedDeployment, deployment: ProjectDeployment, now: datetime) -> Plan:
    policy = find_policy(seen, deployment.city_code)
    if policy is None:
        # No cluster would receive a copy without a policy; the policy's event enqueues the key.
        return Plan.of(RequeueAfter(seen.key, reasons.POLICY_ABSENT, LOST_EVENT))
    if seen.live.has_left_over_binding and not _has_waited_enough(seen, now):
        return Plan.of(RequeueAfter(seen.key, reasons.BINDING_LEFT_OVER, STEP))
    under = RequireExists(policy.key, lock=derive_lock(seen.hub_name, deployment.city_code))
    desired = _desired(seen, deployment, derive_identity(seen.project_namespace))
    created = Ensure(
        seen.copy_key, desired, reasons.NOT_FEDERATED, requires=under, ignore_own_event=True
    )
    message = f'Delivering to city "{deployment.city_code}"'
    uid = deployment.metadata.uid
    event = RecordEvent(seen.key, uid, reasons.FEDERATED, message, ACTION, after=created)
    return Plan.of(created, event)


def _has_waited_enough(seen: ObservedDeployment, now: datetime) -> bool:
    since = seen.known.since.get(reasons.BINDING_LEFT_OVER)
    return since is not None and age_of(since, now) >= LONGEST_FOR_BINDING


def _reroute(
    seen: ObservedDeployment, deployment: ProjectDeployment, copy: ProjectDeployment
) -> Plan:
    deleted = Delete(copy.key, copy.metadata.uid, reasons.REROUTED)
    message = f'City changed from "{copy.routed_to}" to "{deployment.city_code}"'
    uid = deployment.metadata.uid
    event = RecordEvent(seen.key, uid, reasons.REROUTED, message, ACTION, after=deleted)
    return Plan.of(deleted, event, RequeueAfter(seen.key, reasons.STILL_TERMINATING, LOST_EVENT))


def is_suspended(seen: ObservedDeployment, deployment: ProjectDeployment) -> bool:
    """Two sources, one lock each: the Project's condition, and the deployment's own annotation.

    While the root does not show the Project, a copy stays as it is: nothing starts or stops without
    evidence (suspension.md 3).
    """
    if labels.is_suspended(deployment.metadata.annotations) or seen.is_project_suspended:
        return True
    if seen.is_project_suspended is False or isinstance(seen.copy, Absent):
        return False
    return labels.is_suspended(seen.copy.metadata.annotations)


def _desired(
    seen: ObservedDeployment, deployment: ProjectDeployment, identity: IdentityKeys
) -> OwnedFields:
    metadata = deployment.metadata
    passed_on: Mapping[str, str | None] = {
        key: metadata.annotations.get(key) for key in labels.PASSED_ON_ANNOTATIONS
    }
    return OwnedFields(
        labels={labels.TOPOLOGY_CITY_CODE: deployment.city_code, **identity.labels},
        annotations={
            **passed_on,
            # What a tenant wrote under these names is replaced.
            **({} if seen.live.data is None else seen.live.data.annotations),
            labels.SUSPENDED: labels.IS_SUSPENDED if is_suspended(seen, deployment) else None,
            **identity.annotations,
            # Written with the spec in one request: the generation in the project of that spec.
            labels.PROJECT_GENERATION: str(metadata.generation),
        },
        replace={"spec": deployment.whole_spec},
    )
