"""How long it took from a change being seen to what it led to. No I/O.

Started by the first change that concerns a key, stopped by the pass that acted on it, dropped by a
pass that found nothing to do. What a pass could not get done is owed until a later one does, and
the age of the oldest such change says how long a far plane has kept us waiting. Passes run only on
the leader, so a standby, whose watches run too, owes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from compute_operator_kit.clock import ZERO, Clock
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.measures import Measures
from compute_operator_kit.outcomes import Effect


class Stopwatch:
    """Of one histogram."""

    def __init__(self, metric: str, clock: Clock, measures: Measures) -> None:
        self._metric = metric
        self._clock = clock
        self._measures = measures
        self._started: dict[ObjectKey, timedelta] = {}
        self._owed: dict[ObjectKey, timedelta] = {}

    def __len__(self) -> int:
        return len(self._started)

    def start(self, key: ObjectKey) -> None:
        self._started.setdefault(key, self._clock.monotonic())

    def note_pass(self, key: ObjectKey, *, has_failed: bool) -> None:
        """A pass ended: what it could not get done is owed, from the first time on."""
        if has_failed:
            self._owed.setdefault(key, self._clock.monotonic())
        else:
            self._owed.pop(key, None)

    @property
    def oldest(self) -> timedelta:
        """The age of what has been owed longest; zero where nothing is."""
        since = min(self._owed.values(), default=None)
        return ZERO if since is None else self._clock.monotonic() - since

    def end(self, key: ObjectKey, effect: Effect) -> None:
        """It was acted on, or there was nothing to do; anything else and it runs on."""
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
        """There was nothing to do."""
        self._started.pop(key, None)

    def end_key(self, key: ObjectKey) -> None:
        """There is nothing under this key any more."""
        self.drop(key)
        self._owed.pop(key, None)

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in (*self._started, *self._owed) if is_gone(key)]:
            self.end_key(key)
