"""Whether what a hub Instance says of itself can be true. Pure (management.md 8.1).

Twelve statements in order; the first that fails decides. *Terminal* is what no waiting heals: it is
quarantined. *Retryable* heals by an event, and some of it only for a while: the deployment of an
Instance goes before the hub's garbage collection has removed the Instance, on every delete, so an
absence counts from when it was first seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from compute_api_types import labels, names, reasons
from compute_api_types.reasons import QuarantineReason
from compute_management_operator.identities import Place, Standing, judge_standing
from compute_management_operator.projection.observe import (
    LARGEST,
    Deployment,
    Instance,
    Seen,
)
from compute_operator_kit.clock import age_of
from compute_operator_kit.objects import Absent, Unreadable

PATIENCE: Final = timedelta(minutes=15)
SAFETY: Final = timedelta(seconds=30)  # an event comes first; this is for one that was lost
RESYNC: Final = timedelta(minutes=30)  # engagement wakes everything of a project
MARGIN: Final = 10  # slots beyond the scale that a cell may still be deleting


@dataclass(frozen=True, slots=True)
class Terminal:
    """Cannot be true; told, quarantined, and looked at again on any change."""

    reason: QuarantineReason
    message: str


@dataclass(frozen=True, slots=True)
class Retryable:
    """Not known yet, or not any more."""

    reason: str
    retry_after: timedelta = SAFETY
    still_updates: bool = False  # a projection that exists goes on being kept up to date


Blocker: TypeAlias = Terminal | Retryable
Check: TypeAlias = Callable[[Seen, Instance, datetime], Blocker | None]


def find_blocker(seen: Seen, source: Instance, now: datetime) -> Blocker | None:
    """The first statement that does not hold; one that still allows updates only if none after it
    forbids them.
    """
    softened: Retryable | None = None
    for check in FIRST_BLOCKER:
        blocker = check(seen, source, now)
        if isinstance(blocker, Retryable) and blocker.still_updates:
            softened = blocker
        elif blocker is not None:
            return blocker
    return softened


# --- the statements, in the order of management.md 8.1 --------------------------------------------


def project_is_named(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    if seen.project is not None:
        return None
    key = labels.UPSTREAM_CLUSTER_NAME
    return Terminal(QuarantineReason.UNIDENTIFIABLE, f"Label {key} is missing or names no project")


def namespace_is_named(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    if seen.namespace:
        return None
    key = labels.UPSTREAM_NAMESPACE
    return Terminal(QuarantineReason.MISSING_NAMESPACE_LABEL, f"Label {key} is missing")


def deployment_is_named(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    key = labels.WORKLOAD_DEPLOYMENT_NAME
    if source.metadata.labels.get(key):
        return None
    return Terminal(QuarantineReason.MISSING_DEPLOYMENT_NAME, f"Label {key} is missing")


def hub_namespace_agrees(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    """Its labels are put back within moments where they are missing; another identity is none."""
    standing = Standing.INCOMPLETE
    if seen.project is not None and not isinstance(seen.hub_namespace, Absent):
        standing = judge_standing(seen.hub_namespace, Place(seen.project, seen.namespace))
    if standing is Standing.OURS:
        return None
    if standing is Standing.FOREIGN:
        return _mismatch("The hub namespace is labelled for another project or namespace")
    late = _mismatch("The hub namespace has not said for 15 minutes whose it is")
    return _patiently(seen, reasons.IDENTITY_INCOMPLETE, late, now)


def project_is_engaged(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    return None if seen.is_engaged else Retryable(reasons.NOT_ENGAGED, RESYNC)


def project_namespace_agrees(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    """The name of the hub namespace carries the UID of the project namespace: the proof."""
    if seen.namespace_uid is None:
        return Retryable(reasons.PLANE_UNREADABLE)
    if isinstance(seen.namespace_uid, Absent):
        return _deployment_absent(seen, now)
    if names.derive_hub_namespace(seen.namespace_uid) != seen.key.namespace:
        return _mismatch("The hub namespace belongs to another project namespace")
    return None


def deployment_is_there(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    if isinstance(seen.deployment, Unreadable):
        return Retryable(reasons.PLANE_UNREADABLE)
    return _deployment_absent(seen, now) if isinstance(seen.deployment, Absent) else None


def cell_serves_the_city(seen: Seen, source: Instance, now: datetime) -> Blocker | None:
    name = source.metadata.labels.get(labels.CELL, "")
    if not name:
        if not seen.needs_cell_label:
            return None
        return Terminal(QuarantineReason.CELL_UNKNOWN, f"Label {labels.CELL} is missing")
    if isinstance(seen.cell, Absent) or not seen.cell.city_code:
        # Un-joined or not labelled yet: nothing new is believed, what is shown stays true.
        return Retryable(reasons.CELL_MISSING, still_updates=_is_from(seen, name))
    if isinstance(seen.deployment, Deployment) and (
        seen.cell.city_code != seen.deployment.city_code
    ):
        message = f'Cell "{name}" serves another city than the deployment\'s'
        late = Terminal(QuarantineReason.CELL_CITY_MISMATCH, message)
        if not seen.is_of_former_city:
            return late
        return _patiently(seen, reasons.STILL_TERMINATING, late, now)
    return None


def name_is_free(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    if not isinstance(seen.found, Instance):
        return None
    if seen.found.metadata.controller is None and not seen.other_owners:
        return None
    message = "The project has an Instance of this name that belongs to somebody else"
    return Terminal(QuarantineReason.NAME_TAKEN, message)


def size_is_bounded(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    if source.size <= LARGEST:
        return None
    return Terminal(QuarantineReason.OVERSIZED, "Spec and status are larger than 256 KiB")


def name_is_of_a_slot(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    """Without it a cell takes the name of another deployment's slot, and its row in the project."""
    if _ordinal(seen, source) is not None:
        return None
    key = labels.WORKLOAD_DEPLOYMENT_NAME
    message = f"The name is not <deployment>-<ordinal> of the deployment in label {key}"
    return Terminal(QuarantineReason.NAME_MISMATCH, message)


