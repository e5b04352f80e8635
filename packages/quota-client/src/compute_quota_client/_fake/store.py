"""Objects with versions and a history that watches read; one counter for all planes, as in Milo."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from compute_quota_client._fake.objects import AnyObject, Object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime


class Where(NamedTuple):
    """The key of an object; `plane` is a project, or "" for the root."""

    plane: str
    resource: str
    namespace: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history."""

    where: Where
    version: int
    before: Object | None
    after: Object | None


class Store:
    """All objects of the fake. Callers get copies, so that they cannot change the history."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._objects: dict[Where, Object] = {}
        self.history: list[Change] = []
        self.version = 1
        # Watches from before this version are answered with 410.
        self.oldest = 0
        self._arrived = asyncio.Event()

    def find(self, where: Where, kind: type[AnyObject]) -> AnyObject | None:
        """A copy of the object, or None."""
        stored = self._objects.get(where)
        return stored.model_copy(deep=True) if isinstance(stored, kind) else None

    def all(self, plane: str, kind: type[AnyObject]) -> Iterator[AnyObject]:
        """Copies of all objects of a kind in a plane, by namespace and name."""
        for where in sorted(self._objects, key=str):
            stored = self._objects[where]
            if where.plane == plane and isinstance(stored, kind):
                yield stored.model_copy(deep=True)

    def places(self, resource: str) -> list[Where]:
        """Keys of the objects of a resource, in all planes."""
        return sorted((where for where in self._objects if where.resource == resource), key=str)

    def create(self, where: Where, wanted: AnyObject) -> AnyObject:
        """Stores a new object, with the metadata that a server sets."""
        made = wanted.model_copy(deep=True)
        made.metadata.namespace = where.namespace
        made.metadata.uid = str(uuid.uuid4())
        made.metadata.creation_timestamp = self._now().replace(microsecond=0)
        made.metadata.generation = None if where.resource == "namespaces" else 1
        return self._commit(where, made)

    def update(self, where: Where, changed: AnyObject) -> AnyObject:
        """Stores a changed object."""
        return self._commit(where, changed.model_copy(deep=True))

    def delete(self, where: Where) -> None:
        """Removes an object, or sets its deletionTimestamp where it has a finalizer."""
        stored = self._objects[where].model_copy(deep=True)
        if stored.metadata.finalizers:
            if stored.metadata.deletion_timestamp is None:
                stored.metadata.deletion_timestamp = self._now().replace(microsecond=0)
                stored.metadata.deletion_grace_period_seconds = 0
                self._commit(where, stored)
            return
        self.version += 1
        before = self._objects.pop(where)
        self._publish(Change(where, self.version, before, None))

    def forget_history(self) -> None:
        """Drops the history: a watch from an earlier version must list again."""
        self.version += 1
        self.history.clear()
        self.oldest = self.version

    async def wait_for_change(self) -> None:
        """Returns when something has changed."""
        await self._arrived.wait()

    def _commit(self, where: Where, changed: AnyObject) -> AnyObject:
        self.version += 1
        changed.metadata.resource_version = str(self.version)
        before = self._objects.get(where)
        if changed.metadata.deletion_timestamp is not None and not changed.metadata.finalizers:
            self._objects.pop(where, None)
            self._publish(Change(where, self.version, before, None))
        else:
            self._objects[where] = changed
            self._publish(Change(where, self.version, before, changed))
        return changed.model_copy(deep=True)

    def _publish(self, change: Change) -> None:
        self.history.append(change)
        arrived, self._arrived = self._arrived, asyncio.Event()
        arrived.set()
