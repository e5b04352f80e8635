"""The plan for one project deployment on the hub. Pure (management.md 4).

The ladder of situations is here, each longer one has a module of its own. Its order is the safety
rule: the hub is not written before the finalizer that removes the copy again is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from compute_api_types import conditions, labels, names, reasons
from compute_management_operator.hub import indexes
from compute_management_operator.hub.delays import UNTIL_RESYNC
from compute_management_operator.hub.federation.observe import (
    ObservedDeployment,
    ProjectDeployment,
    read_recorded,
)
from compute_management_operator.hub.federation.plan import finalize, hub_copy, orphans
from compute_management_operator.hub.federation.plan.events import warn_once
from compute_management_operator.hub.federation.plan.hub_namespace import plan_namespace
from compute_management_operator.planes import HUB, POLICY
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import AddFinalizer, Plan, RemoveFinalizer, RequeueAfter

__all__: Final = ["plan", "policies_to_enqueue"]


def plan(seen: ObservedDeployment, now: datetime) -> Plan:
    retired = tuple(_retire_finalizers(seen))
    planned = _plan(seen, now)
    # Last: a project that refuses writes must not keep a copy from its hub.
    return Plan((*planned.intents, *retired)) if retired else planned


def _retire_finalizers(seen: ObservedDeployment) -> Iterator[RemoveFinalizer]:
    """The finalizer of an older operator: without that operator it would block the deletion, and a
    companion goes with its owners.
    """
    if isinstance(seen.deployment, Absent):
        return
    metadata = seen.deployment.metadata
    if labels.REFERENCED_DATA_FINALIZER in metadata.finalizers:
        yield RemoveFinalizer(
            seen.key, metadata.uid, labels.REFERENCED_DATA_FINALIZER, reasons.RETIRED_FINALIZER
        )


def _plan(seen: ObservedDeployment, now: datetime) -> Plan:
    deployment = seen.deployment
    if isinstance(deployment, Absent):
        # Copies without a deployment exist only if the finalizer was stripped.
        return orphans.plan_orphans(seen)
    if deployment.metadata.is_deleting:
        return finalize.finalize(seen, deployment, now)
    if not names.is_routable_city(deployment.city_code):
        # No label can carry it, so no policy can ever select it; admission was bypassed.
        code = deployment.city_code
        message = f'City code "{code}" cannot be routed: it must be a label value'
        return _refuse(seen, deployment, message)
    if deployment.refusal:
        # Karmada could not bring it into a cell; an earlier copy stays as it is.
        return _refuse(seen, deployment, conditions.derive_message(deployment.refusal))
    if not seen.hub_name:
        # Its namespace does not exist any more: the deployment's own deletion is about to arrive.
        return Plan()
    if not is_recorded(seen, deployment):
        # Stored before the hub is written: by both the copy is found and removed again.
        return Plan.of(
            AddFinalizer(
                seen.key,
                deployment.metadata.uid,
                labels.FEDERATION_FINALIZER,
                reasons.FINALIZER_MISSING,
                annotations={labels.FEDERATION_NAMESPACE: seen.hub_name},
            )
        )
    blocked = plan_namespace(seen, deployment.metadata.uid)
    if blocked is not None:
        # The hub namespace is absent, incomplete or not ours: nothing is written into it.
        return blocked
    return hub_copy.plan_copy(seen, deployment, now)


def is_recorded(seen: ObservedDeployment, deployment: ProjectDeployment) -> bool:
    """Whether finalizer and hub namespace are stored on the deployment."""
    has_finalizer = labels.FEDERATION_FINALIZER in deployment.metadata.finalizers
    return has_finalizer and read_recorded(deployment) == seen.hub_name


def policies_to_enqueue(seen: ObservedDeployment) -> tuple[ObjectKey, ...]:
    """Policy keys that this reconcile enqueues: of policies that are missing, and of a copy that is
    being deleted.
    """
    if not seen.hub_name or isinstance(seen.deployment, Absent):
        return ()
    codes = {seen.deployment.city_code, seen.known.deleted_code}
    if not isinstance(seen.copy, Absent):
        codes.add(seen.copy.routed_to)
    is_deleting = seen.deployment.metadata.is_deleting
    named = {policy.code for policy in seen.policies}
    bases = {
        indexes.derive_base(code)
        for code in codes
        if is_deleting or code not in named or code != seen.deployment.city_code
    }
    return tuple(ObjectKey(HUB, POLICY, seen.hub_name, base) for base in sorted(bases - {""}))


def _refuse(seen: ObservedDeployment, deployment: ProjectDeployment, message: str) -> Plan:
    warned = warn_once(seen, deployment.metadata.uid, reasons.FEDERATION_REFUSED, message)
    return Plan((*warned, RequeueAfter(seen.key, reasons.FEDERATION_REFUSED, UNTIL_RESYNC)))
