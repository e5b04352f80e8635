"""While all workers are busy the manager rests: a timer that is over meanwhile does not wake it.
Others are told that they are busy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from compute_operator_kit.apply.desk import Means
from compute_operator_kit.controller import Controller, Reconcile, Watch
from compute_operator_kit.exchange import Connection
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.manager import PRESSED_FOR, Manager, Runtime, Workers
from compute_operator_kit.planes import Plane, Planes, Setting, Watched
from compute_operator_kit.reconcile import Pass, Result
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.clock import VirtualClock, run

HUB: Final = PlaneName("hub")
THING: Final = Kind("", "v1", "configmaps", "ConfigMap")
SOON: Final = timedelta(milliseconds=100)
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


@contextlib.asynccontextmanager
async def a_manager(
    clock: VirtualClock,
    reconcile: Reconcile,
    *,
    in_all: int,
    of_one: int | None = None,
) -> AsyncGenerator[Manager]:
    """At work, on a plane that holds nothing."""
    server = SimulatedPlane("hub", PlaneParts(clock=clock, identities=clock.identities))

    def connect(plane: Plane, lane: Lane) -> Kube:
        connection = Connection(plane.name, plane.role, server.connect(), lane)
        return KubeHttp(connection, Writer("x", "x"))

    random = clock.random("world")
    planes = Planes(connect, [Watched(Role.HUB, THING)], Setting(clock, random))
    controller = Controller(
        name="looker",
        writer=Writer("looker", "looker"),
        watches=(Watch(Role.HUB, THING),),
        reconcile=reconcile,
        workers=of_one,
    )
    means = Means(planes, WatchedClock(clock))
    workers = Workers(in_all, per_share=in_all)
    manager = Manager([controller], Runtime(means, random, workers=workers))
    planes.engage(Plane(HUB, Role.HUB))
    running = asyncio.create_task(manager.run())
    await clock.sleep(SOON)
    yield manager
    manager.stop()
    await running
    await planes.close()
    await server.close()


def wake(manager: Manager, *names: str) -> None:
    for name in names:
        manager.wake("looker", ObjectKey(HUB, THING, "default", name))


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
        async with a_manager(clock, reconcile, in_all=in_all, of_one=of_one) as manager:
            wake(manager, "due", "slow")
            await clock.sleep(LONG / 2)
            assert [name for name, _ in looked_at] == ["due", "slow"]
            await clock.sleep(LONG)

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
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

        async with a_manager(clock, reconcile, in_all=3) as manager:
            for name in ("a", "b"):
                wake(manager, name)
                await clock.sleep(SOON / 4)
            assert not manager.is_pressed, "two of three"
            wake(manager, "c")
            await clock.sleep(SOON / 4)
            assert manager.is_pressed
            assert max(at_once) == most
            await clock.sleep(PRESSED_FOR)
            assert manager.is_pressed == (most == 3), "as long as they are, and not longer"

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
