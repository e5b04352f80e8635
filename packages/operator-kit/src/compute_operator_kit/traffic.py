"""How much may be sent to one plane now: rate limit, the server's own pauses, circuit breaker.
Pure.

Three reasons not to send, in the order in which they are asked: the breaker is open (the plane does
not answer: fail at once, somebody probes), the server asked for a pause (fail at once and say for
how long), the bucket is empty (wait for a token). Everything is per plane, so that no plane's
trouble is another's. Time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.clock import ZERO

FAILURES_TO_OPEN: Final = 5  # management.md 10


class TokenBucket:
    """At most `burst` requests at once and `rate` per second over time."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = ZERO

    def take(self, now: timedelta) -> timedelta:
        """Takes a token and answers how long to wait before using it.

        A token taken from an empty bucket is a place in the line: waits grow one after another,
        and nobody who comes later is served earlier.
        """
        grown = (now - self._at).total_seconds() * self._rate
        self._tokens = min(self._burst, self._tokens + max(0.0, grown)) - 1.0
        self._at = max(self._at, now)
        return ZERO if self._tokens >= 0.0 else timedelta(seconds=-self._tokens / self._rate)


@dataclass(slots=True)
class Breaker:
    """Opens after five failures in a row, closes with the first success."""

    failures: int = 0

    @property
    def is_open(self) -> bool:
        return self.failures >= FAILURES_TO_OPEN

    def succeed(self) -> bool:
        """Whether this success closed it."""
        was_open, self.failures = self.is_open, 0
        return was_open

    def fail(self) -> bool:
        """Whether this failure opened it."""
        self.failures += 1
        return self.failures == FAILURES_TO_OPEN


class Pause:
    """The server's wish not to be asked until some moment."""

    def __init__(self) -> None:
        self._until = ZERO

    def ask(self, length: timedelta, now: timedelta) -> None:
        self._until = max(self._until, now + length)

    def left(self, now: timedelta) -> timedelta:
        return max(ZERO, self._until - now)
