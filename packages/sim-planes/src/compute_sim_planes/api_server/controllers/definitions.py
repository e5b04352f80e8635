"""The controller of CustomResourceDefinitions: serves, changes and removes kinds.

A definition takes effect a moment after its commit, as on a real plane; until then its kind is not
served. When a definition is deleted, its objects are deleted first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.controllers.deferred import DeferredQueue
from compute_sim_planes.api_server.kinds import crd_documents
from compute_sim_planes.api_server.kinds.catalog import Catalog
from compute_sim_planes.api_server.kinds.crd_documents import CRDS
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.deletion import delete_stored
from compute_sim_planes.api_server.storage.records import Change, ChangeType, StoredObject, encode
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.api_server.storage.system_fields import set_finalizers
from compute_sim_planes.json_types import JsonObject, ensure_object, object_at, strings_at
from compute_sim_planes.time.sources import Clock

ACTOR: Final = "system:apiserver"


class DefinitionController:
    """Keeps the catalogue equal to the definitions in one store; deletes their objects in all
    stores.
    """

    def __init__(self, store: Store, catalog: Catalog, clock: Clock, delay: timedelta) -> None:
        self._store = store
        self.catalog = catalog
        self._clock = clock
        # Stores with objects of these kinds; planes that share the definitions add theirs.
        self.stores: list[Store] = [store]
        self._served: dict[GroupResource, bytes] = {}
        self._queue: DeferredQueue[str] = DeferredQueue(self._reconcile, delay)
        store.listen(self._on_change)

    def close(self) -> None:
        self._queue.close()

    def _on_change(self, change: Change) -> None:
        if change.resource == CRDS and change.type is not ChangeType.DELETED:
            self._queue.add(change.after.name)
        elif change.type is ChangeType.DELETED:
            self._enqueue_definition(change.after)

    def _enqueue_definition(self, gone: StoredObject) -> None:
        """Enqueue the definition of a deleted object: it may have been the last one."""
        definition = self._store.get(CRDS, "", str(gone.kind.group_resource))
        if definition is not None and definition.terminating:
            self._queue.add(definition.name)

    def _reconcile(self, name: str) -> None:
        existing = self._store.get(CRDS, "", name)
        if existing is None:
            return
        if existing.terminating:
            self._clean_up(existing)
        else:
            self._serve(existing)

    def _serve(self, existing: StoredObject) -> None:
        definition = existing.decode()
        self._update_catalog(definition)
        crd_documents.establish(definition, self._clock.now())
        if encode(definition) != existing.raw:
            self._store.replace(existing, existing.kind, definition, ACTOR)

    def _update_catalog(self, definition: JsonObject) -> None:
        resource = crd_documents.resource_of(definition)
        spec = encode(object_at(definition, "spec"))
        # Replacing an unchanged kind would have every stored object decoded again.
        if self._served.get(resource) != spec:
            versions, storage = crd_documents.derive_kinds(definition)
            if storage is not None:
                for store in self.stores:
                    store.reopen(resource)
                self.catalog.serve(versions, storage=storage)
            self._served[resource] = spec

    def _clean_up(self, existing: StoredObject) -> None:
        resource = crd_documents.resource_of(existing.decode())
        self.catalog.closing.add(resource)
        for store in self.stores:
            for stored in tuple(store.bucket(resource).listed()):
                if not stored.terminating:
                    delete_stored(store, stored, None, now=self._clock.now(), actor=ACTOR)
        if any(len(store.bucket(resource)) for store in self.stores):
            return
        self.catalog.withdraw(resource)
        self._served.pop(resource, None)
        self._release(existing)

    def _release(self, existing: StoredObject) -> None:
        desired = existing.decode()
        metadata = ensure_object(desired, "metadata")
        kept = [
            name for name in strings_at(metadata, "finalizers") if name != crd_documents.CLEANUP
        ]
        if not kept:
            self._store.remove(existing, ACTOR)
        elif len(kept) < len(existing.finalizers):
            set_finalizers(metadata, kept)
            self._store.replace(existing, existing.kind, desired, ACTOR)
