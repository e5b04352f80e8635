"""How often one key may be looked at: a few times in a row, then ever more slowly.

Watch events only wake keys, so a key that is edited a hundred times a second need not be looked at
a hundred times: what one pass finds is the sum of all edits before it. A key has a handful of
passes at once, as many as its birth or a repair takes. Each further one waits twice as long as the
one before, up to the longest wait, and every second of rest makes one pass forgotten:

    6 at once, then after 100, 200, 400, 800, 1600 ms, then one every 2 s for as long as it goes on

Each key has waits of its own, down to half of these, so that keys which one hand edits together are
not looked at together. Other keys, of the same tenant too, are not affected. Pure; time is an
argument.
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

FORGETTING_FROM: Final = 1024
FORGOTTEN_PER_SECOND: Final = 1.0


@dataclass(frozen=True, slots=True)
class Tempo:
    """So many passes at once; then waits that double from the first to the longest."""

    at_once: int
    first: timedelta
    longest: timedelta


class _Heat(msgspec.Struct, frozen=True, gc=False):
    """What is left of the passes of a key, and when the last one began."""

    passes: float
    at: timedelta
    wait: timedelta


class Pace(Generic[K]):
    """What is remembered of keys that were looked at lately."""

    def __init__(self, tempo: Tempo) -> None:
        self._tempo = tempo
        # From so many on the wait is the longest: who comes to rest is not punished for the past.
        self._most = tempo.at_once + max(0.0, log2(tempo.longest / tempo.first))
        self._heat: dict[K, _Heat] = {}
        self._forgetting_from = FORGETTING_FROM

    def __len__(self) -> int:
        return len(self._heat)

    def book(self, key: K, now: timedelta) -> None:
        """A pass on the key began."""
        passes = min(self._left_of(self._heat.get(key), now) + 1.0, self._most)
        wait = self._wait_after(passes)
        self._heat[key] = _Heat(passes, now, wait * _spread_of(key) if wait else wait)
        if len(self._heat) > self._forgetting_from:
            self._heat = {
                key: heat for key, heat in self._heat.items() if self._left_of(heat, now) > 0.0
            }
            self._forgetting_from = max(FORGETTING_FROM, 2 * len(self._heat))

    def find_due(self, key: K, now: timedelta) -> timedelta | None:
        """When the next pass may begin; None: now."""
        heat = self._heat.get(key)
        if heat is None or not heat.wait:
            return None
        due = heat.at + heat.wait
        return due if due > now else None

    def forget(self, is_gone: Callable[[K], bool]) -> None:
        for key in [key for key in self._heat if is_gone(key)]:
            del self._heat[key]

    def _left_of(self, heat: _Heat | None, now: timedelta) -> float:
        if heat is None:
            return 0.0
        rested = (now - heat.at).total_seconds()
        return max(0.0, heat.passes - rested * FORGOTTEN_PER_SECOND)

    def _wait_after(self, passes: float) -> timedelta:
        over = passes - self._tempo.at_once
        if over < 0.0:
            return timedelta()
        return min(self._tempo.longest, self._tempo.first * exp2(over))


def _spread_of(key: Hashable) -> float:
    """From a half to 1, the same for a key every time."""
    return 1.0 - (crc32(str(key).encode("utf-8", "surrogatepass")) % 256) / 512
