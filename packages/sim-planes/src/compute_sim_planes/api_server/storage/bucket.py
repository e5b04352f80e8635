"""All objects of one resource, in list order, with the changes that led here.

History serves two readers: a watch that resumes, and a list that is continued at the version it
began with. Both end where compaction has been. A bucket numbers nothing and decides nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter

from compute_sim_planes.api_server.storage.records import Change, ChangeType, Stored

_revision = attrgetter("revision")


class Bucket:
    """Objects of one resource by key."""

    def __init__(self, opened: int) -> None:
        # From which revision on changes can be watched; a kind that is served anew begins anew.
        self.opened = opened
        self._objects: dict[str, Stored] = {}
        self._keys: list[str] = []
        self._history: list[Change] = []
        self._watchers: list[Callable[[Change], None]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> Stored | None:
        return self._objects.get(key)

    def add_change(self, change: Change) -> None:
        """Take over a commit and tell every watcher, in the order they came."""
        key = change.after.key
        if change.type is ChangeType.DELETED:
            del self._objects[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if change.type is ChangeType.ADDED:
                insort(self._keys, key)
            self._objects[key] = change.after
        self._history.append(change)
        # A copy: a watcher may end its own stream, or another's, because of what it sees.
        for tell in tuple(self._watchers):
            tell(change)

    def watch(self, tell: Callable[[Change], None]) -> Callable[[], None]:
        """Have `tell` called on every later change; what is returned undoes it, once or twice."""
        self._watchers.append(tell)

        def stop() -> None:
            if tell in self._watchers:
                self._watchers.remove(tell)

        return stop

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def listed(self, prefix: str = "", after: str = "") -> Iterator[Stored]:
        """Objects whose key starts with `prefix`, in key order, beginning behind `after`."""
        return (self._objects[key] for key in self._range(self._keys, prefix, after))

    def listed_at(self, revision: int, prefix: str = "", after: str = "") -> Iterator[Stored]:
        """The same as it was at `revision`, which must not be compacted."""
        later = self.changes_after(revision)
        if not later:
            return self.listed(prefix, after)
        # Of each object the first later change tells what it was before.
        past: dict[str, Stored | None] = {}
        for change in later:
            past.setdefault(change.after.key, change.before)
        keys = sorted({*self._keys, *past})
        found = (past.get(key, self._objects.get(key)) for key in self._range(keys, prefix, after))
        return (stored for stored in found if stored is not None)

    def count(self, prefix: str = "", after: str = "") -> int:
        first, last = self._bounds(self._keys, prefix, after)
        return max(0, last - first)

    def changes_after(self, revision: int) -> list[Change]:
        return self._history[bisect_right(self._history, revision, key=_revision) :]

    def forget_through(self, revision: int) -> None:
        """Drop history up to and with `revision`."""
        del self._history[: bisect_right(self._history, revision, key=_revision)]

    def last_revision_before(self, moment: datetime) -> int:
        """The youngest change older than `moment`; 0 if there is none."""
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
        # Object keys are ASCII, so this sorts behind everything that starts with the prefix.
        last = bisect_left(keys, prefix + "\x7f") if prefix else len(keys)
        return first, last
