"""Ports for time, sleep and randomness; `system_clock.py` implements the clock. Pure.

All code of the kit gets its `Clock` as an argument, so that a test or a simulation controls the
time. `asyncio.timeout` and `asyncio.sleep` follow the event loop, which a simulation replaces too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol

ZERO: Final = timedelta()


class Clock(Protocol):
    """Wall clock (`now`, for timestamps in objects) and monotonic clock (for durations)."""

    def now(self) -> datetime:
        """The time in UTC. It may step back, so that an age is `max(0, now - then)`."""
        ...

    def monotonic(self) -> timedelta:
        """The time since a fixed moment of this process; it never steps back."""
        ...

    async def sleep(self, delay: timedelta) -> None:
        """Waits for `delay`; if that is not positive, it only yields to other tasks."""
        ...


class Random(Protocol):
    """A source of jitter; `random.Random(seed)` is one."""

    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...


def age_of(moment: datetime, now: datetime) -> timedelta:
    """The time since `moment`; never negative, also if the clocks of two servers differ."""
    return max(ZERO, now - moment)
