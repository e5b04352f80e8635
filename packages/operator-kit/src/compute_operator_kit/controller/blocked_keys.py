"""Keys of one controller that may not be reconciled now, by the event that unblocks them.

Without it, blocked keys would poll: one timer per key for a plane that is away. Pure, no clock.

```
parked     until its plane answers again: one probe unblocks all
suspended  until its project resumes: one write of one key finds out
unsynced   until a cache is complete
held       until the caches have seen its last write
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeAlias, TypeVar

from compute_operator_kit.controller.workqueue import Priority
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role

T = TypeVar("T")

# The plane of a cache or, while no plane of a role is engaged, the role.
Cache: TypeAlias = tuple[PlaneName | Role, Kind]


class BlockedKeys:
    """Blocked keys by plane, by cache, and held by their own writes."""

    def __init__(self) -> None:
        # Each key with its back-off: not reconciled before that time.
        self._parked: dict[PlaneName, dict[ObjectKey, timedelta]] = {}
        # By cache, so that one that becomes complete enqueues only its own keys.
        self._unsynced: dict[Cache, dict[ObjectKey, Priority]] = {}
        self._held: set[ObjectKey] = set()
        self._suspended: dict[PlaneName, dict[ObjectKey, None]] = {}

    def park(self, plane: PlaneName, key: ObjectKey, due: timedelta) -> None:
        """Blocks a key until the plane answers, and not before `due`."""
        self._parked.setdefault(plane, {})[key] = due

    def park_unless_parked(self, plane: PlaneName, key: ObjectKey, due: timedelta) -> None:
        """Parks a key that sent no request: a parked key keeps its earlier `due`."""
        self._parked.setdefault(plane, {}).setdefault(key, due)

    def take_parked(self, plane: PlaneName) -> dict[ObjectKey, timedelta]:
        """Keys that waited for this plane to answer."""
        return self._parked.pop(plane, {})

    def suspend(self, plane: PlaneName, key: ObjectKey) -> None:
        """Blocks a key until the project resumes."""
        self._suspended.setdefault(plane, {})[key] = None

    def forget_suspended(self, key: ObjectKey) -> tuple[PlaneName, ...]:
        """The key was reconciled: only its new outcome counts. Returns the projects that other keys
        wait for.
        """
        for keys in self._suspended.values():
            keys.pop(key, None)
        return tuple(plane for plane, keys in self._suspended.items() if keys)

    def take_suspended(self, plane: PlaneName, at_most: int | None = None) -> list[ObjectKey]:
        """Keys that waited for this project to resume, those that waited longest first."""
        keys = self._suspended.get(plane, {})
        taken = list(keys)[:at_most]
        for key in taken:
            del keys[key]
        if not keys:
            self._suspended.pop(plane, None)
        return taken

    def await_cache(self, cache: Cache, key: ObjectKey, priority: Priority = Priority.LOW) -> None:
        keys = self._unsynced.setdefault(cache, {})
        keys[key] = min(priority, keys.get(key, priority))

    def take_unsynced(self, cache: Cache) -> dict[ObjectKey, Priority]:
        """Keys that waited for this cache to be complete, with their priorities."""
        return self._unsynced.pop(cache, {})

    def hold(self, key: ObjectKey) -> bool:
        """Blocks a key until `release`; False if it is held already."""
        is_new = key not in self._held
        self._held.add(key)
        return is_new

    def release(self, key: ObjectKey) -> None:
        self._held.discard(key)

    def leave(self, plane: PlaneName, is_gone: Callable[[ObjectKey], bool]) -> list[ObjectKey]:
        """Drops the keys of a plane that is gone; returns the other keys that waited for it.

        All held keys are returned: it is not known which of them waited for a store of that plane,
        and such a store calls back no more.
        """
        for unsynced in self._unsynced.values():
            _drop(unsynced, is_gone)
        for parked in self._parked.values():
            _drop(parked, is_gone)
        for suspended in self._suspended.values():
            _drop(suspended, is_gone)
        held, self._held = sorted(self._held), set()
        refused = self.take_suspended(plane)
        waited = [*self.take_parked(plane), *refused, *self._of_caches(plane), *held]
        return [key for key in dict.fromkeys(waited) if not is_gone(key)]

    def _of_caches(self, plane: PlaneName) -> Iterator[ObjectKey]:
        for cache in [cache for cache in self._unsynced if cache[0] == plane]:
            yield from self.take_unsynced(cache)


def _drop(keys: dict[ObjectKey, T], is_gone: Callable[[ObjectKey], bool]) -> None:
    for key in [key for key in keys if is_gone(key)]:
        del keys[key]
