"""Reads caches: one Instance of the cell and its copy on the hub, at one moment.

The hub's Namespace and deployment are in no cache: they are asked for only when a write is at hand,
so they may be `None`: not asked. Unreadable is a value of its own and never absence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import labels
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_cell_operator.plane_names import HUB
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.cache import Caches
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
    # Where a create has met one: a copy without our label, or with another cell's, is in no cache
    # of ours.
    copy: Document | Absent | None = None


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


@dataclass(frozen=True, slots=True)
class Vanished:
    """The cell's cache has no Instance of the name; `copy` is what is left of it on the hub."""

    copy: Document | Absent | Unreadable


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of one name between passes."""

    written: Hashes | None = None
    owner_misses: int = 0
    is_taken: bool = False  # the name of its copy, by something that no cache of ours holds


NOTHING_KEPT: Final = Kept()


def observe(
    key: ObjectKey,
    caches: Caches,
    cell: str,
    *,
    kept: Kept = NOTHING_KEPT,
    hub: HubAnswer | None = None,
) -> Seen | Vanished | None:
    """None where the cell's own cache cannot be believed."""
    found = caches.view(key.plane, INSTANCE).get(key.namespace, key.name)
    if isinstance(found, Unreadable):
        return None
    copy_key = derive_copy_key(key)
    copy = _read_copy(caches.view(HUB, INSTANCE).get(key.namespace, key.name), hub)
    if isinstance(found, Absent):
        return Vanished(copy)
    namespace = caches.view(key.plane, NAMESPACE).get("", key.namespace)
    return Seen(
        cell=cell,
        copy_key=copy_key,
        instance=read_document(found),
        namespace=namespace.metadata if isinstance(namespace, Snapshot) else namespace,
        deployment_uid=_observe_deployment_uid(found.metadata, caches, key),
        copy=copy,
        hub=hub,
        written=kept.written,
        owner_misses=kept.owner_misses,
    )


def derive_copy_key(instance: ObjectKey) -> ObjectKey:
    """Where the copy of an Instance is."""
    return ObjectKey(HUB, INSTANCE, instance.namespace, instance.name)


def _read_copy(
    cached: Snapshot | Absent | Unreadable, hub: HubAnswer | None
) -> Document | Absent | Unreadable:
    """As the cache has it; what the cache cannot have, as the hub said."""
    if isinstance(cached, Snapshot):
        return read_document(cached)
    if isinstance(cached, Unreadable) or hub is None or hub.copy is None:
        return cached
    return hub.copy


def _observe_deployment_uid(instance: Metadata, caches: Caches, key: ObjectKey) -> str:
    """By its controller, and not by a label: that one could be anybody's name."""
    owner = instance.controller
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return ""
    found = caches.view(key.plane, DEPLOYMENT).get(key.namespace, owner.name)
    if not isinstance(found, Snapshot) or found.metadata.uid != owner.uid:
        return ""
    return read_deployment_uid(found.metadata)


def read_document(snapshot: Snapshot) -> Document:
    body = snapshot.read()  # shared: a copy is written from it, and nothing into it
    return Document(
        snapshot.key,
        snapshot.metadata,
        member_object(body, "spec"),
        member_object(body, "status"),
    )


def read_deployment_uid(deployment: Metadata) -> str:
    """The UID of the hub deployment that a cell deployment was made from; "" where not told."""
    return deployment.annotations.get(labels.KARMADA_TEMPLATE_UID, "")
