"""While all workers are busy the manager rests: a timer that is over meanwhile does not wake it.
Others are told that they are busy.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import pytest
from simulated_operators.one_controller import SOON, START, Conditions, at_work

from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.manager import PRESSED_FOR, Workers
from compute_operator_kit.reconcile import Pass, Result
from compute_sim_planes.clock import VirtualClock, run

LONG: Final = timedelta(seconds=3)
MANY: Final = 2_000  # looks at the clock in three seconds; a manager that spins never ends


class WatchedClock:
    """Says so when somebody asks for the time without end."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._asked = 0

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> timedelta:
        self._asked += 1
        if self._asked > MANY:
            raise AssertionError("the manager does not rest")
        return self._clock.monotonic()

    async def sleep(self, delay: timedelta) -> None:
        await self._clock.sleep(delay)


def limited(clock: VirtualClock, in_all: int, of_one: int | None = None) -> Conditions:
    workers = Workers(in_all, per_share=in_all)
    return Conditions(WatchedClock(clock), workers=workers, of_one=of_one)


@pytest.mark.parametrize("workers", [(1, None), (4, 1)], ids=["in all", "of one controller"])
def test_a_timer_that_is_over_does_not_ring_while_every_worker_is_busy(
    workers: tuple[int, int | None],
) -> None:
    looked_at: list[tuple[str, timedelta]] = []

    async def main(clock: VirtualClock) -> None:
        async def reconcile(key: ObjectKey, work: Pass) -> Result:  # noqa: ARG001
            looked_at.append((key.name, clock.monotonic()))
            if key.name == "slow":
                await clock.sleep(LONG)
                return Result()
            return Result(SOON)

        in_all, of_one = workers
        async with at_work(clock, reconcile, limited(clock, in_all, of_one)) as stage:
            stage.wake("due", "slow")
            await clock.sleep(LONG / 2)
            assert [name for name, _ in looked_at] == ["due", "slow"]
            await clock.sleep(LONG)

    run(main, seed=1, start=START)
    began = dict(reversed(looked_at))
    assert looked_at[2] == ("due", began["slow"] + LONG)


@pytest.mark.parametrize(
    ("takes", "most"),
    [
        pytest.param(LONG, 3, id="every worker is busy"),
        pytest.param(SOON / 10, 1, id="as many passes as workers begin in a moment"),
    ],
)
def test_a_manager_is_pressed_while_there_is_more_to_do_than_workers(
    takes: timedelta, most: int
) -> None:
    """`most`: how many run at once, of three."""

    async def main(clock: VirtualClock) -> None:
        at_once: list[int] = [0]

        async def reconcile(key: ObjectKey, work: Pass) -> Result:  # noqa: ARG001
            at_once.append(at_once[-1] + 1)
            await clock.sleep(takes)
            at_once.append(at_once[-1] - 1)
            return Result()

        async with at_work(clock, reconcile, limited(clock, 3)) as stage:
            manager = stage.manager
            for name in ("a", "b"):
                stage.wake(name)
                await clock.sleep(SOON / 4)
            assert not manager.is_pressed, "two of three"
            stage.wake("c")
            await clock.sleep(SOON / 4)
            assert manager.is_pressed
            assert max(at_once) == most
            await clock.sleep(PRESSED_FOR)
            assert manager.is_pressed == (most == 3), "as long as they are, and not longer"

    run(main, seed=1, start=START)
