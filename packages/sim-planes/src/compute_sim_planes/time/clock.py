"""The clock of a simulated run, and `run`, which executes a coroutine in virtual time.

Servers, external systems and operators get time, randomness and UIDs from one object, so that a run
is a function of its seed. A component with a wrong clock gets a `SkewedClock`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TypeVar

from compute_sim_planes.time.sources import SeededIdentities
from compute_sim_planes.time.virtual_loop import VirtualLoop, VirtualTimeError

_T = TypeVar("_T")


class VirtualClock:
    """The time of a `VirtualLoop`. Every named source of randomness is separate, so that an
    additional draw of jitter does not change the next UID.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, seed: int, start: datetime) -> None:
        self._loop = loop
        self._seed = seed
        self._start = start.astimezone(UTC)
        self._sources: dict[str, Random] = {}
        self.identities = SeededIdentities(self.random("identities"))

    def now(self) -> datetime:
        return self._start + self.monotonic()

    def monotonic(self) -> timedelta:
        return timedelta(seconds=self._loop.time())

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(max(delay.total_seconds(), 0.0))

    def random(self, name: str) -> Random:
        """The random source of that name, always the same object."""
        if name not in self._sources:
            self._sources[name] = Random(f"{self._seed}/{name}")  # noqa: S311 -- nothing secret
        return self._sources[name]

    def uid(self) -> str:
        return self.identities.uid()

    def suffix(self) -> str:
        return self.identities.suffix()


class SkewedClock:
    """The same time as seen with an offset, a step or another rate.

    Only the time of day is wrong: durations are the same for all, as on real machines.
    """

    def __init__(self, clock: VirtualClock, offset: timedelta = timedelta()) -> None:
        self._clock = clock
        self._offset = offset
        self._rate = 1.0
        self._since = clock.monotonic()

    def now(self) -> datetime:
        drift = (self._clock.monotonic() - self._since) * (self._rate - 1.0)
        return self._clock.now() + self._offset + drift

    def monotonic(self) -> timedelta:
        return self._clock.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await self._clock.sleep(delay)

    def step(self, change: timedelta) -> None:
        """Set the clock forward or back."""
        self._offset += change

    def slew(self, rate: float) -> None:
        """From now on the clock runs `rate` times as fast as the server's."""
        self._offset = self.now() - self._clock.now()
        self._since = self._clock.monotonic()
        self._rate = rate


@dataclass(slots=True)
class LoopReport:
    """Exceptions and tasks that a run left behind; `oracles` checks it."""

    unhandled: list[str] = field(default_factory=list[str])
    pending: list[str] = field(default_factory=list[str])


class UnhandledError(RuntimeError):
    """An exception in the loop was not handled."""


def run(
    main: Callable[[VirtualClock], Coroutine[object, object, _T]],
    *,
    seed: int,
    start: datetime,
    report: LoopReport | None = None,
) -> _T:
    """Run `main` in virtual time from `start` on and return its result.

    Remaining tasks are cancelled. A `report` gets their names and all unhandled exceptions; without
    one an unhandled exception raises `UnhandledError` at the end.
    """
    loop_report = LoopReport() if report is None else report
    loop = VirtualLoop(Random(f"{seed}/order"))  # noqa: S311 -- nothing secret

    def note(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        failure = context.get("exception")
        shown = f": {failure!r}" if failure is not None else ""
        loop_report.unhandled.append(f"{context.get('message')}{shown}")

    loop.set_exception_handler(note)
    try:
        result = loop.run_until_complete(_named_main(loop, main, seed=seed, start=start))
    finally:
        loop_report.pending.extend(loop.describe_waiting())
        _end(loop)
    if loop_report.unhandled and report is None:
        raise UnhandledError("; ".join(loop_report.unhandled))
    return result


def _named_main(
    loop: VirtualLoop,
    main: Callable[[VirtualClock], Coroutine[object, object, _T]],
    *,
    seed: int,
    start: datetime,
) -> asyncio.Task[_T]:
    clock = VirtualClock(loop, seed=seed, start=start)
    return loop.create_task(main(clock), name="main")


def _end(loop: VirtualLoop) -> None:
    try:
        left = loop.unfinished()
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    except VirtualTimeError:
        # A task ignores its cancellation and waits or spins; `pending` has its name.
        pass
    finally:
        loop.close()
