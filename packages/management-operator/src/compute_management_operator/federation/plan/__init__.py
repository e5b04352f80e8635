"""Decides what is done about one project deployment on the hub. Pure (management.md 4).

The ladder is here; each longer rung has a page of its own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_management_operator import hub_indexes
from compute_management_operator.federation.observe import Deployment, Seen, read_recorded
from compute_management_operator.federation.plan import copying, finalizing, orphans
from compute_management_operator.federation.plan.holding import HOLD, tell_once
from compute_management_operator.federation.plan.hub_namespace import plan_namespace
from compute_management_operator.kinds import POLICY
from compute_management_operator.plane_names import HUB
from compute_operator_kit.intents import AddFinalizer, Plan, Wait
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent

__all__: Final = ["plan", "policies_to_wake"]


def plan(seen: Seen, now: datetime) -> Plan:
    deployment = seen.deployment
    if isinstance(deployment, Absent):
        # Nobody asks for it any more; copies are left only if a finalizer was stripped.
        return orphans.plan_orphans(seen)
    if deployment.metadata.is_deleting:
        return finalizing.finalize(seen, deployment, now)
    if not names.is_routable_city(deployment.city_code):
        # No label can carry it, so no policy can ever select it; admission was bypassed.
        return _refuse(seen, deployment)
    if not seen.hub_name:
        # Its namespace is gone: the deployment is on its way out too, and its event will tell.
        return Plan()
    if not is_recorded(seen, deployment):
        # Nothing is written on the hub before what finds and removes it again is stored.
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
        # The hub namespace is not there, not whole or not ours: nothing is written into it.
        return blocked
    return copying.plan_copy(seen, deployment, now)


def is_recorded(seen: Seen, deployment: Deployment) -> bool:
    """Whether finalizer and hub namespace are stored on the deployment."""
    has_finalizer = labels.FEDERATION_FINALIZER in deployment.metadata.finalizers
    return has_finalizer and read_recorded(deployment) == seen.hub_name


def policies_to_wake(seen: Seen) -> tuple[ObjectKey, ...]:
    """Policy keys that look again because of this pass: policies that are missing, or of a copy
    that goes.
    """
    if not seen.hub_name or isinstance(seen.deployment, Absent):
        return ()
    codes = {seen.deployment.city_code, seen.known.deleted_code}
    if not isinstance(seen.copy, Absent):
        codes.add(seen.copy.routed_to)
    is_going = seen.deployment.metadata.is_deleting
    named = {policy.code for policy in seen.policies}
    bases = {
        hub_indexes.derive_base(code)
        for code in codes
        if is_going or code not in named or code != seen.deployment.city_code
    }
    return tuple(ObjectKey(HUB, POLICY, seen.hub_name, base) for base in sorted(bases - {""}))


def _refuse(seen: Seen, deployment: Deployment) -> Plan:
    message = f'City code "{deployment.city_code}" cannot be routed: it must be a label value'
    told = tell_once(seen, deployment.metadata.uid, reasons.FEDERATION_REFUSED, message)
    return Plan((*told, Wait(seen.key, reasons.FEDERATION_REFUSED, HOLD)))
