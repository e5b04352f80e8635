"""The RBAC objects in a store, as the authorizer reads them.

Roles are read from the plane itself, so a binding takes effect with its commit and ends with its
deletion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.records import Change
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.json_types import JsonObject

_GROUP: Final = "rbac.authorization.k8s.io"


class StoredRoles:
    """Roles and bindings of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = 0
        store.listen(self._on_change)

    def version(self) -> int:
        """A number that changes with each write of a role or a binding."""
        return self._version

    def objects(self, resource: str) -> Iterable[JsonObject]:
        bucket = self._store.bucket(GroupResource(_GROUP, resource))
        return (stored.decode() for stored in bucket.listed())

    def _on_change(self, change: Change) -> None:
        if change.resource.group == _GROUP:
            self._version = change.revision
