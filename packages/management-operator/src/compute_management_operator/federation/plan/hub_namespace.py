"""The hub namespace of a project namespace: made, labelled, put right, or left alone. Pure.

Its name carries the UID of the project namespace, so it is ours by name; its labels are what others
read, and a label that names somebody else is a conflict that a person must see (management.md 4,
step 6).
"""

from __future__ import annotations

from compute_api_types import labels, reasons
from compute_management_operator.federation.observe import Seen
from compute_management_operator.federation.plan.holding import (
    RETRY_IDENTITY,
    SAFETY,
    tell_once,
)
from compute_management_operator.identities import (
    Standing,
    derive_identity,
    derive_missing_identity,
    judge_standing,
)
from compute_operator_kit.intents import Ensure, Owned, Plan, Wait
from compute_operator_kit.keys import Uid
from compute_operator_kit.objects import Absent, Metadata


def plan_namespace(seen: Seen, uid: Uid) -> Plan | None:
    """What must be done before anything can be written into it; None when it is fit."""
    found = seen.hub_namespace
    if isinstance(found, Absent):
        identity = derive_identity(seen.place)
        wanted = Owned(labels=identity.labels, annotations=identity.annotations)
        return Plan.of(Ensure(seen.hub_namespace_key, wanted, reasons.ABSENT))
    if found.is_deleting:
        return Plan.of(Wait(seen.key, reasons.STILL_TERMINATING, SAFETY))
    standing = judge_standing(found, seen.place)
    if standing is Standing.OURS:
        return None
    if standing is Standing.INCOMPLETE:
        return label_namespace(seen, found)
    return resolve_conflict(seen, found, uid)


def label_namespace(seen: Seen, found: Metadata) -> Plan:
    """Adds what is missing, or puts back what somebody changed.

    Not as it was before: Karmada, which compares with what it last sent as far as its cache knows,
    would take that for the state from before the edit, and leave a cell without the labels.
    """
    missing = derive_missing_identity(found, seen.place)
    mark = {labels.IDENTITY_REPAIRED: found.resource_version}
    wanted = Owned(labels=missing.labels, annotations={**missing.annotations, **mark})
    return Plan.of(Ensure(seen.hub_namespace_key, wanted, reasons.DRIFTED, uid=found.uid))


def resolve_conflict(seen: Seen, found: Metadata, uid: Uid) -> Plan:
    """Put back where we already live, but not for ever; never adopted where we do not."""
    if seen.holds_ours and seen.known.repairs_left > 0:
        return label_namespace(seen, found)
    return hold_conflict(seen, uid)


def hold_conflict(seen: Seen, uid: Uid) -> Plan:
    message = "The place of this namespace on the hub is labelled for another project or namespace"
    told = tell_once(seen, uid, reasons.HUB_IDENTITY_CONFLICT, message)
    return Plan((*told, Wait(seen.key, reasons.HUB_IDENTITY_CONFLICT, RETRY_IDENTITY)))
