"""Time, sleep and randomness as arguments, and the one form of them that looks at the machine.

Everything else in the kit computes durations from a `Clock` it was given, so that a test or a
simulation decides what time it is. `asyncio.timeout` and `asyncio.sleep` follow the event loop and
are fine wherever the loop is virtual too. No other module may call `time.*`, `datetime.now` or
`random.*`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

ZERO: Final = timedelta()


class Clock(Protocol):
    """What time it is, twice: `now` for what others read, `monotonic` for measuring how long
    something took.
    """

    def now(self) -> datetime:
        """Aware, UTC. May step, back too: an age is `max(0, now - then)`, never assumed
        positive.
        """
        ...

    def monotonic(self) -> timedelta:
        """Time since some fixed moment of this process; never steps back."""
        ...

    async def sleep(self, delay: timedelta) -> None:
        """Waits that long; not at all, but giving others their turn, when `delay` is not
        positive.
        """
        ...


class Random(Protocol):
    """A source of jitter; `random.Random(seed)` is one."""

    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> timedelta:
        return timedelta(seconds=time.monotonic())

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(delay, ZERO).total_seconds())


def age_of(moment: datetime, now: datetime) -> timedelta:
    """How long ago `moment` was; never negative, whatever the clocks of the two sides say."""
    return max(ZERO, now - moment)
