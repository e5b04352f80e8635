"""Time, sleep and randomness as arguments. Pure: `system_clock.py` is what looks at the machine.

Everything in the kit computes durations from a `Clock` it was given, so that a test or a simulation
decides what time it is. `asyncio.timeout` and `asyncio.sleep` follow the event loop and are fine
wherever the loop is virtual too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
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


def age_of(moment: datetime, now: datetime) -> timedelta:
    """How long ago `moment` was; never negative, whatever the clocks of the two sides say."""
    return max(ZERO, now - moment)
