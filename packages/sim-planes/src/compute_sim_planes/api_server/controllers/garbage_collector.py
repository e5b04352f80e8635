"""The garbage collector of one plane: deletes dependents after their owners.

Background, foreground and orphan deletion as in kube-controller-manager, within one plane: an owner
on another plane counts as absent, and its dependents are deleted. Owners are compared by UID, so
that an object recreated under the same name is not the owner.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Final

from compute_sim_planes.api_server.controllers.deferred import DeferredQueue
from compute_sim_planes.api_server.kinds.catalog import Catalog
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage import system_fields
from compute_sim_planes.api_server.storage.deletion import delete_stored
from compute_sim_planes.api_server.storage.records import Change, ChangeType, Owner, StoredObject
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonValue, ensure_object, objects_at
from compute_sim_planes.time.sources import Clock

ACTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"


class OwnerState(Enum):
    SOLID = "there"
    DANGLING = "gone"
    WAITING = "deleted, and waits for its dependents"
    UNKNOWN = "of a kind that is not served"


def collect_everything(resource: GroupResource) -> bool:
    """The default of kube-controller-manager, which discovers new kinds by itself."""
    del resource
    return True


class GarbageCollector:
    """Reconciles objects after their owners or dependents changed."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        clock: Clock,
        delay: timedelta,
        *,
        collects: Callable[[GroupResource], bool] = collect_everything,
    ) -> None:
        self._store = store
        self._collects = collects
        self._catalog = catalog
        self._clock = clock
        self._queue: DeferredQueue[tuple[GroupResource, str]] = DeferredQueue(
            self._reconcile, delay
        )
        store.listen(self._on_change)

    def close(self) -> None:
        self._queue.close()

    def resync(self) -> None:
        """Enqueue every object that has an owner, as after a restart."""
        for resource in self._store.resources():
            for stored in self._store.bucket(resource).listed():
                if stored.owners:
                    self._add(stored)

    def _on_change(self, change: Change) -> None:
        after = change.after
        if change.type is ChangeType.DELETED:
            for dependent in self._store.dependents(after.uid):
                self._add(dependent)
            self._enqueue_waiting_owners(after)
            return
        owners_moved = change.before is None or change.before.owners != after.owners
        if (after.owners and owners_moved) or _has_collector_finalizer(after):
            self._add(after)
        if change.before is not None and owners_moved:
            self._enqueue_waiting_owners(change.before)

    def _enqueue_waiting_owners(self, dependent: StoredObject) -> None:
        for owner in dependent.owners:
            existing = self._find_owner(owner, dependent)
            if existing is not None and system_fields.FOREGROUND in existing.finalizers:
                self._add(existing)

    def _add(self, stored: StoredObject) -> None:
        self._queue.add((stored.kind.group_resource, stored.key))

    def _reconcile(self, item: tuple[GroupResource, str]) -> None:
        existing = self._store.bucket(item[0]).get(item[1])
        if existing is None:
            return
        if existing.terminating and system_fields.ORPHAN in existing.finalizers:
            self._orphan_dependents(existing)
        elif existing.terminating and system_fields.FOREGROUND in existing.finalizers:
            self._delete_dependents(existing)
        elif existing.owners and not existing.terminating:
            self._collect(existing)

    def _collect(self, existing: StoredObject) -> None:
        """Delete an object without a remaining owner; where one remains, drop references to absent
        owners.
        """
        if not self._collects(existing.kind.group_resource):
            return
        states = {owner: self._state(owner, existing) for owner in existing.owners}
        if OwnerState.UNKNOWN in states.values():
            return
        lost = [owner for owner, state in states.items() if state is not OwnerState.SOLID]
        if not lost:
            return
        if len(lost) < len(states):
            self._drop_owners(existing, {owner.uid for owner in lost})
            return
        waits = OwnerState.WAITING in states.values()
        foreground = waits and bool(self._store.dependents(existing.uid))
        self._delete(existing, "Foreground" if foreground else None)

    def _state(self, owner: Owner, dependent: StoredObject) -> OwnerState:
        kind = self._catalog.find_kind(owner.api_version, owner.kind)
        if kind is None or (kind.namespaced and not dependent.namespace):
            return OwnerState.UNKNOWN
        existing = self._find_owner(owner, dependent)
        if existing is None:
            return OwnerState.DANGLING
        if existing.terminating and system_fields.FOREGROUND in existing.finalizers:
            return OwnerState.WAITING
        return OwnerState.SOLID

    def _find_owner(self, owner: Owner, dependent: StoredObject) -> StoredObject | None:
        kind = self._catalog.find_kind(owner.api_version, owner.kind)
        if kind is None:
            return None
        namespace = dependent.namespace if kind.namespaced else ""
        existing = self._store.get(kind.group_resource, namespace, owner.name)
        return existing if existing is not None and existing.uid == owner.uid else None

    def _delete_dependents(self, owner: StoredObject) -> None:
        """Enqueue all dependents; wait only for those that block their owner's deletion."""
        dependents = self._store.dependents(owner.uid)
        for dependent in dependents:
            self._add(dependent)
        if not any(_blocks(dependent, owner) for dependent in dependents):
            self._remove_finalizer(owner, system_fields.FOREGROUND)

    def _orphan_dependents(self, owner: StoredObject) -> None:
        for dependent in self._store.dependents(owner.uid):
            self._drop_owners(dependent, {owner.uid})
        self._remove_finalizer(owner, system_fields.ORPHAN)

    def _drop_owners(self, existing: StoredObject, uids: set[str]) -> None:
        desired = existing.decode()
        metadata = ensure_object(desired, "metadata")
        kept: list[JsonValue] = [
            reference
            for reference in objects_at(metadata, "ownerReferences")
            if reference.get("uid") not in uids
        ]
        metadata.pop("ownerReferences")
        if kept:
            metadata["ownerReferences"] = kept
        self._store.replace(existing, existing.kind, desired, ACTOR)

    def _remove_finalizer(self, existing: StoredObject, finalizer: str) -> None:
        remaining = [name for name in existing.finalizers if name != finalizer]
        if not remaining:
            self._store.remove(existing, ACTOR)
            return
        desired = existing.decode()
        system_fields.set_finalizers(ensure_object(desired, "metadata"), remaining)
        self._store.replace(existing, existing.kind, desired, ACTOR)

    def _delete(self, existing: StoredObject, propagation: str | None) -> None:
        delete_stored(self._store, existing, propagation, now=self._clock.now(), actor=ACTOR)


def _blocks(dependent: StoredObject, owner: StoredObject) -> bool:
    return any(reference.uid == owner.uid and reference.blocks for reference in dependent.owners)


def _has_collector_finalizer(stored: StoredObject) -> bool:
    """Whether the object is being deleted and holds a finalizer of the garbage collector."""
    return stored.terminating and (
        system_fields.ORPHAN in stored.finalizers or system_fields.FOREGROUND in stored.finalizers
    )
