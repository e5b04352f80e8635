"""Twelve checks of a hub Instance before it is projected, in order. Pure (management.md 8.1).

Its labels come from a cell and may be forged. The first check that fails decides: *Terminal* does
not heal by waiting and is quarantined; *Retryable* heals by an event, some of it for a limited time
only. On every delete the deployment is gone before the hub's garbage collection has removed its
Instances, so that an absence counts from when it was first observed.
"""

# ruff: noqa: ARG001 - the checks of one table share one signature
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from compute_api_types import labels, names, reasons
from compute_api_types.reasons import QuarantineReason
from compute_management_operator.hub.delays import INSTANCE_PATIENCE, LOST_EVENT, UNTIL_RESYNC
from compute_management_operator.hub.identity import IdentityMatch, ProjectNamespace, match_identity
from compute_management_operator.hub.projection.observe import (
    LARGEST,
    HubInstance,
    InstanceDeployment,
    ObservedInstance,
)
from compute_operator_kit.core.clock import ZERO, age_of
from compute_operator_kit.core.objects import Absent, Unreadable

MARGIN: Final = 10  # slots beyond the scale that a cell may still be deleting


@dataclass(frozen=True, slots=True)
class Terminal:
    """Cannot be true; quarantined, and checked again on any change."""

    reason: QuarantineReason
    message: str


@dataclass(frozen=True, slots=True)
class Retryable:
    """Not known yet, or not any more."""

    reason: str
    retry_after: timedelta = LOST_EVENT
    still_updates: bool = False  # an existing projection is updated nevertheless


Blocker: TypeAlias = Terminal | Retryable
Check: TypeAlias = Callable[[ObservedInstance, HubInstance, datetime], Blocker | None]


def find_blocker(seen: ObservedInstance, source: HubInstance, now: datetime) -> Blocker | None:
    """The first check that fails; one that still allows updates only if no later check fails
    without allowing them.
    """
    softened: Retryable | None = None
    for check in FIRST_BLOCKER:
        blocker = check(seen, source, now)
        if isinstance(blocker, Retryable) and blocker.still_updates:
            softened = blocker
        elif blocker is not None:
            return blocker
    return softened


# --- the checks, in the order of management.md 8.1 ------------------------------------------------


def project_is_named(seen: ObservedInstance, source: HubInstance, now: datetime) -> Blocker | None:
    if seen.project is not None:
        return None
    key = labels.UPSTREAM_CLUSTER_NAME
    return Terminal(QuarantineReason.UNIDENTIFIABLE, f"Label {key} is missing or names no project")


