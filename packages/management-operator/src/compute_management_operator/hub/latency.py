"""Latency of a controller: the time from a change in a cache to the write it led to. No I/O.

The first change of a key starts the time, the reconcile that writes ends it, and a reconcile
without a write drops it. A key with a failed write is pending until a later reconcile succeeds: the
age of the oldest shows an outage of another plane, which a histogram of completed writes hides.
Only the leader reconciles, so a standby has nothing pending although its watches run.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.intents.outcomes import Effect


class LatencyTracker:
    """Keys with a running time, and pending keys, for one histogram."""

    def __init__(self, metric: str, clock: Clock, measures: MetricsPort) -> None:
        self._metric = metric
        self._clock = clock
        self._measures = measures
        self._started: dict[ObjectKey, timedelta] = {}
        self._pending: dict[ObjectKey, timedelta] = {}

    def __len__(self) -> int:
        return len(self._started)

    def start(self, key: ObjectKey) -> None:
        self._started.setdefault(key, self._clock.monotonic())

    def note_reconcile(self, key: ObjectKey, *, has_failed: bool) -> None:
        """A reconcile ended; a failed one leaves the key pending from the first failure on."""
        if has_failed:
            self._pending.setdefault(key, self._clock.monotonic())
        else:
            self._pending.pop(key, None)

    @property
    def oldest(self) -> timedelta:
        """The age of the key that is pending longest; zero where none is."""
        since = min(self._pending.values(), default=None)
        return ZERO if since is None else self._clock.monotonic() - since

    def end(self, key: ObjectKey, effect: Effect) -> None:
        """Observes a write, drops where nothing differed; after any other effect time runs on."""
        match effect:
            case Effect.WRITTEN:
                self._stop(key)
            case Effect.EQUAL:
                self.drop(key)
            case _:
                pass

    def _stop(self, key: ObjectKey) -> None:
        started = self._started.pop(key, None)
        if started is not None:
            took = self._clock.monotonic() - started
            self._measures.observe(self._metric, took.total_seconds())

    def drop(self, key: ObjectKey) -> None:
        """Nothing had to be written."""
        self._started.pop(key, None)

    def end_key(self, key: ObjectKey) -> None:
        """The object of the key does not exist any more."""
        self.drop(key)
        self._pending.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in (*self._started, *self._pending) if is_gone(key)]:
            self.end_key(key)