def slot_is_within_scale(seen: Seen, source: Instance, now: datetime) -> Blocker | None:  # noqa: ARG001
    """Names differ, so a limit on ordinals limits the number of rows too. A row that is there stays
    up to date: a cell deletes the slots of a smaller scale one after the other.
    """
    ordinal, deployment = _ordinal(seen, source), seen.deployment
    if ordinal is None or not isinstance(deployment, Deployment) or _is_shown_of(seen, deployment):
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


def _deployment_absent(seen: Seen, now: datetime) -> Blocker:
    message = "The project has had no such deployment for 15 minutes"
    late = Terminal(QuarantineReason.DEPLOYMENT_ABSENT, message)
    return _patiently(seen, reasons.DEPLOYMENT_MISSING, late, now)


def _patiently(seen: Seen, situation: str, late: Terminal, now: datetime) -> Blocker:
    """Retryable for 15 minutes from when this process first saw it so, then terminal."""
    since = seen.since.get(situation, now)
    left = PATIENCE - age_of(since, now)
    return Retryable(situation, left) if left > timedelta() else late


def _is_from(seen: Seen, cell: str) -> bool:
    """Whether a projection exists and came from this very cell."""
    if not isinstance(seen.found, Instance):
        return False
    return seen.found.metadata.labels.get(labels.CELL) == cell


def _ordinal(seen: Seen, source: Instance) -> int | None:
    deployment = source.metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
    return names.parse_ordinal(deployment, seen.key.name)


def _is_shown_of(seen: Seen, deployment: Deployment) -> bool:
    """Whether a projection exists and belongs to this very deployment."""
    if not isinstance(seen.found, Instance):
        return False
    return any(owner.uid == deployment.metadata.uid for owner in seen.found.metadata.owners)
