"""Checks of identity and ownership before a copy is written. Pure (cell.md 11, checks 1 to 6).

The first check that fails decides, in the order of the tuple at the end. Without them a cell with
wrong labels could write into another project, or over another cell's copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from compute_api_types import labels
from compute_cell_operator.instance_facts import has_foreign_controller
from compute_cell_operator.write_back.observe import HubFacts, InstanceDocument, ObservedCopy
from compute_operator_kit.core.objects import Absent, Metadata, Unreadable


class RefusalReason(StrEnum):
    """`reason` of `compute_writeback_refusals_total`."""

    MISSING_LABELS = "missing_labels"
    NAMESPACE_IDENTITY = "namespace_identity"
    OWNER_MISMATCH = "owner_mismatch"
    OTHER_CELL = "other_cell"
    FOREIGN_OWNER = "foreign_owner"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The copy is not written, and an existing one stays as it is, until one of them changes."""

    reason: RefusalReason
    message: str


@dataclass(frozen=True, slots=True)
class NoOwner:
    """The hub has no deployment to own a copy, or a terminating one: no copy, and no error."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A plane could not be read: nothing may be concluded."""

    reason: str


Obstacle: TypeAlias = Refusal | NoOwner | NotKnown
Check: TypeAlias = Callable[[ObservedCopy, HubFacts], Obstacle | None]


def linking_labels_are_there(observed: ObservedCopy, _: HubFacts) -> Obstacle | None:
    present = observed.instance.metadata.labels
    missing = [key for key in labels.LINKING_LABELS if not present.get(key)]
    if not missing:
        return None
    return Refusal(RefusalReason.MISSING_LABELS, f"labels missing: {', '.join(missing)}")


def instance_has_no_other_controller(observed: ObservedCopy, _: HubFacts) -> Obstacle | None:
    if not has_foreign_controller(observed.instance.metadata):
        return None
    return Refusal(RefusalReason.FOREIGN_OWNER, "the Instance has another controller")


def namespaces_name_the_same_project(observed: ObservedCopy, hub: HubFacts) -> Obstacle | None:
    for namespace in (observed.namespace, hub.namespace):
        if isinstance(namespace, Unreadable):
            return NotKnown(namespace.reason)
    name = observed.copy_key.namespace
    if isinstance(observed.namespace, Absent):
        return _unidentified(f'Namespace "{name}" does not exist on the cell')
    if not isinstance(hub.namespace, Metadata):
        return _unidentified(f'Namespace "{name}" does not exist on the hub')
    for key in labels.IDENTITY_LABELS:
        obstacle = _compare_identity(key, observed.namespace, hub.namespace)
        if obstacle is not None:
            return obstacle
    return None


def _compare_identity(key: str, cell: Metadata | Unreadable, hub: Metadata) -> Obstacle | None:
    on_hub = hub.labels.get(key, "")
    if not on_hub:
        return _unidentified(f'Namespace "{hub.name}" on the hub has no label "{key}"')
    if isinstance(cell, Metadata) and cell.labels.get(key) == on_hub:
        return None
    return _unidentified(f'Namespace "{hub.name}": label "{key}" differs between hub and cell')


def _unidentified(message: str) -> Refusal:
    return Refusal(RefusalReason.NAMESPACE_IDENTITY, message)


def owner_exists_on_the_hub(_: ObservedCopy, hub: HubFacts) -> Obstacle | None:
    if isinstance(hub.deployment, Unreadable):
        return NotKnown(hub.deployment.reason)
    is_present = isinstance(hub.deployment, Metadata) and not hub.deployment.is_deleting
    return None if is_present else NoOwner()


def instance_is_not_about_to_go(observed: ObservedCopy, _: HubFacts) -> Obstacle | None:
    """Its deployment here is gone, and with it the UID of the hub's: one of the same name there may
    be a later one, in another city.
    """
    return NoOwner() if observed.is_orphaned and isinstance(observed.copy, Absent) else None


def owner_is_the_one_karmada_delivered(observed: ObservedCopy, hub: HubFacts) -> Obstacle | None:
    if not isinstance(hub.deployment, Metadata) or not observed.deployment_uid:
        return None
    if hub.deployment.uid == observed.deployment_uid:
        return None
    message = (
        f'WorkloadDeployment "{hub.deployment.name}" on the hub has UID "{hub.deployment.uid}", '
        f'the one delivered here was made from "{observed.deployment_uid}"'
    )
    return Refusal(RefusalReason.OWNER_MISMATCH, message)


def copy_is_of_this_cell(observed: ObservedCopy, _: HubFacts) -> Obstacle | None:
    if isinstance(observed.copy, Unreadable):
        return NotKnown(observed.copy.reason)
    if not isinstance(observed.copy, InstanceDocument):
        return None
    cell = observed.copy.metadata.labels.get(labels.CELL, "")
    if cell in {"", observed.cell}:
        return None
    return Refusal(RefusalReason.OTHER_CELL, f'the copy belongs to cell "{cell}"')


def copy_has_no_other_controller(observed: ObservedCopy, hub: HubFacts) -> Obstacle | None:
    if not isinstance(observed.copy, InstanceDocument) or not isinstance(hub.deployment, Metadata):
        return None
    controller = observed.copy.metadata.controller
    if controller is None or controller.uid == hub.deployment.uid:
        return None
    message = f'the copy is controlled by {controller.kind} "{controller.name}"'
    return Refusal(RefusalReason.FOREIGN_OWNER, message)


CHECKS: Final[tuple[Check, ...]] = (
    linking_labels_are_there,
    instance_has_no_other_controller,
    namespaces_name_the_same_project,
    owner_exists_on_the_hub,
    instance_is_not_about_to_go,
    owner_is_the_one_karmada_delivered,
    copy_is_of_this_cell,
    copy_has_no_other_controller,
)


def find_obstacle(observed: ObservedCopy, hub: HubFacts) -> Obstacle | None:
    """The result of the first check that fails."""
    results = (check(observed, hub) for check in CHECKS)
    return next((obstacle for obstacle in results if obstacle is not None), None)
