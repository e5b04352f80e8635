"""What is known of one Instance and its copy, at one moment; values only.

The hub's Namespace and deployment are read only when a write is at hand, so they may be `None`: not
asked. Unreadable is a value of its own and never absence.
"""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types import labels
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.wire import JsonObject, member_object


@dataclass(frozen=True, slots=True)
class Document:
    """An Instance on either plane, whole."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject
    status: JsonObject

    @property
    def conditions(self) -> tuple[Told, ...]:
        return read_conditions(self.status)


@dataclass(frozen=True, slots=True)
class HubAnswer:
    """What the hub said, by GET, before a write."""

    namespace: Metadata | Absent | Unreadable
    deployment: Metadata | Absent | Unreadable


@dataclass(frozen=True, slots=True)
class Hashes:
    """A wanted and a found copy, for comparing with what was written last."""

    wanted: str
    found: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One Instance of the cell and its copy."""

    cell: str
    copy_key: ObjectKey
    instance: Document
    namespace: Metadata | Absent | Unreadable  # of the cell
    deployment_uid: str  # of the hub, as Karmada's annotation on the cell's says; "" for none
    copy: Document | Absent | Unreadable
    hub: HubAnswer | None = None
    written: Hashes | None = None  # after the last write, where its answer still differed
    owner_misses: int = 0  # how often in a row the hub had no owner for it


def read_document(snapshot: Snapshot) -> Document:
    body = snapshot.decode()
    return Document(
        snapshot.key,
        snapshot.metadata,
        member_object(body, "spec"),
        member_object(body, "status"),
    )


def read_deployment_uid(deployment: Metadata) -> str:
    """The UID of the hub deployment that a cell deployment was made from; "" where not told."""
    return deployment.annotations.get(labels.KARMADA_TEMPLATE_UID, "")
