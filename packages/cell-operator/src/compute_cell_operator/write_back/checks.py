"""What must be true before a copy is written. Pure (cell.md 11, checks 1 to 6).

Each check is a statement about what was seen; the tuple at the end reads like the table, and its
first that does not hold decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from compute_api_types import labels
from compute_cell_operator.instance.observe import has_foreign_controller
from compute_cell_operator.write_back.observe import Document, HubAnswer, Seen
from compute_operator_kit.objects import Absent, Metadata, Unreadable


class RefusalReason(StrEnum):
    """`reason` of `compute_writeback_refusals_total`."""

    MISSING_LABELS = "missing_labels"
    NAMESPACE_IDENTITY = "namespace_identity"
    OWNER_MISMATCH = "owner_mismatch"
    OTHER_CELL = "other_cell"
    FOREIGN_OWNER = "foreign_owner"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The copy is not written, and an existing one stays as it is, until something changes."""

    reason: RefusalReason
    message: str


@dataclass(frozen=True, slots=True)
class NoOwner:
    """The hub has no live deployment to own a copy: no copy, and no error."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """The hub could not be asked: nothing may be concluded."""

    reason: str


Obstacle: TypeAlias = Refusal | NoOwner | NotKnown
Check: TypeAlias = Callable[[Seen, HubAnswer], Obstacle | None]


def linking_labels_are_there(seen: Seen, _: HubAnswer) -> Obstacle | None:
    found = seen.instance.metadata.labels
    missing = [key for key in labels.LINKING_LABELS if not found.get(key)]
    if not missing:
        return None
    return Refusal(RefusalReason.MISSING_LABELS, f"labels missing: {', '.join(missing)}")


def instance_has_no_other_controller(seen: Seen, _: HubAnswer) -> Obstacle | None:
    if not has_foreign_controller(seen.instance.metadata):
        return None
    return Refusal(RefusalReason.FOREIGN_OWNER, "the Instance has another controller")


def namespaces_name_the_same_project(seen: Seen, hub: HubAnswer) -> Obstacle | None:
    for found in (seen.namespace, hub.namespace):
        if isinstance(found, Unreadable):
            return NotKnown(found.reason)
    name = seen.copy_key.namespace
    if isinstance(seen.namespace, Absent):
        return _unidentified(f'Namespace "{name}" does not exist on the cell')
    if not isinstance(hub.namespace, Metadata):
        return _unidentified(f'Namespace "{name}" does not exist on the hub')
    for key in labels.IDENTITY_LABELS:
        obstacle = _compare_identity(key, seen.namespace, hub.namespace)
        if obstacle is not None:
            return obstacle
    return None


def _compare_identity(key: str, cell: Metadata | Unreadable, hub: Metadata) -> Obstacle | None:
    found = hub.labels.get(key, "")
    if not found:
        return _unidentified(f'Namespace "{hub.name}" on the hub has no label "{key}"')
    if isinstance(cell, Metadata) and cell.labels.get(key) == found:
        return None
    return _unidentified(f'Namespace "{hub.name}": label "{key}" differs between hub and cell')


def _unidentified(message: str) -> Refusal:
    return Refusal(RefusalReason.NAMESPACE_IDENTITY, message)


def owner_lives_on_the_hub(_: Seen, hub: HubAnswer) -> Obstacle | None:
    if isinstance(hub.deployment, Unreadable):
        return NotKnown(hub.deployment.reason)
    is_there = isinstance(hub.deployment, Metadata) and not hub.deployment.is_deleting
    return None if is_there else NoOwner()


def owner_is_the_one_karmada_delivered(seen: Seen, hub: HubAnswer) -> Obstacle | None:
    if not isinstance(hub.deployment, Metadata) or not seen.deployment_uid:
        return None
    if hub.deployment.uid == seen.deployment_uid:
        return None
    message = (
        f'WorkloadDeployment "{hub.deployment.name}" on the hub has UID "{hub.deployment.uid}", '
        f'the one delivered here was made from "{seen.deployment_uid}"'
    )
    return Refusal(RefusalReason.OWNER_MISMATCH, message)


def copy_is_of_this_cell(seen: Seen, _: HubAnswer) -> Obstacle | None:
    if isinstance(seen.copy, Unreadable):
        return NotKnown(seen.copy.reason)
    if not isinstance(seen.copy, Document):
        return None
    cell = seen.copy.metadata.labels.get(labels.CELL, "")
    if cell in {"", seen.cell}:
        return None
    return Refusal(RefusalReason.OTHER_CELL, f'the copy belongs to cell "{cell}"')


def copy_has_no_other_controller(seen: Seen, hub: HubAnswer) -> Obstacle | None:
    if not isinstance(seen.copy, Document) or not isinstance(hub.deployment, Metadata):
        return None
    controller = seen.copy.metadata.controller
    if controller is None or controller.uid == hub.deployment.uid:
        return None
    message = f'the copy is controlled by {controller.kind} "{controller.name}"'
    return Refusal(RefusalReason.FOREIGN_OWNER, message)


FIRST_OBSTACLE: Final[tuple[Check, ...]] = (
    linking_labels_are_there,
    instance_has_no_other_controller,
    namespaces_name_the_same_project,
    owner_lives_on_the_hub,
    owner_is_the_one_karmada_delivered,
    copy_is_of_this_cell,
    copy_has_no_other_controller,
)


def find_obstacle(seen: Seen, hub: HubAnswer) -> Obstacle | None:
    """The first that stands in the way of a write."""
    found = (check(seen, hub) for check in FIRST_OBSTACLE)
    return next((obstacle for obstacle in found if obstacle is not None), None)
