"""An informer: all objects of one kind in memory, with a callback for every change.

Reads may be slightly out of date; writes go to the server with the version they were made from.
Cached objects are shared and must not be changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeAlias

from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import EVERYTHING, Client, ListOptions, Resource
from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.json_types import JsonObject

# The index value of an object; empty: it is not indexed.
IndexFunction: TypeAlias = "Callable[[JsonObject], str]"
# An object before and after a change: before is None for a new object, after for a deleted one.
ResourceEventHandler: TypeAlias = "Callable[[JsonObject | None, JsonObject | None], None]"


class Informer:
    """Every object of one kind. `synced` is set once the first list is complete."""

    def __init__(
        self, client: Client, resource: Resource, selection: ListOptions = EVERYTHING
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self._client = client
        self._selection = selection
        self._objects: dict[NamespacedName, JsonObject] = {}
        self._listeners: list[ResourceEventHandler] = []
        self._indexes: dict[IndexFunction, dict[str, set[NamespacedName]]] = {}

    def index(self, index_function: IndexFunction) -> None:
        """Add an index; must be called before `run`."""
        self._indexes[index_function] = {}

    def find(self, index_function: IndexFunction, value: str) -> list[JsonObject]:
        """The objects with an index value, in key order."""
        return [self._objects[key] for key in sorted(self._indexes[index_function].get(value, ()))]

    def get(self, name: str, namespace: str = "") -> JsonObject | None:
        return self._objects.get(NamespacedName(namespace, name))

    def items(self) -> list[JsonObject]:
        """All objects in key order, which is the same in every run."""
        return [self._objects[key] for key in sorted(self._objects)]

    def listen(self, listener: ResourceEventHandler) -> None:
        """Call `listener` on every later change, and now for every cached object as new."""
        for existing in self.items():
            listener(None, existing)
        self._listeners.append(listener)

    async def run(self) -> None:
        """Lists and watches the kind until cancelled."""
        changes = list_and_watch(
            self._client, self.resource, self._selection, on_listed=self.synced.set
        )
        async with aclosing(changes):
            async for seen in changes:
                self._apply(seen.object, is_deleted=seen.is_deleted)

    def _apply(self, existing: JsonObject, *, is_deleted: bool) -> None:
        key = namespaced_name(existing)
        before = self._objects.pop(key, None)
        after = None if is_deleted else existing
        if after is not None:
            self._objects[key] = after
        self._reindex(key, before, after)
        for listener in tuple(self._listeners):
            # A deletion passes the last known object, even if it was never cached.
            listener(before or (existing if is_deleted else None), after)

    def _reindex(
        self, key: NamespacedName, before: JsonObject | None, after: JsonObject | None
    ) -> None:
        for derive, keys in self._indexes.items():
            if before is not None:
                keys.get(derive(before), set()).discard(key)
            if after is not None and (value := derive(after)):
                keys.setdefault(value, set()).add(key)
