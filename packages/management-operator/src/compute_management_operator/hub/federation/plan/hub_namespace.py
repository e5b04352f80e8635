"""The hub namespace of a project namespace: created, labelled, repaired, or left alone. Pure.

Its name carries the UID of the project namespace, so it is ours by name. Other components read its
labels: one that names another project is a conflict, which is repaired a few times and then
reported, or two writers would overwrite each other for ever (management.md 4, step 6).
"""

from __future__ import annotations

from compute_api_types import labels, reasons
from compute_management_operator.hub.delays import IDENTITY_RETRY, LOST_EVENT
from compute_management_operator.hub.federation.observe import ObservedDeployment
from compute_management_operator.hub.federation.plan.events import warn_once
from compute_management_operator.hub.identity import (
    IdentityMatch,
    derive_identity,
    derive_missing_identity,
    match_identity,
)
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Absent, Metadata
from compute_operator_kit.intents.intents import Ensure, OwnedFields, Plan, RequeueAfter


def plan_namespace(seen: ObservedDeployment, uid: Uid) -> Plan | None:
    """What must be done before a copy can be written into it; None when it is in order."""
    existing = seen.hub_namespace
    if isinstance(existing, Absent):
        identity = derive_identity(seen.project_namespace)
        desired = OwnedFields(labels=identity.labels, annotations=identity.annotations)
        return Plan.of(Ensure(seen.hub_namespace_key, desired, reasons.ABSENT))
    if existing.is_deleting:
        return Plan.of(RequeueAfter(seen.key, reasons.STILL_TERMINATING, LOST_EVENT))
    match = match_identity(existing, seen.project_namespace)
    if match is IdentityMatch.OURS:
        return None
    if match is IdentityMatch.INCOMPLETE:
        return label_namespace(seen, existing)
    return resolve_conflict(seen, existing, uid)


def label_namespace(seen: ObservedDeployment, existing: Metadata) -> Plan:
    """Adds missing labels and restores changed ones, with an annotation that differs each time.

    Karmada compares with what it last sent, by its cache. A hub namespace exactly as before the
    edit would look unchanged to it, and a cell would stay without the labels.
    """
    missing = derive_missing_identity(existing, seen.project_namespace)
    mark = {labels.IDENTITY_REPAIRED: existing.resource_version}
    desired = OwnedFields(labels=missing.labels, annotations={**missing.annotations, **mark})
    return Plan.of(Ensure(seen.hub_namespace_key, desired, reasons.DRIFTED, uid=existing.uid))


def resolve_conflict(seen: ObservedDeployment, existing: Metadata, uid: Uid) -> Plan:
    """Repaired a few times where copies of ours are in it; never adopted without one."""
    if seen.holds_ours and seen.known.repairs_left > 0:
        return label_namespace(seen, existing)
    return hold_conflict(seen, uid)


def hold_conflict(seen: ObservedDeployment, uid: Uid) -> Plan:
    message = "The place of this namespace on the hub is labelled for another project or namespace"
    warned = warn_once(seen, uid, reasons.HUB_IDENTITY_CONFLICT, message)
    return Plan((*warned, RequeueAfter(seen.key, reasons.HUB_IDENTITY_CONFLICT, IDENTITY_RETRY)))
