"""The workqueue of one controller: deduplicated keys, one worker per key, fair between tenants.

```
add ────► ready ──get──► processing ──done──► (forgotten, or ready again if added meanwhile)
add_at ─► waiting ──due──► ready
```

Without turns between fairness keys (usually the plane of a key), ten thousand keys of one tenant
would delay every key of another. Keys of watch events come before out-of-date keys of the initial
list, and both before the rest of it; the rest has every ninth turn, so that constant edits do not
starve it. A key that is being processed is not handed out again; added then, it is ready once it is
done. With a rate limit, a key that was reconciled too often becomes ready later
(`key_rate_limiter.py`). Taking a key drops its timer: the reconcile decides when to requeue. Pure:
no clock, no asyncio, time is an argument.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from compute_operator_kit.controller.key_rate_limiter import KeyRateLimit, KeyRateLimiter

K = TypeVar("K", bound=Hashable)

MOST_URGENT_IN_A_ROW: Final = 8  # before one key of low priority


class Priority(IntEnum):
    """A key that is added twice keeps the more urgent one."""

    HIGH = 0
    OUT_OF_DATE = 1  # of the initial list, and its cached state shows that a write is needed
    LOW = 2  # the rest of the initial list, and the resync


class QueuedKey(msgspec.Struct, Generic[K], frozen=True):
    """A key for a worker, with the time it had been ready."""

    key: K
    fairness_key: str
    waited: timedelta
    priority: Priority = Priority.HIGH


class _Timer(msgspec.Struct, frozen=True, gc=False):
    due: timedelta
    fairness_key: str
    priority: Priority


_ReadyKeys: TypeAlias = "OrderedDict[K, timedelta]"  # keys, each with the moment it became ready


@dataclass(slots=True)
class _KeysByPriority(Generic[K]):
    """Ready keys of one fairness key, by priority."""

    # One map per priority, spelled out: these objects are made and dropped with nearly every key,
    # and iterating over the enumeration takes longer than all the rest.
    by_priority: tuple[_ReadyKeys[K], _ReadyKeys[K], _ReadyKeys[K]] = field(
        default_factory=lambda: (OrderedDict(), OrderedDict(), OrderedDict())
    )

    def pop(self, *, is_urgent: bool) -> tuple[K, timedelta]:
        high, out_of_date, low = self.by_priority
        return ((high or out_of_date) if is_urgent else low).popitem(last=False)

    @property
    def is_urgent(self) -> bool:
        return bool(self.by_priority[0] or self.by_priority[1])

    @property
    def has_low_priority(self) -> bool:
        return bool(self.by_priority[2])


class FairQueue(Generic[K]):
    """A priority queue with turns between fairness keys."""

    def __init__(self, rate_limit: KeyRateLimit | None = None) -> None:
        self._ready_by_fairness_key: dict[str, _KeysByPriority[K]] = {}
        # Fairness keys with urgent keys, and with keys of low priority. Insertion order is the
        # order of turns: a fairness key that had its turn moves to the end.
        self._urgent: OrderedDict[str, None] = OrderedDict()
        self._low_priority: OrderedDict[str, None] = OrderedDict()
        self._urgent_in_a_row = 0
        self._rate_limiter: KeyRateLimiter[K] | None = (
            None if rate_limit is None else KeyRateLimiter(rate_limit)
        )
        self._ready: dict[K, tuple[str, Priority]] = {}
        self._waiting: dict[K, _Timer] = {}
        self._timer_heap: list[tuple[timedelta, int, K]] = []
        self._order = itertools.count()  # breaks ties: keys need no ordering
        self._processing: dict[K, timedelta] = {}  # each with the time it was taken
        self._dirty: dict[K, tuple[str, Priority]] = {}  # added while processing

    def __len__(self) -> int:
        """Ready keys, including those that a limit holds back."""
        return len(self._ready)

    def add(
        self, key: K, fairness_key: str, *, now: timedelta, priority: Priority = Priority.HIGH
    ) -> bool:
        """Makes the key ready; False if it was so already."""
        if key in self._processing:
            existing = self._dirty.get(key)
            self._dirty[key] = (fairness_key, min(priority, existing[1]) if existing else priority)
            return existing is None
        existing = self._ready.get(key)
        if existing is None:
            self._enqueue(key, fairness_key, priority, now)
            return True
        if priority < existing[1]:  # an edit overtakes the initial list
            fairness_key, former = existing
            since = self._ready_by_fairness_key[fairness_key].by_priority[former].pop(key)
            self._make_ready(key, fairness_key, priority, since)
            self._drop_empty(fairness_key)
        return False

    def add_at(
        self, key: K, fairness_key: str, *, due: timedelta, priority: Priority = Priority.HIGH
    ) -> None:
        """Makes the key ready at `due`, or earlier if it has an earlier timer already."""
        existing = self._waiting.get(key)
        if existing is not None and existing.due <= due:
            if priority < existing.priority:
                self._waiting[key] = msgspec.structs.replace(existing, priority=priority)
            return
        self._waiting[key] = _Timer(due, fairness_key, priority)
        heapq.heappush(self._timer_heap, (due, next(self._order), key))
        self._compact()

    def has_any(self, now: timedelta) -> bool:
        """Whether a key is ready or due; called for every queue after every reconcile."""
        return bool(self._ready) or (bool(self._timer_heap) and self._timer_heap[0][0] <= now)

    def get(
        self, now: timedelta, may_run: Callable[[str], bool], *, only_urgent: bool = False
    ) -> QueuedKey[K] | None:
        """The next key of the next fairness key that may run, marked as processing."""
        if not self.has_any(now):
            return None
        self._promote(now)
        fairness_key, is_urgent = self._choose(may_run, only_urgent=only_urgent)
        if fairness_key is None:
            return None
        key, since = self._ready_by_fairness_key[fairness_key].pop(is_urgent=is_urgent)
        _, priority = self._ready.pop(key)
        (self._urgent if is_urgent else self._low_priority).move_to_end(fairness_key)
        self._drop_empty(fairness_key)
        self._urgent_in_a_row = self._urgent_in_a_row + 1 if is_urgent and self._low_priority else 0
        self._waiting.pop(key, None)
        self._processing[key] = now
        return QueuedKey(key, fairness_key, now - since, priority)

    def _choose(
        self, may_run: Callable[[str], bool], *, only_urgent: bool
    ) -> tuple[str | None, bool]:
        """The fairness key that is next, and whether for an urgent key."""
        if only_urgent:
            order: tuple[bool, ...] = (True,)
        elif self._urgent_in_a_row < MOST_URGENT_IN_A_ROW:
            order = (True, False)
        else:
            order = (False, True)
        for is_urgent in order:
            for fairness_key in self._urgent if is_urgent else self._low_priority:
                if may_run(fairness_key):
                    return fairness_key, is_urgent
        return None, False

    def done(self, key: K, *, now: timedelta, was_reconciled: bool = True) -> None:
        """Ends the processing of a key; a key added meanwhile is ready now."""
        since = self._processing.pop(key)
        if self._rate_limiter is not None and was_reconciled:
            self._rate_limiter.record(key, since)
        dirty = self._dirty.pop(key, None)
        if dirty is not None:
            self._enqueue(key, dirty[0], dirty[1], now)

    def is_processing(self, key: K) -> bool:
        return key in self._processing

    def is_dirty(self, key: K) -> bool:
        """Whether a key was added while it is processed."""
        return key in self._dirty

    def is_ready(self, key: K, priority: Priority) -> bool:
        """Whether the key is ready with this priority or a more urgent one: adding it changes
        nothing.
        """
        existing = self._ready.get(key)
        return existing is not None and existing[1] <= priority

    def is_low_priority(self, key: K) -> bool:
        """Whether the key is ready with low priority."""
        existing = self._ready.get(key)
        return existing is not None and existing[1] is Priority.LOW

    def low_priority_keys(self) -> tuple[K, ...]:
        """Ready keys of low priority."""
        return tuple(filter(self.is_low_priority, self._ready))

    def forget(self, is_gone: Callable[[K], bool]) -> None:
        """Drops ready and waiting keys that are gone; one that is processed is not added again."""
        for key in [key for key in self._ready if is_gone(key)]:
            fairness_key, priority = self._ready.pop(key)
            del self._ready_by_fairness_key[fairness_key].by_priority[priority][key]
            self._drop_empty(fairness_key)
        for key in [key for key in self._waiting if is_gone(key)]:
            del self._waiting[key]
        for key in [key for key in self._dirty if is_gone(key)]:
            del self._dirty[key]
        if self._rate_limiter is not None:
            self._rate_limiter.forget(is_gone)

    @property
    def timers(self) -> int:
        """Entries of the timer heap, superseded ones included."""
        return len(self._timer_heap)

    def next_due(self) -> timedelta | None:
        """When the earliest timer fires."""
        self._drop_stale_timers()
        return self._timer_heap[0][0] if self._timer_heap else None

    def processing(self) -> Iterable[tuple[K, timedelta]]:
        """Keys that are processed, each with the time it was taken."""
        return self._processing.items()

    def _enqueue(self, key: K, fairness_key: str, priority: Priority, now: timedelta) -> None:
        due = None if self._rate_limiter is None else self._rate_limiter.find_due(key, now)
        if due is None:
            self._make_ready(key, fairness_key, priority, now)
        else:
            self.add_at(key, fairness_key, due=due, priority=priority)

    def _make_ready(self, key: K, fairness_key: str, priority: Priority, since: timedelta) -> None:
        self._ready[key] = (fairness_key, priority)
        existing = self._ready_by_fairness_key.get(fairness_key)
        if existing is None:
            existing = self._ready_by_fairness_key[fairness_key] = _KeysByPriority()
        existing.by_priority[priority][key] = since
        (self._low_priority if priority is Priority.LOW else self._urgent)[fairness_key] = None

    def _drop_empty(self, fairness_key: str) -> None:
        """A key was taken: its fairness key loses its turns where it has no more keys."""
        existing = self._ready_by_fairness_key[fairness_key]
        is_urgent, has_low_priority = existing.is_urgent, existing.has_low_priority
        if not is_urgent:
            self._urgent.pop(fairness_key, None)
        if not has_low_priority:
            self._low_priority.pop(fairness_key, None)
        if not is_urgent and not has_low_priority:
            del self._ready_by_fairness_key[fairness_key]

    def _promote(self, now: timedelta) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._timer_heap)
            timer = self._waiting.pop(key)
            self.add(key, timer.fairness_key, now=now, priority=timer.priority)

    def _compact(self) -> None:
        """Drops superseded timers: a key that is edited all day leaves one per reconcile."""
        if len(self._timer_heap) > 2 * len(self._waiting) + 64:
            live = ((timer.due, next(self._order), key) for key, timer in self._waiting.items())
            self._timer_heap = list(live)
            heapq.heapify(self._timer_heap)

    def _drop_stale_timers(self) -> None:
        """Drops heap entries that an earlier timer superseded, or of which the key was taken."""
        while self._timer_heap:
            due, _, key = self._timer_heap[0]
            timer = self._waiting.get(key)
            if timer is not None and timer.due == due:
                return
            heapq.heappop(self._timer_heap)
