"""The controller of CustomResourceDefinitions: makes kinds appear, change and disappear.

A definition takes effect a moment after it was written, as on a real plane: until then its kind is
not served. One that is deleted takes its objects along first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server import crd_documents
from compute_sim_planes.api_server.catalog import Catalog
from compute_sim_planes.api_server.controllers.deferred import DeferredQueue
from compute_sim_planes.api_server.crd_documents import CRDS
from compute_sim_planes.api_server.deletion import delete_stored
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.api_server.storage.records import Change, ChangeType, Stored, encode
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.api_server.system_fields import set_finalizers
from compute_sim_planes.json_types import JsonObject, ensure_object, object_at, strings_at

ACTOR: Final = "system:apiserver"


class DefinitionController:
    """Keeps the catalogue in step with the definitions of one store, and their objects in one or
    more stores.
    """

    def __init__(self, store: Store, catalog: Catalog, clock: Clock, delay: timedelta) -> None:
        self._store = store
        self.catalog = catalog
        self._clock = clock
        # Where objects of these kinds lie; planes that share their definitions add their stores.
        self.stores: list[Store] = [store]
        self._served: dict[GroupResource, bytes] = {}
        self._queue: DeferredQueue[str] = DeferredQueue(self._look, delay)
        store.listen(self._notice)

    def close(self) -> None:
        self._queue.close()

    def _notice(self, change: Change) -> None:
        if change.resource == CRDS and change.type is not ChangeType.DELETED:
            self._queue.add(change.after.name)
        elif change.type is ChangeType.DELETED:
            self._wake_definition(change.after)

    def _wake_definition(self, gone: Stored) -> None:
        """The last object of a kind may be what its definition waits for."""
        definition = self._store.get(CRDS, "", str(gone.kind.group_resource))
        if definition is not None and definition.terminating:
            self._queue.add(definition.name)

    def _look(self, name: str) -> None:
        found = self._store.get(CRDS, "", name)
        if found is None:
            return
        if found.terminating:
            self._clean_up(found)
        else:
            self._serve(found)

    def _serve(self, found: Stored) -> None:
        definition = found.decode()
        self._update_catalog(definition)
        crd_documents.establish(definition, self._clock.now())
        if encode(definition) != found.raw:
            self._store.replace(found, found.kind, definition, ACTOR)

    def _update_catalog(self, definition: JsonObject) -> None:
        resource = crd_documents.resource_of(definition)
        spec = encode(object_at(definition, "spec"))
        # New values of an unchanged kind would have every stored object read again.
        if self._served.get(resource) != spec:
            versions, storage = crd_documents.derive_kinds(definition)
            if storage is not None:
                for store in self.stores:
                    store.reopen(resource)
                self.catalog.serve(versions, storage=storage)
            self._served[resource] = spec

    def _clean_up(self, found: Stored) -> None:
        resource = crd_documents.resource_of(found.decode())
        self.catalog.closing.add(resource)
        for store in self.stores:
            for stored in tuple(store.bucket(resource).listed()):
                if not stored.terminating:
                    delete_stored(store, stored, None, now=self._clock.now(), actor=ACTOR)
        if any(len(store.bucket(resource)) for store in self.stores):
            return
        self.catalog.withdraw(resource)
        self._served.pop(resource, None)
        self._release(found)

    def _release(self, found: Stored) -> None:
        wanted = found.decode()
        metadata = ensure_object(wanted, "metadata")
        kept = [
            name for name in strings_at(metadata, "finalizers") if name != crd_documents.CLEANUP
        ]
        if not kept:
            self._store.remove(found, ACTOR)
        elif len(kept) < len(found.finalizers):
            set_finalizers(metadata, kept)
            self._store.replace(found, found.kind, wanted, ACTOR)
