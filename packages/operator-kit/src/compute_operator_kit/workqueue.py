"""Which key is looked at next: deduplicated, one worker per key, fair between shares. Pure.

```
add ──► ready ──take──► in work ──done──► (forgotten, or ready again if added meanwhile)
add_at ─► waiting ──due──► ready
```

*Ready* keys queue per share (a tenant, usually the key's plane) and shares take turns, so that ten
thousand keys of one tenant delay another's by one pass. Fresh edits go before what the initial list
shows to be behind, and both before the rest of it, whoever's it is; but the rest has every ninth
turn, so that nobody's edits can keep it waiting for good. A key in work is never handed out again;
adding it then makes it ready once it is done. Where a queue has a tempo, a key that was looked at
too often of late becomes ready a moment later (`pacing.py`). Taking a key drops its timer: the pass
decides anew when to look again. No clock, no asyncio: time is an argument, and who waits for whom
is `manager.py`'s.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from compute_operator_kit.pacing import Pace, Tempo

K = TypeVar("K", bound=Hashable)

OVERTAKEN_AT_MOST: Final = 8  # urgent keys in a row that go before one that is not


class Priority(IntEnum):
    """A key that is added twice keeps the more urgent of the two."""

    FRESH = 0
    BEHIND = 1  # of the initial list, and its state shows that something is to be done
    BACKGROUND = 2  # the rest of the initial list, and the slow look at everything


class Taken(msgspec.Struct, Generic[K], frozen=True):
    """A key handed to a worker, and how long it had been ready."""

    key: K
    share: str
    waited: timedelta


class _Timer(msgspec.Struct, frozen=True, gc=False):
    due: timedelta
    share: str
    priority: Priority


class _Work(msgspec.Struct, frozen=True, gc=False):
    share: str
    since: timedelta


_Lane: TypeAlias = "OrderedDict[K, timedelta]"  # keys, each with the moment it became ready


@dataclass(slots=True)
class _Share(Generic[K]):
    """Ready keys of one share by priority."""

    # One lane per priority, spelled out: shares come and go with every key, and walking over an
    # enumeration takes longer than all the rest.
    lanes: tuple[_Lane[K], _Lane[K], _Lane[K]] = field(
        default_factory=lambda: (OrderedDict(), OrderedDict(), OrderedDict())
    )

    def pop(self, *, is_urgent: bool) -> tuple[K, timedelta]:
        fresh, behind, background = self.lanes
        return ((fresh or behind) if is_urgent else background).popitem(last=False)

    @property
    def is_urgent(self) -> bool:
        return bool(self.lanes[0] or self.lanes[1])

    @property
    def is_patient(self) -> bool:
        return bool(self.lanes[2])


class FairQueue(Generic[K]):
    """The queue of one controller."""

    def __init__(self, tempo: Tempo | None = None) -> None:
        self._shares: dict[str, _Share[K]] = {}
        # Shares with keys that are urgent, and with keys that are not. Insertion order is the order
        # of turns: a share that had its turn goes to the end.
        self._urgent: OrderedDict[str, None] = OrderedDict()
        self._patient: OrderedDict[str, None] = OrderedDict()
        self._overtaken = 0  # urgent keys in a row that went before one that was not
        self._pace: Pace[K] | None = None if tempo is None else Pace(tempo)
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
            share, former = found
            since = self._shares[share].lanes[former].pop(key)
            self._put(key, share, priority, since)
            self._drop_empty(share)
        return False

    def add_at(
        self, key: K, share: str, *, due: timedelta, priority: Priority = Priority.FRESH
    ) -> None:
        """Makes the key ready at `due`, or earlier if it already waits for something earlier."""
        found = self._waiting.get(key)
        if found is not None and found.due <= due:
            if priority < found.priority:
                self._waiting[key] = msgspec.structs.replace(found, priority=priority)
            return
        self._waiting[key] = _Timer(due, share, priority)
        heapq.heappush(self._heap, (due, next(self._order), key))
        self._compact()

    def has_any(self, now: timedelta) -> bool:
        """Whether a key is ready, or a timer over; asked after every pass, of every queue."""
        return bool(self._ready) or (bool(self._heap) and self._heap[0][0] <= now)

    def take(
        self, now: timedelta, may_run: Callable[[str], bool], *, only_urgent: bool = False
    ) -> Taken[K] | None:
        """The next key of the next share that may run, marked as in work."""
        if not self.has_any(now):
            return None
        self._promote(now)
        share, is_urgent = self._choose(may_run, only_urgent=only_urgent)
        if share is None:
            return None
        key, since = self._shares[share].pop(is_urgent=is_urgent)
        del self._ready[key]
        (self._urgent if is_urgent else self._patient).move_to_end(share)
        self._drop_empty(share)
        self._overtaken = self._overtaken + 1 if is_urgent and self._patient else 0
        self._waiting.pop(key, None)
        self._working[key] = _Work(share, now)
        return Taken(key, share, now - since)

    def _choose(
        self, may_run: Callable[[str], bool], *, only_urgent: bool
    ) -> tuple[str | None, bool]:
        """Whose turn it is, and whether for something urgent."""
        if only_urgent:
            order: tuple[bool, ...] = (True,)
        elif self._overtaken < OVERTAKEN_AT_MOST:
            order = (True, False)
        else:
            order = (False, True)
        for is_urgent in order:
            for share in self._urgent if is_urgent else self._patient:
                if may_run(share):
                    return share, is_urgent
        return None, False

    def done(self, key: K, *, now: timedelta, was_looked_at: bool = True) -> timedelta:
        """Gives a key back; answers how long it was in work."""
        work = self._working.pop(key)
        if self._pace is not None and was_looked_at:
            self._pace.book(key, work.since)
        again = self._again.pop(key, None)
        if again is not None:
            self._enqueue(key, again[0], again[1], now)
        return now - work.since

    def is_in_work(self, key: K) -> bool:
        return key in self._working

    def is_added_again(self, key: K) -> bool:
        """Whether a key in work was added meanwhile."""
        return key in self._again

    def is_patient(self, key: K) -> bool:
        """Whether the key is ready, and nothing urgent."""
        found = self._ready.get(key)
        return found is not None and found[1] is Priority.BACKGROUND

    def patient(self) -> tuple[K, ...]:
        """Keys that are ready, and nothing urgent."""
        return tuple(filter(self.is_patient, self._ready))

    def forget(self, is_gone: Callable[[K], bool]) -> int:
        """Drops what is ready or waiting and gone; what is in work ends by itself, and
        not again.
        """
        gone = [key for key in self._ready if is_gone(key)]
        for key in gone:
            share, priority = self._ready.pop(key)
            del self._shares[share].lanes[priority][key]
            self._drop_empty(share)
        waiting = [key for key in self._waiting if is_gone(key)]
        for key in waiting:
            del self._waiting[key]
        for key in [key for key in self._again if is_gone(key)]:
            del self._again[key]
        if self._pace is not None:
            self._pace.forget(is_gone)
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
        due = None if self._pace is None else self._pace.find_due(key, now)
        if due is None:
            self._put(key, share, priority, now)
        else:
            self.add_at(key, share, due=due, priority=priority)

    def _put(self, key: K, share: str, priority: Priority, since: timedelta) -> None:
        self._ready[key] = (share, priority)
        found = self._shares.get(share)
        if found is None:
            found = self._shares[share] = _Share()
        found.lanes[priority][key] = since
        (self._patient if priority is Priority.BACKGROUND else self._urgent)[share] = None

    def _drop_empty(self, share: str) -> None:
        """A key has left the share: it takes no more turns for what it has none of."""
        found = self._shares[share]
        is_urgent, is_patient = found.is_urgent, found.is_patient
        if not is_urgent:
            self._urgent.pop(share, None)
        if not is_patient:
            self._patient.pop(share, None)
        if not is_urgent and not is_patient:
            del self._shares[share]

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