def namespace_is_named(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    if seen.namespace:
        return None
    key = labels.UPSTREAM_NAMESPACE
    return Terminal(QuarantineReason.MISSING_NAMESPACE_LABEL, f"Label {key} is missing")


def deployment_is_named(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    key = labels.WORKLOAD_DEPLOYMENT_NAME
    if source.metadata.labels.get(key):
        return None
    return Terminal(QuarantineReason.MISSING_DEPLOYMENT_NAME, f"Label {key} is missing")


def hub_namespace_agrees(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    """Missing labels are repaired by federation within moments; wrong ones do not agree."""
    match = IdentityMatch.INCOMPLETE
    if seen.project is not None and not isinstance(seen.hub_namespace, Absent):
        match = match_identity(seen.hub_namespace, ProjectNamespace(seen.project, seen.namespace))
    if match is IdentityMatch.OURS:
        return None
    if match is IdentityMatch.FOREIGN:
        return _mismatch("The hub namespace is labelled for another project or namespace")
    late = _mismatch("The hub namespace has not said for 15 minutes whose it is")
    return _patiently(seen, reasons.IDENTITY_INCOMPLETE, late, now)


def project_is_engaged(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    return None if seen.is_engaged else Retryable(reasons.NOT_ENGAGED, UNTIL_RESYNC)


def project_namespace_agrees(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    """The name of the hub namespace carries the UID of the project namespace: the proof."""
    if seen.namespace_uid is None:
        return Retryable(reasons.PLANE_UNREADABLE)
    if isinstance(seen.namespace_uid, Absent):
        return _deployment_absent(seen, now)
    if names.derive_hub_namespace(seen.namespace_uid) != seen.key.namespace:
        return _mismatch("The hub namespace belongs to another project namespace")
    return None


def deployment_is_there(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    if isinstance(seen.deployment, Unreadable):
        return Retryable(reasons.PLANE_UNREADABLE)
    return _deployment_absent(seen, now) if isinstance(seen.deployment, Absent) else None


def cell_serves_the_city(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    name = source.metadata.labels.get(labels.CELL, "")
    if not name:
        if not seen.needs_cell_label:
            return None
        return Terminal(QuarantineReason.CELL_UNKNOWN, f"Label {labels.CELL} is missing")
    if isinstance(seen.cell, Absent) or not seen.cell.city_code:
        # Un-joined or not labelled yet: no new projection, existing ones are updated.
        return Retryable(reasons.CELL_MISSING, still_updates=_is_from(seen, name))
    if isinstance(seen.deployment, InstanceDeployment) and (
        seen.cell.city_code != seen.deployment.city_code
    ):
        message = f'Cell "{name}" serves another city than the deployment\'s'
        late = Terminal(QuarantineReason.CELL_CITY_MISMATCH, message)
        if not seen.is_of_former_city:
            return late
        return _patiently(seen, reasons.STILL_TERMINATING, late, now)
    return None


def name_is_free(seen: ObservedInstance, source: HubInstance, now: datetime) -> Blocker | None:
    if not isinstance(seen.projection, HubInstance):
        return None
    if seen.projection.metadata.controller is None and not seen.other_owners:
        return None
    message = "The project has an Instance of this name that belongs to somebody else"
    return Terminal(QuarantineReason.NAME_TAKEN, message)


def size_is_bounded(seen: ObservedInstance, source: HubInstance, now: datetime) -> Blocker | None:
    if source.size <= LARGEST:
        return None
    return Terminal(QuarantineReason.OVERSIZED, "Spec and status are larger than 256 KiB")


def name_is_of_a_slot(seen: ObservedInstance, source: HubInstance, now: datetime) -> Blocker | None:
    """Without it a cell takes the name of another deployment's slot, and its projection."""
    if _ordinal(seen, source) is not None:
        return None
    key = labels.WORKLOAD_DEPLOYMENT_NAME
    message = f"The name is not <deployment>-<ordinal> of the deployment in label {key}"
    return Terminal(QuarantineReason.NAME_MISMATCH, message)


def slot_is_within_scale(
    seen: ObservedInstance, source: HubInstance, now: datetime
) -> Blocker | None:
    """A limit of ordinals also limits the number of projections. An existing projection is updated
    beyond it: a cell deletes the slots of a smaller scale one after the other.
    """
    ordinal, deployment = _ordinal(seen, source), seen.deployment
    if (
        ordinal is None
        or not isinstance(deployment, InstanceDeployment)
        or _is_shown_of(seen, deployment)
    ):
        return None
    limit = deployment.scale + MARGIN
    if ordinal < limit:
        return None
    message = f"Ordinal {ordinal} is not below {limit}, the deployment's scale and {MARGIN} more"
    return Terminal(QuarantineReason.BEYOND_SCALE, message)


FIRST_BLOCKER: Final[tuple[Check, ...]] = (
    project_is_named,
    namespace_is_named,
    deployment_is_named,
    hub_namespace_agrees,
    project_is_engaged,
    project_namespace_agrees,
    deployment_is_there,
    cell_serves_the_city,
    name_is_free,
    size_is_bounded,
    name_is_of_a_slot,
    slot_is_within_scale,
)


# --- shared by several ----------------------------------------------------------------------------


def _mismatch(message: str) -> Terminal:
    return Terminal(QuarantineReason.IDENTITY_MISMATCH, message)


def _deployment_absent(seen: ObservedInstance, now: datetime) -> Blocker:
    message = "The project has had no such deployment for 15 minutes"
    late = Terminal(QuarantineReason.DEPLOYMENT_ABSENT, message)
    return _patiently(seen, reasons.DEPLOYMENT_MISSING, late, now)


def _patiently(seen: ObservedInstance, situation: str, late: Terminal, now: datetime) -> Blocker:
    """Retryable for 15 minutes from when this process first observed it, then terminal."""
    since = seen.since.get(situation, now)
    left = INSTANCE_PATIENCE - age_of(since, now)
    return Retryable(situation, left) if left > ZERO else late


def _is_from(seen: ObservedInstance, cell: str) -> bool:
    """Whether a projection exists that came from the same cell."""
    if not isinstance(seen.projection, HubInstance):
        return False
    return seen.projection.metadata.labels.get(labels.CELL) == cell


def _ordinal(seen: ObservedInstance, source: HubInstance) -> int | None:
    deployment = source.metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
    return names.parse_ordinal(deployment, seen.key.name)


def _is_shown_of(seen: ObservedInstance, deployment: InstanceDeployment) -> bool:
    """Whether a projection exists that belongs to the same deployment."""
    if not isinstance(seen.projection, HubInstance):
        return False
    return any(owner.uid == deployment.metadata.uid for owner in seen.projection.metadata.owners)
