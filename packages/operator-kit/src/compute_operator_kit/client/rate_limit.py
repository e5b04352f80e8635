"""Limits of requests to one plane: token bucket, `Retry-After` and circuit breaker. Pure.

They are checked in this order: breaker open (no answers: fail at once, a probe runs), `Retry-After`
(fail at once with the time left), bucket empty (wait for a token). Each plane has its own, so that
a plane that is away or slow does not affect others. Time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.core.clock import ZERO

FAILURES_TO_OPEN: Final = 5  # management.md 10


class TokenBucket:
    """At most `burst` requests at once and `rate` per second over time."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = ZERO

    def take(self, now: timedelta) -> timedelta:
        """Takes a token; returns how long to wait before using it.

        A token of an empty bucket is taken in advance: waits grow from caller to caller, and no
        later caller is served earlier.
        """
        grown = (now - self._at).total_seconds() * self._rate
        self._tokens = min(self._burst, self._tokens + max(0.0, grown)) - 1.0
        self._at = max(self._at, now)
        return ZERO if self._tokens >= 0.0 else timedelta(seconds=-self._tokens / self._rate)


@dataclass(slots=True)
class CircuitBreaker:
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


class RetryAfterGate:
    """The time until which the server asked for no requests."""

    def __init__(self) -> None:
        self._until = ZERO

    def ask(self, length: timedelta, now: timedelta) -> None:
        self._until = max(self._until, now + length)

    def left(self, now: timedelta) -> timedelta:
        return max(ZERO, self._until - now)
