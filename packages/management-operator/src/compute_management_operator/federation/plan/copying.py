"""The copy on the hub: created under a live policy, kept equal, replaced when its city changes.
Pure.

Of a copy we own three labels, one annotation and the spec. Everything else on it is Karmada's or
somebody else's: its claim, its status, its finalizers (management.md 4, step 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, reasons
from compute_management_operator import hub_indexes
from compute_management_operator.federation.observe import Deployment, Policy, Seen
from compute_management_operator.federation.plan.holding import ACTION, SAFETY, STEP
from compute_management_operator.identities import (
    IdentityKeys,
    derive_identity,
    derive_missing_identity,
)
from compute_management_operator.kinds import POLICY
from compute_management_operator.plane_names import HUB
from compute_operator_kit.clock import age_of
from compute_operator_kit.intents import Delete, Emit, Ensure, OnlyUnder, Owned, Plan, Wait
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent

# Karmada backs off on the owner UID of a binding that is left over; longer than this it is stuck,
# and waiting longer helps nobody.
LONGEST_FOR_BINDING: Final = timedelta(seconds=60)


def plan_copy(seen: Seen, deployment: Deployment, now: datetime) -> Plan:
    copy = seen.copy
    if isinstance(copy, Absent):
        return _create(seen, deployment, now)
    if copy.metadata.is_deleting:
        # Somebody deleted it, or its city changed: made again once it is gone.
        return Plan.of(Wait(seen.key, reasons.STILL_TERMINATING, SAFETY))
    if copy.routed_to != deployment.city_code:
        # A claimed object whose labels stop matching freezes, so the label is never edited.
        return _reroute(seen, deployment, copy)
    wanted = _wanted(deployment, derive_missing_identity(copy.metadata, seen.place))
    return Plan.of(
        Ensure(
            copy.key,
            wanted,
            reasons.DRIFTED,
            uid=copy.metadata.uid,
            resource_version=copy.metadata.resource_version,
        )
    )


def find_policy(seen: Seen, code: str) -> Policy | None:
    """The live policy that delivers this city."""
    return next((policy for policy in seen.policies if policy.code == code), None)


def derive_lock(hub_name: str, code: str) -> ObjectKey:
    """Who creates a copy and who deletes a policy of the same base exclude each other by this."""
    return ObjectKey(HUB, POLICY, hub_name, hub_indexes.derive_base(code))


def _create(seen: Seen, deployment: Deployment, now: datetime) -> Plan:
    policy = find_policy(seen, deployment.city_code)
    if policy is None:
        # A copy without a policy would be claimed by nobody; the policy's event brings us back.
        return Plan.of(Wait(seen.key, reasons.POLICY_ABSENT, SAFETY))
    if seen.fresh.has_left_over_binding and not _has_waited_enough(seen, now):
        return Plan.of(Wait(seen.key, reasons.BINDING_LEFT_OVER, STEP))
    under = OnlyUnder(policy.key, lock=derive_lock(seen.hub_name, deployment.city_code))
    wanted = _wanted(deployment, derive_identity(seen.place))
    created = Ensure(seen.copy_key, wanted, reasons.NOT_FEDERATED, only_under=under, is_final=True)
    message = f'Delivering to city "{deployment.city_code}"'
    uid = deployment.metadata.uid
    told = Emit(seen.key, uid, reasons.FEDERATED, message, ACTION, after=created)
    return Plan.of(created, told)


def _has_waited_enough(seen: Seen, now: datetime) -> bool:
    since = seen.known.since.get(reasons.BINDING_LEFT_OVER)
    return since is not None and age_of(since, now) >= LONGEST_FOR_BINDING


def _reroute(seen: Seen, deployment: Deployment, copy: Deployment) -> Plan:
    deleted = Delete(copy.key, copy.metadata.uid, reasons.REROUTED)
    message = f'City changed from "{copy.routed_to}" to "{deployment.city_code}"'
    uid = deployment.metadata.uid
    told = Emit(seen.key, uid, reasons.REROUTED, message, ACTION, after=deleted)
    return Plan.of(deleted, told, Wait(seen.key, reasons.STILL_TERMINATING, SAFETY))


def _wanted(deployment: Deployment, identity: IdentityKeys) -> Owned:
    metadata = deployment.metadata
    passed_on: Mapping[str, str | None] = {
        key: metadata.annotations.get(key) for key in labels.PASSED_ON_ANNOTATIONS
    }
    return Owned(
        labels={labels.TOPOLOGY_CITY_CODE: deployment.city_code, **identity.labels},
        annotations={
            **passed_on,
            **identity.annotations,
            # Travels with the spec in one request: it says which generation the spec is.
            labels.PROJECT_GENERATION: str(metadata.generation),
        },
        whole={"spec": deployment.whole_spec},
    )
