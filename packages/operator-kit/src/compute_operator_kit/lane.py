"""The way to one plane: who may send now, and what the answers say about the plane's health.

Shared by every client of that plane in this process, so that the limits hold for the sum of them.
It sends nothing itself. The arithmetic is in `traffic.py`; here are the waiting, the errors and the
listeners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from compute_operator_kit.clock import ZERO, Clock
from compute_operator_kit.errors import BreakerOpenError, ThrottledError
from compute_operator_kit.keys import PlaneName
from compute_operator_kit.traffic import Breaker, Pause, TokenBucket


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests to one plane (operations.md 1.1, `clients`)."""

    qps: float = 200.0
    burst: int = 400


class Lane:
    """Admission to one plane."""

    def __init__(self, plane: PlaneName, clock: Clock, limits: Limits | None = None) -> None:
        chosen = limits or Limits()
        self.plane = plane
        self._clock = clock
        self._bucket = TokenBucket(chosen.qps, chosen.burst)
        self._breaker = Breaker()
        self._pause = Pause()
        self._last_ok = True
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_open(self) -> bool:
        """The breaker is open: nothing but a probe is let through."""
        return self._breaker.is_open

    @property
    def is_up(self) -> bool:
        """The last exchange succeeded."""
        return self._last_ok

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls back whenever `is_open` or `is_up` changed; the listener must not raise or wait."""
        self._listeners.append(listener)

    def mute(self) -> None:
        """Forgets who listens, so that a plane that is gone holds on to nothing."""
        self._listeners.clear()

    async def admit(self, *, is_probe: bool = False) -> None:
        """Waits for a token; raises at once where waiting is not the sender's to do."""
        if self._breaker.is_open and not is_probe:
            raise BreakerOpenError(
                "BreakerOpen", f"asking {self.plane!r}: it does not answer", plane=self.plane
            )
        now = self._clock.monotonic()
        pause = self._pause.left(now)
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
        """An answer arrived; one that only tells of the server's trouble counts as none."""
        if retry_after is not None and (status == 429 or status >= 500):
            self._pause.ask(retry_after, self._clock.monotonic())
        if status >= 500:
            self.failed()
        else:
            self._tell(has_switched=self._breaker.succeed(), is_ok=True)

    def failed(self) -> None:
        """No answer, or one from a broken server."""
        self._tell(has_switched=self._breaker.fail(), is_ok=False)

    def _tell(self, *, has_switched: bool, is_ok: bool) -> None:
        changed = has_switched or is_ok != self._last_ok
        self._last_ok = is_ok
        if changed:
            for listener in tuple(self._listeners):
                listener()
