"""Keys of one controller that may not be looked at now, each where the event that frees it finds
it. No I/O, no clock.

```
parked     until its plane answers again      one answer for all: no key polls
unsynced   until a cache is complete
held       until the caches have seen its last write, of which a store tells once
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeAlias, TypeVar

from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role

T = TypeVar("T")

# By its plane, or, while no plane of a role is engaged, by that role.
Cache: TypeAlias = tuple[PlaneName | Role, Kind]


class Waiting:
    """All that wait."""

    def __init__(self) -> None:
        # With the moment before which a key is not to be looked at: its own back-off.
        self._parked: dict[PlaneName, dict[ObjectKey, timedelta]] = {}
        # By the cache that is not complete, so that one that becomes so wakes its own keys only.
        self._unsynced: dict[Cache, dict[ObjectKey, None]] = {}
        self._held: set[ObjectKey] = set()

    def park(self, plane: PlaneName, key: ObjectKey, due: timedelta) -> None:
        """Until the plane answers, and not before `due`."""
        self._parked.setdefault(plane, {})[key] = due

    def park_unless_parked(self, plane: PlaneName, key: ObjectKey, due: timedelta) -> None:
        """The same for a key that was not tried: it waits no longer than before."""
        self._parked.setdefault(plane, {}).setdefault(key, due)

    def take_parked(self, plane: PlaneName) -> dict[ObjectKey, timedelta]:
        """Who waited for this plane to answer."""
        return self._parked.pop(plane, {})

    def await_cache(self, cache: Cache, key: ObjectKey) -> None:
        self._unsynced.setdefault(cache, {})[key] = None

    def take_unsynced(self, cache: Cache) -> dict[ObjectKey, None]:
        """Who waited for this cache to be complete."""
        return self._unsynced.pop(cache, {})

    def hold(self, key: ObjectKey) -> bool:
        """Until a store tells; False if it waits for that already, and will be told once."""
        is_new = key not in self._held
        self._held.add(key)
        return is_new

    def release(self, key: ObjectKey) -> None:
        self._held.discard(key)

    def leave(self, plane: PlaneName, is_gone: Callable[[ObjectKey], bool]) -> list[ObjectKey]:
        """A plane is gone, and its keys with it; gives who waited for it and looks without it.

        Its stores will never tell again; which of the held waited for one of them, nobody knows.
        """
        for unsynced in self._unsynced.values():
            _drop(unsynced, is_gone)
        for parked in self._parked.values():
            _drop(parked, is_gone)
        held, self._held = sorted(self._held), set()
        waited = [*self.take_parked(plane), *self._of_caches(plane), *held]
        return [key for key in dict.fromkeys(waited) if not is_gone(key)]

    def _of_caches(self, plane: PlaneName) -> Iterator[ObjectKey]:
        for cache in [cache for cache in self._unsynced if cache[0] == plane]:
            yield from self.take_unsynced(cache)


def _drop(keys: dict[ObjectKey, T], is_gone: Callable[[ObjectKey], bool]) -> None:
    for key in [key for key in keys if is_gone(key)]:
        del keys[key]
