"""While all workers are busy the manager rests: a timer that is over meanwhile does not wake it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from compute_operator_kit.apply.desk import Means
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.exchange import Connection
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.manager import Manager, Runtime, Workers
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


@pytest.mark.parametrize("workers", [(1, None), (4, 1)], ids=["in all", "of one controller"])
def test_a_timer_that_is_over_does_not_ring_while_every_worker_is_busy(
    workers: tuple[int, int | None],
) -> None:
    looked_at: list[tuple[str, timedelta]] = []

    async def main(clock: VirtualClock) -> None:
        server = SimulatedPlane("hub", PlaneParts(clock=clock, identities=clock.identities))

        def connect(plane: Plane, lane: Lane) -> Kube:
            connection = Connection(plane.name, plane.role, server.connect(), lane)
            return KubeHttp(connection, Writer("x", "x"))

        async def reconcile(key: ObjectKey, work: Pass) -> Result:  # noqa: ARG001
            looked_at.append((key.name, clock.monotonic()))
            if key.name == "slow":
                await clock.sleep(LONG)
                return Result()
            return Result(SOON)

        random = clock.random("world")
        planes = Planes(connect, [Watched(Role.HUB, THING)], Setting(clock, random))
        controller = Controller(
            name="looker",
            writer=Writer("looker", "looker"),
            watches=(Watch(Role.HUB, THING),),
            reconcile=reconcile,
            workers=workers[1],
        )
        means = Means(planes, WatchedClock(clock))
        manager = Manager([controller], Runtime(means, random, workers=Workers(workers[0])))
        planes.engage(Plane(HUB, Role.HUB))
        running = asyncio.create_task(manager.run())
        await clock.sleep(SOON)
        for name in ("due", "slow"):
            manager.wake("looker", ObjectKey(HUB, THING, "default", name))
        await clock.sleep(LONG / 2)
        assert [name for name, _ in looked_at] == ["due", "slow"]
        await clock.sleep(LONG)
        manager.stop()
        await running
        await planes.close()
        await server.close()

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
    began = dict(reversed(looked_at))
    assert looked_at[2] == ("due", began["slow"] + LONG)
