"""How long changes of Instances wait for the hub. No I/O.

```
change seen ──► waiting ──pass begins──► in work ──► acknowledged: measured
                   ▲                        ├──────► nothing to do: dropped
                   └──── not yet ───────────┘
```

Counted only while this process writes: what a standby has seen waits for nobody.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_operator_kit.clock import ZERO, Clock
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.measures import Measures

LAG: Final = "compute_writeback_lag_seconds"
OLDEST: Final = "compute_oldest_pending_seconds"
DELAYED_AFTER: Final = timedelta(minutes=5)  # cell.md 11


class End(StrEnum):
    """How a pass left a change."""

    ACKNOWLEDGED = "acknowledged"
    NOTHING_TO_DO = "nothing to do"
    NOT_YET = "not yet"


class Lag:
    """Of every name that waits."""

    def __init__(self, clock: Clock, measures: Measures, controller: str) -> None:
        self._clock = clock
        self._measures = measures
        self._controller = controller
        self._waiting: dict[ObjectKey, timedelta] = {}
        self._working: dict[ObjectKey, timedelta] = {}
        self._is_counting = False
        self._is_told = False

    def __len__(self) -> int:
        return len(self._waiting.keys() | self._working.keys())

    def count(self, *, is_on: bool) -> None:
        """From now on, or no more."""
        self._is_counting = is_on
        self._waiting.clear()

    def start(self, key: ObjectKey) -> None:
        """A change was seen."""
        if self._is_counting:
            self._waiting.setdefault(key, self._clock.monotonic())

    def begin(self, key: ObjectKey) -> None:
        """A pass looks at what there is now; what changes from here on is for the next."""
        since = self._waiting.pop(key, None)
        if since is not None:
            self._working[key] = since

    def end(self, key: ObjectKey, end: End) -> None:
        since = self._working.pop(key, None)
        if since is None or end is End.NOTHING_TO_DO:
            return
        if end is End.ACKNOWLEDGED:
            took = self._clock.monotonic() - since
            self._measures.observe(LAG, took.total_seconds())
        elif self._is_counting:
            self._waiting[key] = since

    @property
    def oldest(self) -> timedelta:
        """The age of what has waited longest; zero where nothing waits."""
        since = min((*self._waiting.values(), *self._working.values()), default=None)
        return ZERO if since is None else self._clock.monotonic() - since

    def report(self) -> None:
        self._measures.gauge(OLDEST, self.oldest.total_seconds(), controller=self._controller)

    def is_delayed_anew(self) -> bool:
        """Whether it has become too long, and nobody was told yet; True once per delay."""
        is_delayed = self.oldest >= DELAYED_AFTER
        is_news = is_delayed and not self._is_told
        self._is_told = is_delayed
        return is_news
