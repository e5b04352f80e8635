"""Cache reads of one Instance of the cell and its copy on the hub, at one moment.

The hub's Namespace and deployment are in no cache and read live only before a write; until then
`hub` is None. A cache that is incomplete gives `Unreadable`, never absence, which would delete the
copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import labels
from compute_cell_operator.conditions import ReportedCondition, read_conditions
from compute_cell_operator.planes import DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable


@dataclass(frozen=True, slots=True)
class InstanceDocument:
    """An Instance on either plane, with spec and status as they are stored."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject
    status: JsonObject

    @property
    def conditions(self) -> tuple[ReportedCondition, ...]:
        return read_conditions(self.status)


@dataclass(frozen=True, slots=True)
class HubFacts:
    """Live reads of the hub before a write."""

    namespace: Metadata | Absent | Unreadable
    deployment: Metadata | Absent | Unreadable
    # Read where a create met an existing object: one without our label, or with another cell's, is
    # in no cache of ours.
    copy: InstanceDocument | Absent | None = None


@dataclass(frozen=True, slots=True)
class Hashes:
    """Hashes of the desired and the existing copy at the last write."""

    desired: str
    existing: str


@dataclass(frozen=True, slots=True)
class ObservedCopy:
    """One Instance of the cell and its copy."""

    cell: str
    copy_key: ObjectKey
    instance: InstanceDocument
    namespace: Metadata | Absent | Unreadable  # of the cell
    deployment_uid: str  # of the hub's, in Karmada's annotation on the cell's; "" for none
    copy: InstanceDocument | Absent | Unreadable
    is_orphaned: bool = False  # the cell's deployment that owns the Instance is gone
    hub: HubFacts | None = None
    written: Hashes | None = None  # after the last write, where the copy still differed
    owner_misses: int = 0  # how often in a row the hub had no owner for it


@dataclass(frozen=True, slots=True)
class Vanished:
    """The cell's cache has no Instance of the name; `copy` is its copy on the hub."""

    copy: InstanceDocument | Absent | Unreadable


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one name between reconciles."""

    written: Hashes | None = None
    owner_misses: int = 0
    is_taken: bool = False  # an object that is in no cache of ours has the name of its copy


NOTHING_KEPT: Final = Kept()


def observe(
    key: ObjectKey,
    caches: Caches,
    cell: str,
    *,
    kept: Kept = NOTHING_KEPT,
    hub: HubFacts | None = None,
) -> ObservedCopy | Vanished | None:
    """None where the cell's own cache is incomplete."""
    instance = caches.lister(key.plane, INSTANCE).get(key.namespace, key.name)
    if isinstance(instance, Unreadable):
        return None
    copy_key = derive_copy_key(key)
    copy = _read_copy(caches.lister(HUB, INSTANCE).get(key.namespace, key.name), hub)
    if isinstance(instance, Absent):
        return Vanished(copy)
    namespace = caches.lister(key.plane, NAMESPACE).get("", key.namespace)
    return ObservedCopy(
        cell=cell,
        copy_key=copy_key,
        instance=read_document(instance),
        namespace=namespace.metadata if isinstance(namespace, Snapshot) else namespace,
        deployment_uid=_observe_deployment_uid(instance.metadata, caches, key),
        copy=copy,
        is_orphaned=_is_orphaned(instance.metadata, caches, key),
        hub=hub,
        written=kept.written,
        owner_misses=kept.owner_misses,
    )


def derive_copy_key(instance: ObjectKey) -> ObjectKey:
    """The key of the copy of an Instance."""
    return ObjectKey(HUB, INSTANCE, instance.namespace, instance.name)


def _read_copy(
    cached: Snapshot | Absent | Unreadable, hub: HubFacts | None
) -> InstanceDocument | Absent | Unreadable:
    """The cached copy, else the one read live."""
    if isinstance(cached, Snapshot):
        return read_document(cached)
    if isinstance(cached, Unreadable) or hub is None or hub.copy is None:
        return cached
    return hub.copy


def _observe_deployment_uid(instance: Metadata, caches: Caches, key: ObjectKey) -> str:
    """By controller reference, not by label: a label could name any deployment."""
    owner = instance.controller
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return ""
    deployment = caches.lister(key.plane, DEPLOYMENT).get(key.namespace, owner.name)
    if not isinstance(deployment, Snapshot) or deployment.metadata.uid != owner.uid:
        return ""
    return read_deployment_uid(deployment.metadata)


def _is_orphaned(instance: Metadata, caches: Caches, key: ObjectKey) -> bool:
    """Whether the garbage collector is about to delete the Instance with its deployment."""
    owner = instance.controller
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return False
    deployment = caches.lister(key.plane, DEPLOYMENT).get(key.namespace, owner.name)
    if isinstance(deployment, Snapshot):
        return deployment.metadata.uid != owner.uid
    return isinstance(deployment, Absent)


def read_document(snapshot: Snapshot) -> InstanceDocument:
    body = snapshot.read()  # shared with other readers: must not be changed
    return InstanceDocument(
        snapshot.key,
        snapshot.metadata,
        member_object(body, "spec"),
        member_object(body, "status"),
    )


def read_deployment_uid(deployment: Metadata) -> str:
    """The UID of the hub deployment that Karmada made a cell deployment from; "" for none."""
    return deployment.annotations.get(labels.KARMADA_TEMPLATE_UID, "")
