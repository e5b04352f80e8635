"""Flow control of one plane: rate limit, `Retry-After`, circuit breaker, and the plane's health.

All clients of a plane share it, so that the limits hold for the sum of their requests; a plane that
is away fails fast and does not hold workers. The limits themselves are in `rate_limit.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from compute_operator_kit.client.rate_limit import CircuitBreaker, RetryAfterGate, TokenBucket
from compute_operator_kit.client.write_suspension import WriteSuspension
from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.errors import BreakerOpenError, ThrottledError
from compute_operator_kit.core.keys import PlaneName


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests to one plane (operations.md 1.1, `clients`)."""

    qps: float = 200.0
    burst: int = 400


class FlowControl:
    """Admits requests to one plane and records their results."""

    def __init__(self, plane: PlaneName, clock: Clock, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.plane = plane
        self._clock = clock
        self._bucket = TokenBucket(limits.qps, limits.burst)
        self._breaker = CircuitBreaker()
        self._retry_gate = RetryAfterGate()
        self._last_ok = True
        self.suspension = WriteSuspension()
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_open(self) -> bool:
        """The circuit breaker is open: only probes are admitted."""
        return self._breaker.is_open

    @property
    def is_up(self) -> bool:
        """The last request was answered."""
        return self._last_ok

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls back when `is_open` or `is_up` changes; the listener must not raise or wait."""
        self._listeners.append(listener)

    def mute(self) -> None:
        """Drops all listeners, so that a disengaged plane can be freed."""
        self._listeners.clear()
        self.suspension.mute()

    async def admit(self, *, is_probe: bool = False) -> None:
        """Waits for a token; raises at once if the breaker is open or the server asked to wait."""
        if self._breaker.is_open and not is_probe:
            raise BreakerOpenError(
                "BreakerOpen", f"asking {self.plane!r}: it does not answer", plane=self.plane
            )
        now = self._clock.monotonic()
        pause = self._retry_gate.left(now)
        if pause > ZERO:
            raise ThrottledError(
                "TooManyRequests",
                f"asking {self.plane!r}: it asked for a pause",
                retry_after=pause,
                plane=self.plane,
            )
        wait = self._bucket.take(now)
        if wait > ZERO:
            await self._clock.sleep(wait)

    def answered(self, status: int, retry_after: timedelta | None) -> None:
        """A response arrived; a 5xx counts as a failure."""
        if retry_after is not None and (status == 429 or status >= 500):
            self._retry_gate.ask(retry_after, self._clock.monotonic())
        if status >= 500:
            self.failed()
        else:
            self._update(has_switched=self._breaker.succeed(), is_ok=True)

    def failed(self) -> None:
        """No response, or a 5xx."""
        self._update(has_switched=self._breaker.fail(), is_ok=False)

    def _update(self, *, has_switched: bool, is_ok: bool) -> None:
        changed = has_switched or is_ok != self._last_ok
        self._last_ok = is_ok
        if changed:
            for listener in tuple(self._listeners):
                listener()
