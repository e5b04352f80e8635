"""The garbage collector of one plane: dependents follow their owners.

Background, foreground and orphan deletion as kube-controller-manager has them, inside one plane
only: an owner on another plane does not exist here, and its dependents go. An owner counts by UID;
a namesake is somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from typing import Final

from compute_sim_planes.api_server import system_fields
from compute_sim_planes.api_server.catalog import Catalog
from compute_sim_planes.api_server.controllers.deferred import DeferredQueue
from compute_sim_planes.api_server.deletion import delete_stored
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.api_server.storage.records import Change, ChangeType, Owner, Stored
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonValue, ensure_object, objects_at

ACTOR: Final = "system:serviceaccount:kube-system:generic-garbage-collector"


class OwnerState(Enum):
    SOLID = "there"
    DANGLING = "gone"
    WAITING = "deleted, and waits for its dependents"
    UNKNOWN = "of a kind that is not served, so nobody can tell"


def collect_everything(resource: GroupResource) -> bool:
    """What kube-controller-manager collects: it learns of new kinds by itself."""
    del resource
    return True


class GarbageCollector:
    """Looks at objects whose owners or dependents changed."""

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
        self._queue: DeferredQueue[tuple[GroupResource, str]] = DeferredQueue(self._look, delay)
        store.listen(self._notice)

    def close(self) -> None:
        self._queue.close()

    def look_again(self) -> None:
        """At every object that has an owner, as after a restart."""
        for resource in self._store.resources():
            for stored in self._store.bucket(resource).listed():
                if stored.owners:
                    self._add(stored)

    def _notice(self, change: Change) -> None:
        after = change.after
        if change.type is ChangeType.DELETED:
            for dependent in self._store.dependents(after.uid):
                self._add(dependent)
            self._wake_waiting_owners(after)
            return
        owners_moved = change.before is None or change.before.owners != after.owners
        if (after.owners and owners_moved) or _holds(after):
            self._add(after)
        if change.before is not None and owners_moved:
            self._wake_waiting_owners(change.before)

    def _wake_waiting_owners(self, dependent: Stored) -> None:
        for owner in dependent.owners:
            found = self._find_owner(owner, dependent)
            if found is not None and system_fields.FOREGROUND in found.finalizers:
                self._add(found)

    def _add(self, stored: Stored) -> None:
        self._queue.add((stored.kind.group_resource, stored.key))

    def _look(self, item: tuple[GroupResource, str]) -> None:
        found = self._store.bucket(item[0]).get(item[1])
        if found is None:
            return
        if found.terminating and system_fields.ORPHAN in found.finalizers:
            self._orphan_dependents(found)
        elif found.terminating and system_fields.FOREGROUND in found.finalizers:
            self._delete_dependents(found)
        elif found.owners and not found.terminating:
            self._judge(found)

    def _judge(self, found: Stored) -> None:
        """Delete an object nobody owns any more; drop references to owners that are gone if another
        remains.
        """
        if not self._collects(found.kind.group_resource):
            return
        states = {owner: self._state(owner, found) for owner in found.owners}
        if OwnerState.UNKNOWN in states.values():
            return
        lost = [owner for owner, state in states.items() if state is not OwnerState.SOLID]
        if not lost:
            return
        if len(lost) < len(states):
            self._drop_owners(found, {owner.uid for owner in lost})
            return
        waits = OwnerState.WAITING in states.values()
        foreground = waits and bool(self._store.dependents(found.uid))
        self._delete(found, "Foreground" if foreground else None)

    def _state(self, owner: Owner, dependent: Stored) -> OwnerState:
        kind = self._catalog.find_kind(owner.api_version, owner.kind)
        if kind is None or (kind.namespaced and not dependent.namespace):
            return OwnerState.UNKNOWN
        found = self._find_owner(owner, dependent)
        if found is None:
            return OwnerState.DANGLING
        if found.terminating and system_fields.FOREGROUND in found.finalizers:
            return OwnerState.WAITING
        return OwnerState.SOLID

    def _find_owner(self, owner: Owner, dependent: Stored) -> Stored | None:
        kind = self._catalog.find_kind(owner.api_version, owner.kind)
        if kind is None:
            return None
        namespace = dependent.namespace if kind.namespaced else ""
        found = self._store.get(kind.group_resource, namespace, owner.name)
        return found if found is not None and found.uid == owner.uid else None

    def _delete_dependents(self, owner: Stored) -> None:
        """All dependents are to go, but only those that block are waited for."""
        dependents = self._store.dependents(owner.uid)
        for dependent in dependents:
            self._add(dependent)
        if not any(_blocks(dependent, owner) for dependent in dependents):
            self._remove_finalizer(owner, system_fields.FOREGROUND)

    def _orphan_dependents(self, owner: Stored) -> None:
        for dependent in self._store.dependents(owner.uid):
            self._drop_owners(dependent, {owner.uid})
        self._remove_finalizer(owner, system_fields.ORPHAN)

    def _drop_owners(self, found: Stored, uids: set[str]) -> None:
        wanted = found.decode()
        metadata = ensure_object(wanted, "metadata")
        kept: list[JsonValue] = [
            reference
            for reference in objects_at(metadata, "ownerReferences")
            if reference.get("uid") not in uids
        ]
        metadata.pop("ownerReferences")
        if kept:
            metadata["ownerReferences"] = kept
        self._store.replace(found, found.kind, wanted, ACTOR)

    def _remove_finalizer(self, found: Stored, finalizer: str) -> None:
        remaining = [name for name in found.finalizers if name != finalizer]
        if not remaining:
            self._store.remove(found, ACTOR)
            return
        wanted = found.decode()
        system_fields.set_finalizers(ensure_object(wanted, "metadata"), remaining)
        self._store.replace(found, found.kind, wanted, ACTOR)

    def _delete(self, found: Stored, propagation: str | None) -> None:
        delete_stored(self._store, found, propagation, now=self._clock.now(), actor=ACTOR)


def _blocks(dependent: Stored, owner: Stored) -> bool:
    return any(reference.uid == owner.uid and reference.blocks for reference in dependent.owners)


def _holds(stored: Stored) -> bool:
    """Whether it is being deleted and the collector's own finalizer is on it."""
    return stored.terminating and (
        system_fields.ORPHAN in stored.finalizers or system_fields.FOREGROUND in stored.finalizers
    )
