"""The rate limit of one key: a few reconciles in a row, then growing waits.

Without it, a key that is edited a hundred times a second is reconciled a hundred times, although
one reconcile covers all edits before it. A key may run as often in a row as a create or a repair
needs; each further reconcile waits twice as long as the one before, up to the longest wait, and
each idle second forgets one reconcile:

    6 at once, then after 100, 200, 400, 800, 1600 ms, then one every 2 s while the edits last

The waits of a key are spread down to half of these, so that keys edited by one script do not run
together. Other keys are not affected. Pure; time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from math import exp2, log2
from typing import Final, Generic, TypeVar
from zlib import crc32

import msgspec

K = TypeVar("K", bound=Hashable)

FORGET_FROM: Final = 1024
FORGOTTEN_PER_SECOND: Final = 1.0


@dataclass(frozen=True, slots=True)
class KeyRateLimit:
    """`at_once` reconciles without a wait; then waits that double from `first` to `longest`."""

    at_once: int
    first: timedelta
    longest: timedelta


class _RecentReconciles(msgspec.Struct, frozen=True, gc=False):
    """Reconciles of a key that are not forgotten, and when the last one began."""

    reconciles: float
    at: timedelta
    wait: timedelta


class KeyRateLimiter(Generic[K]):
    """The recent reconciles of all keys of one queue."""

    def __init__(self, limit: KeyRateLimit) -> None:
        self._limit = limit
        # From here on the wait is the longest; counting more would delay a key that comes to rest.
        self._most = limit.at_once + max(0.0, log2(limit.longest / limit.first))
        self._recent: dict[K, _RecentReconciles] = {}
        self._forget_from = FORGET_FROM

    def __len__(self) -> int:
        return len(self._recent)

    def record(self, key: K, now: timedelta) -> None:
        """A reconcile of the key began."""
        reconciles = min(self._count_left(self._recent.get(key), now) + 1.0, self._most)
        wait = self._wait_after(reconciles)
        spread = wait * _spread_of(key) if wait else wait
        self._recent[key] = _RecentReconciles(reconciles, now, spread)
        if len(self._recent) > self._forget_from:
            self._recent = {
                key: recent
                for key, recent in self._recent.items()
                if self._count_left(recent, now) > 0.0
            }
            self._forget_from = max(FORGET_FROM, 2 * len(self._recent))

    def find_due(self, key: K, now: timedelta) -> timedelta | None:
        """When the next reconcile may begin; None: now."""
        recent = self._recent.get(key)
        if recent is None or not recent.wait:
            return None
        due = recent.at + recent.wait
        return due if due > now else None

    def forget(self, is_gone: Callable[[K], bool]) -> None:
        for key in [key for key in self._recent if is_gone(key)]:
            del self._recent[key]

    def _count_left(self, recent: _RecentReconciles | None, now: timedelta) -> float:
        if recent is None:
            return 0.0
        idle = (now - recent.at).total_seconds()
        return max(0.0, recent.reconciles - idle * FORGOTTEN_PER_SECOND)

    def _wait_after(self, reconciles: float) -> timedelta:
        over = reconciles - self._limit.at_once
        if over < 0.0:
            return timedelta()
        return min(self._limit.longest, self._limit.first * exp2(over))


def _spread_of(key: Hashable) -> float:
    """A factor from 0.5 to 1 that is constant for a key."""
    return 1.0 - (crc32(str(key).encode("utf-8", "surrogatepass")) % 256) / 512
