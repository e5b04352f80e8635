"""A kind held in memory, as Karmada's controllers read it, with every change told.

Reads come from here and may be a moment old; writes go to the server and name the version they were
made from. Objects are shared by everybody who reads them: nobody changes one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeAlias

from compute_sim_planes.client import EVERYTHING, Client, Resource, Selection
from compute_sim_planes.following import follow
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.keyed_work import Key, key_of

# By what an object is found beside its name; empty: it is not.
Derive: TypeAlias = "Callable[[JsonObject], str]"
# An object before and after a change: None before it was made, None when it is gone.
Listener: TypeAlias = "Callable[[JsonObject | None, JsonObject | None], None]"


class Informer:
    """Every object of one kind. `synced` once all that existed at the start is known."""

    def __init__(
        self, client: Client, resource: Resource, selection: Selection = EVERYTHING
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self._client = client
        self._selection = selection
        self._objects: dict[Key, JsonObject] = {}
        self._listeners: list[Listener] = []
        self._indexes: dict[Derive, dict[str, set[Key]]] = {}

    def index(self, derive: Derive) -> None:
        """Makes objects findable by what is derived from them; before `run`."""
        self._indexes[derive] = {}

    def find(self, derive: Derive, value: str) -> list[JsonObject]:
        """The objects of that value, in the order of their keys."""
        return [self._objects[key] for key in sorted(self._indexes[derive].get(value, ()))]

    def get(self, name: str, namespace: str = "") -> JsonObject | None:
        return self._objects.get(Key(namespace, name))

    def items(self) -> list[JsonObject]:
        """All of them in the order of their keys, which is the same in every run."""
        return [self._objects[key] for key in sorted(self._objects)]

    def listen(self, listener: Listener) -> None:
        """Have every change told from now on, and all that is there already as new."""
        for found in self.items():
            listener(None, found)
        self._listeners.append(listener)

    async def run(self) -> None:
        """Follows the kind until it is cancelled."""
        changes = follow(self._client, self.resource, self._selection, on_listed=self.synced.set)
        async with aclosing(changes):
            async for seen in changes:
                self._take(seen.object, is_gone=seen.is_gone)

    def _take(self, found: JsonObject, *, is_gone: bool) -> None:
        key = key_of(found)
        before = self._objects.pop(key, None)
        after = None if is_gone else found
        if after is not None:
            self._objects[key] = after
        self._reindex(key, before, after)
        for listener in tuple(self._listeners):
            # A deletion tells the object as it last was, also when nobody knew it.
            listener(before or (found if is_gone else None), after)

    def _reindex(self, key: Key, before: JsonObject | None, after: JsonObject | None) -> None:
        for derive, keys in self._indexes.items():
            if before is not None:
                keys.get(derive(before), set()).discard(key)
            if after is not None and (value := derive(after)):
                keys.setdefault(value, set()).add(key)
