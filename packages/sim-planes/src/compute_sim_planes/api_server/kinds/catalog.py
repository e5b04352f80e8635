"""The catalogue of kinds that a plane currently serves.

Routing, discovery, the garbage collector and the namespace controller all read it, so a kind
appears and disappears for all of them at once. Planes that share their CRDs (Milo's projects) share
one catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from compute_sim_planes.api_server.kinds.kind import GroupResource, Kind


class Catalog:
    """Served kinds by group, version and plural, in insertion order."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._by_name: dict[tuple[str, str], Kind] = {}
        self._storage: dict[GroupResource, Kind] = {}
        self._listeners: list[Callable[[], None]] = []
        # Resources with a CRD that is being deleted: served, but no object can be created.
        self.closing: set[GroupResource] = set()
        # Incremented by every change; the key of cached discovery documents.
        self.epoch = 0
        for kind in kinds:
            self.serve((kind,), storage=kind)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind that `apiVersion` and `kind` of an object or ownerReference name."""
        return self._by_name.get((api_version, kind))

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._by_path.values()))

    def stored_kinds(self) -> Iterator[Kind]:
        """One kind per resource that has stored objects."""
        return (kind for kind in tuple(self._storage.values()) if "list" in kind.verbs)

    def serve(self, versions: Iterable[Kind], *, storage: Kind) -> None:
        """Serve a resource in these versions, replacing those served before."""
        self._drop(storage.group_resource)
        for kind in versions:
            self._by_path[kind.group, kind.version, kind.plural] = kind
            self._by_name[kind.api_version, kind.kind] = kind
        self._storage[storage.group_resource] = storage
        self._notify()

    def withdraw(self, resource: GroupResource) -> None:
        """Stop serving a resource. The caller deletes its objects."""
        self.closing.discard(resource)
        if self._drop(resource):
            self._notify()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _drop(self, resource: GroupResource) -> bool:
        served = [kind for kind in self._by_path.values() if kind.group_resource == resource]
        for kind in served:
            del self._by_path[kind.group, kind.version, kind.plural]
            del self._by_name[kind.api_version, kind.kind]
        return self._storage.pop(resource, None) is not None or bool(served)

    def _notify(self) -> None:
        self.epoch += 1
        for listener in self._listeners:
            listener()
