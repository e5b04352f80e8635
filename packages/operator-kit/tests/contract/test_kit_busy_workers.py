"""While all workers are busy the manager waits, also if a timer is over; `is_busy` reports it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import pytest
from simulated_operators.one_controller import SOON, START, Options, at_work

from compute_operator_kit.controller.manager import BUSY_FOR, Workers
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.core.keys import ObjectKey
from compute_sim_planes.time.clock import VirtualClock, run

LONG: Final = timedelta(seconds=3)
MANY: Final = 2_000  # reads of the clock in three seconds; a manager that spins exceeds it


class WatchedClock:
    """A clock that fails if it is read without end."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._calls = 0

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> timedelta:
        self._calls += 1
        if self._calls > MANY:
            raise AssertionError("the manager does not rest")
        return self._clock.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await self._clock.sleep(delay)


def limited(clock: VirtualClock, in_all: int, of_one: int | None = None) -> Options:
    workers = Workers(in_all, per_fairness_key=in_all)
    return Options(WatchedClock(clock), workers=workers, of_one=of_one)


@pytest.mark.parametrize("workers", [(1, None), (4, 1)], ids=["in all", "of one controller"])
def test_a_timer_that_is_over_does_not_fire_while_every_worker_is_busy(
    workers: tuple[int, int | None],
) -> None:
    reconciled: list[tuple[str, timedelta]] = []

    async def main(clock: VirtualClock) -> None:
        async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
            reconciled.append((key.name, clock.monotonic()))
            if key.name == "slow":
                await clock.sleep(LONG)
                return Result()
            return Result(SOON)

        in_all, of_one = workers
        async with at_work(clock, reconcile, limited(clock, in_all, of_one)) as fixture:
            fixture.enqueue("due", "slow")
            await clock.sleep(LONG / 2)
            assert [name for name, _ in reconciled] == ["due", "slow"]
            await clock.sleep(LONG)

    run(main, seed=1, start=START)
    began = dict(reversed(reconciled))
    assert reconciled[2] == ("due", began["slow"] + LONG)


@pytest.mark.parametrize(
    ("takes", "most"),
    [
        pytest.param(LONG, 3, id="every worker is busy"),
        pytest.param(SOON / 10, 1, id="as many reconciles as workers begin in a moment"),
    ],
)
def test_a_manager_is_busy_while_there_are_more_keys_than_workers(
    takes: timedelta, most: int
) -> None:
    """`most`: how many of three run at once."""

    async def main(clock: VirtualClock) -> None:
        at_once: list[int] = [0]

        async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
            at_once.append(at_once[-1] + 1)
            await clock.sleep(takes)
            at_once.append(at_once[-1] - 1)
            return Result()

        async with at_work(clock, reconcile, limited(clock, 3)) as fixture:
            manager = fixture.manager
            for name in ("a", "b"):
                fixture.enqueue(name)
                await clock.sleep(SOON / 4)
            assert not manager.is_busy, "two of three"
            fixture.enqueue("c")
            await clock.sleep(SOON / 4)
            assert manager.is_busy
            assert max(at_once) == most
            await clock.sleep(BUSY_FOR)
            assert manager.is_busy == (most == 3), "as long as they are, and not longer"

    run(main, seed=1, start=START)
