"""All objects of one resource in list order, with the history of their changes.

History serves a watch that resumes and a list that continues at its first version; both fail for
compacted revisions. The store assigns revisions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter

from compute_sim_planes.api_server.storage.records import Change, ChangeType, StoredObject

_revision = attrgetter("revision")


class Bucket:
    """Objects of one resource by key."""

    def __init__(self, opened: int) -> None:
        # The first revision that can be watched; later than 0 for a kind that was served anew.
        self.opened = opened
        self._objects: dict[str, StoredObject] = {}
        self._keys: list[str] = []
        self._history: list[Change] = []
        self._watchers: list[Callable[[Change], None]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> StoredObject | None:
        return self._objects.get(key)

    def add_change(self, change: Change) -> None:
        """Apply a commit and call every watcher, in order of registration."""
        key = change.after.key
        if change.type is ChangeType.DELETED:
            del self._objects[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if change.type is ChangeType.ADDED:
                insort(self._keys, key)
            self._objects[key] = change.after
        self._history.append(change)
        # A copy: a watcher may end its own stream, or another's, during the call.
        for callback in tuple(self._watchers):
            callback(change)

    def watch(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Call `callback` on every later change; the returned function, callable repeatedly, stops
        that.
        """
        self._watchers.append(callback)

        def stop() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return stop

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def listed(self, prefix: str = "", after: str = "") -> Iterator[StoredObject]:
        """Objects with keys that start with `prefix`, in key order, after the key `after`."""
        return (self._objects[key] for key in self._range(self._keys, prefix, after))

    def listed_at(self, revision: int, prefix: str = "", after: str = "") -> Iterator[StoredObject]:
        """The same at an earlier `revision`, which must not be compacted."""
        later = self.changes_after(revision)
        if not later:
            return self.listed(prefix, after)
        # The first later change of an object holds its earlier state.
        past: dict[str, StoredObject | None] = {}
        for change in later:
            past.setdefault(change.after.key, change.before)
        keys = sorted({*self._keys, *past})
        existing = (
            past.get(key, self._objects.get(key)) for key in self._range(keys, prefix, after)
        )
        return (stored for stored in existing if stored is not None)

    def count(self, prefix: str = "", after: str = "") -> int:
        first, last = self._bounds(self._keys, prefix, after)
        return max(0, last - first)

    def changes_after(self, revision: int) -> list[Change]:
        return self._history[bisect_right(self._history, revision, key=_revision) :]

    def compact_through(self, revision: int) -> None:
        """Drop history up to and including `revision`."""
        del self._history[: bisect_right(self._history, revision, key=_revision)]

    def last_revision_before(self, moment: datetime) -> int:
        """The revision of the last change before `moment`; 0 if there is none."""
        older = bisect_left(self._history, moment, key=attrgetter("at"))
        return self._history[older - 1].revision if older else 0

    def _range(self, keys: list[str], prefix: str, after: str) -> list[str]:
        first, last = self._bounds(keys, prefix, after)
        return keys[first:last]

    @staticmethod
    def _bounds(keys: list[str], prefix: str, after: str) -> tuple[int, int]:
        first = bisect_left(keys, prefix) if prefix else 0
        if after:
            first = max(first, bisect_right(keys, after))
        # Object keys are ASCII, so this sorts after every key with the prefix.
        last = bisect_left(keys, prefix + "\x7f") if prefix else len(keys)
        return first, last
