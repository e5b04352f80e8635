"""Which key is looked at next: deduplicated, one worker per key, fair between shares. Pure.

```
add ──► ready ──take──► in work ──done──► (forgotten, or ready again if added meanwhile)
add_at ─► waiting ──due──► ready
```

*Ready* keys queue per share (a tenant, usually the key's plane) and shares take turns, so that ten
thousand keys of one tenant delay another's by one pass. Inside a share fresh edits go before the
initial list. A key in work is never handed out again; adding it then makes it ready once it is
done. Taking a key drops its timer: the pass decides anew when to look again. No clock, no asyncio:
time is an argument, and who waits for whom is `reconcile.py`'s.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """Order inside a share; a key that is added twice keeps the more urgent of the two."""

    FRESH = 0
    BACKGROUND = 1  # the initial list, and the slow look at everything


@dataclass(frozen=True, slots=True)
class Taken(Generic[K]):
    """A key handed to a worker, and how long it had been ready."""

    key: K
    share: str
    waited: timedelta


@dataclass(frozen=True, slots=True)
class _Timer:
    due: timedelta
    share: str
    priority: Priority


@dataclass(frozen=True, slots=True)
class _Work:
    share: str
    since: timedelta


@dataclass(slots=True)
class _Share(Generic[K]):
    """Ready keys of one share by priority, each with the moment it became ready."""

    # One lane per priority, spelled out: shares come and go with every key, and walking over an
    # enumeration takes longer than all the rest.
    lanes: tuple[OrderedDict[K, timedelta], OrderedDict[K, timedelta]] = field(
        default_factory=lambda: (OrderedDict(), OrderedDict())
    )

    def pop(self) -> tuple[K, timedelta]:
        fresh, background = self.lanes
        return (fresh or background).popitem(last=False)

    def __len__(self) -> int:
        fresh, background = self.lanes
        return len(fresh) + len(background)


class FairQueue(Generic[K]):
    """The queue of one controller."""

    def __init__(self) -> None:
        # Insertion order is the order of turns: a share that had its turn goes to the end.
        self._shares: OrderedDict[str, _Share[K]] = OrderedDict()
        self._ready: dict[K, tuple[str, Priority]] = {}
        self._waiting: dict[K, _Timer] = {}
        self._heap: list[tuple[timedelta, int, K]] = []
        self._order = itertools.count()  # breaks ties, so that keys need no ordering
        self._working: dict[K, _Work] = {}
        self._again: dict[K, tuple[str, Priority]] = {}  # added while in work

    def __len__(self) -> int:
        """Keys that could be taken now, limits aside."""
        return len(self._ready)

    def add(
        self, key: K, share: str, *, now: timedelta, priority: Priority = Priority.FRESH
    ) -> bool:
        """Makes the key ready; False if that changed nothing."""
        if key in self._working:
            found = self._again.get(key)
            self._again[key] = (share, min(priority, found[1]) if found else priority)
            return found is None
        found = self._ready.get(key)
        if found is None:
            self._enqueue(key, share, priority, now)
            return True
        if priority < found[1]:  # a fresh edit overtakes the initial list
            since = self._shares[found[0]].lanes[found[1]].pop(key)
            self._ready[key] = (found[0], priority)
            self._shares[found[0]].lanes[priority][key] = since
        return False

    def add_at(
        self, key: K, share: str, *, due: timedelta, priority: Priority = Priority.FRESH
    ) -> None:
        """Makes the key ready at `due`, or earlier if it already waits for something earlier."""
        found = self._waiting.get(key)
        if found is not None and found.due <= due:
            return
        self._waiting[key] = _Timer(due, share, priority)
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._compact()

    def take(self, now: timedelta, may_run: Callable[[str], bool]) -> Taken[K] | None:
        """The next key of the next share that may run, marked as in work."""
        self._promote(now)
        for share in self._shares:
            if may_run(share):
                break
        else:
            return None
        ready = self._shares[share]
        key, since = ready.pop()
        del self._ready[key]
        if len(ready):
            self._shares.move_to_end(share)
        else:
            del self._shares[share]
        self._waiting.pop(key, None)
        self._working[key] = _Work(share, now)
        return Taken(key, share, now - since)

    def done(self, key: K, *, now: timedelta) -> timedelta:
        """Gives a key back; answers how long it was in work."""
        work = self._working.pop(key)
        again = self._again.pop(key, None)
        if again is not None:
            self._enqueue(key, again[0], again[1], now)
        return now - work.since

    def is_in_work(self, key: K) -> bool:
        return key in self._working

    def forget(self, is_gone: Callable[[K], bool]) -> int:
        """Drops what is ready or waiting and gone; what is in work ends by itself, and
        not again.
        """
        gone = [key for key in self._ready if is_gone(key)]
        for key in gone:
            share, priority = self._ready.pop(key)
            del self._shares[share].lanes[priority][key]
            if not len(self._shares[share]):
                del self._shares[share]
        waiting = [key for key in self._waiting if is_gone(key)]
        for key in waiting:
            del self._waiting[key]
        for key in [key for key in self._again if is_gone(key)]:
            del self._again[key]
        return len(set(gone) | set(waiting))

    @property
    def timers(self) -> int:
        """Timers held, superseded ones included: what a queue costs beside its keys."""
        return len(self._heap)

    def next_due(self) -> timedelta | None:
        """When the earliest timer fires."""
        self._drop_stale_timers()
        return self._heap[0][0] if self._heap else None

    def working(self) -> Iterator[tuple[K, timedelta]]:
        """Keys in work, with the moment each was taken."""
        return ((key, work.since) for key, work in self._working.items())

    def _enqueue(self, key: K, share: str, priority: Priority, now: timedelta) -> None:
        self._ready[key] = (share, priority)
        if share not in self._shares:
            self._shares[share] = _Share()
        self._shares[share].lanes[priority][key] = now

    def _promote(self, now: timedelta) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            timer = self._waiting.pop(key)
            self.add(key, timer.share, now=now, priority=timer.priority)

    def _compact(self) -> None:
        """A key edited all day long leaves a superseded timer per pass; they must not pile up."""
        if len(self._heap) > 2 * len(self._waiting) + 64:
            live = ((timer.due, next(self._order), key) for key, timer in self._waiting.items())
            self._heap = list(live)
            heapq.heapify(self._heap)

    def _drop_stale_timers(self) -> None:
        """Entries of the heap that were superseded by an earlier timer, or whose key was taken."""
        while self._heap:
            due, _, key = self._heap[0]
            timer = self._waiting.get(key)
            if timer is not None and timer.due == due:
                return
            heapq.heappop(self._heap)
