"""Lag of write-back: how long changes of Instances wait for the hub. No I/O.

```
change ──► waiting ──reconcile begins──► in work ──► acknowledged: measured
               ▲                            ├──────► nothing to do: dropped
               └────────── not yet ─────────┘
```

Counted only on the leader: a standby writes nothing, and its changes would wait for ever.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

from compute_cell_operator.write_back.delays import DELAYED_AFTER
from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort

LAG: Final = "compute_writeback_lag_seconds"
OLDEST: Final = "compute_oldest_pending_seconds"


class End(StrEnum):
    """What a reconcile did about a change."""

    ACKNOWLEDGED = "acknowledged"
    NOTHING_TO_DO = "nothing to do"
    NOT_YET = "not yet"


class StatusLag:
    """Start times of all changes that wait."""

    def __init__(self, clock: Clock, metrics: MetricsPort, controller: str) -> None:
        self._clock = clock
        self._metrics = metrics
        self._controller = controller
        self._waiting: dict[ObjectKey, timedelta] = {}
        self._working: dict[ObjectKey, timedelta] = {}
        self._is_counting = False
        self._is_reported = False

    def __len__(self) -> int:
        return len(self._waiting.keys() | self._working.keys())

    def count(self, *, is_on: bool) -> None:
        """Starts counting with no change waiting, or stops."""
        self._is_counting = is_on
        self._waiting.clear()

    def start(self, key: ObjectKey) -> None:
        """A change has arrived."""
        if self._is_counting:
            self._waiting.setdefault(key, self._clock.monotonic())

    def begin(self, key: ObjectKey) -> None:
        """A reconcile reads the caches; a later change is for the next one."""
        since = self._waiting.pop(key, None)
        if since is not None:
            self._working[key] = since

    def end(self, key: ObjectKey, end: End) -> None:
        since = self._working.pop(key, None)
        if since is None or end is End.NOTHING_TO_DO:
            return
        if end is End.ACKNOWLEDGED:
            took = self._clock.monotonic() - since
            self._metrics.observe(LAG, took.total_seconds())
        elif self._is_counting:
            self._waiting[key] = since

    @property
    def oldest(self) -> timedelta:
        """The age of the change that has waited longest; zero where none waits."""
        since = min((*self._waiting.values(), *self._working.values()), default=None)
        return ZERO if since is None else self._clock.monotonic() - since

    def update_gauges(self) -> None:
        self._metrics.gauge(OLDEST, self.oldest.total_seconds(), controller=self._controller)

    def is_delayed_anew(self) -> bool:
        """Whether the lag exceeds its limit and was not reported yet; True once per delay."""
        is_delayed = self.oldest >= DELAYED_AFTER
        is_news = is_delayed and not self._is_reported
        self._is_reported = is_delayed
        return is_news
