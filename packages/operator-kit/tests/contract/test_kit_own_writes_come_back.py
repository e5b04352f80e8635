"""What a pass wrote comes back through the watch, before its answer or after it.

A write that the pass called final is not looked at again; everything else is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from compute_operator_kit.apply.desk import Means
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.exchange import Answer, Connection
from compute_operator_kit.intents import Ensure, Owned, Plan
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.manager import Manager, Runtime
from compute_operator_kit.objects import Absent
from compute_operator_kit.planes import Plane, Planes, Setting, Watched
from compute_operator_kit.reconcile import Pass, Result
from compute_operator_kit.wire import JsonMapping
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.clock import VirtualClock, run

HUB: Final = PlaneName("hub")
THING: Final = Kind("", "v1", "configmaps", "ConfigMap")
ROOT: Final = ObjectKey(HUB, THING, "default", "root")
CHILD: Final = ObjectKey(HUB, THING, "default", "child")
SECOND: Final = timedelta(seconds=1)
WHEN_ANSWERS_COME: Final = {
    "before the event": timedelta(),
    "after the event": timedelta(milliseconds=300),
}


class SlowAnswers:
    """The server has written, and tells who watches, before the writer hears of it."""

    def __init__(self, plane: SimulatedPlane, clock: VirtualClock, delay: timedelta) -> None:
        self._transport = plane.connect()
        self._clock = clock
        self._delay = delay

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        answer = await self._transport.request(method, target, headers, body)
        if method != "GET":
            await self._clock.sleep(self._delay)
        return answer


class World:
    """One plane, and a controller that makes one child for the root and counts its passes."""

    def __init__(self, clock: VirtualClock, delay: timedelta, *, is_final: bool) -> None:
        self.clock = clock
        self.passes = 0
        self._is_final = is_final
        self._server = SimulatedPlane("hub", PlaneParts(clock=clock, identities=clock.identities))
        self._delay = delay
        random = clock.random("world")
        setting = Setting(clock=clock, random=random)
        self.planes = Planes(self._connect, [Watched(Role.HUB, THING)], setting)
        controller = Controller(
            name="maker",
            writer=Writer("maker", "maker"),
            watches=(Watch(Role.HUB, THING, lambda _, __: (ROOT,)),),
            reconcile=self._reconcile,
        )
        self.manager = Manager([controller], Runtime(Means(self.planes, clock), random))

    def _connect(self, plane: Plane, lane: Lane) -> Kube:
        transport = SlowAnswers(self._server, self.clock, self._delay)
        return KubeHttp(Connection(plane.name, plane.role, transport, lane), Writer("x", "x"))

    @property
    def stranger(self) -> Kube:
        connection = Connection(HUB, Role.HUB, self._server.connect(), Lane(HUB, self.clock))
        return KubeHttp(connection, Writer("stranger", "stranger"))

    async def _reconcile(self, key: ObjectKey, work: Pass) -> Result:
        self.passes += 1
        child = work.caches.view(HUB, THING).get(CHILD.namespace, CHILD.name)
        wanted = Owned(whole={"data": {"a": "b"}})
        if key == ROOT and isinstance(child, Absent):
            made = Ensure(CHILD, wanted, "Absent", is_final=self._is_final)
            await work.session.apply(Plan.of(made))
        return Result()

    async def make(self, key: ObjectKey) -> None:
        metadata = {"name": key.name, "namespace": key.namespace}
        body: JsonMapping = {"apiVersion": "v1", "kind": THING.kind, "metadata": metadata}
        await self.stranger.create(key, body)
        await self.clock.sleep(SECOND)

    async def close(self) -> None:
        await self.planes.close()
        await self._server.close()


def count_passes(delay: timedelta, *, is_final: bool) -> tuple[int, int]:
    """On the root: until its child is made, and after somebody has edited that child."""
    found: list[int] = []

    async def main(clock: VirtualClock) -> None:
        world = World(clock, delay, is_final=is_final)
        world.planes.engage(Plane(HUB, Role.HUB))
        running = asyncio.create_task(world.manager.run())
        await clock.sleep(SECOND)
        await world.make(ROOT)
        found.append(world.passes)
        await world.stranger.patch_merge(CHILD, {"data": {"a": "c"}})
        await clock.sleep(SECOND)
        found.append(world.passes)
        world.manager.stop()
        await running
        await world.close()

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
    return found[0], found[1]


@pytest.mark.parametrize("when", WHEN_ANSWERS_COME)
def test_a_final_write_is_not_looked_at_again_and_an_edit_of_it_is(when: str) -> None:
    assert count_passes(WHEN_ANSWERS_COME[when], is_final=True) == (1, 2)


@pytest.mark.parametrize("when", WHEN_ANSWERS_COME)
def test_any_other_write_is_looked_at_when_it_comes_back(when: str) -> None:
    assert count_passes(WHEN_ANSWERS_COME[when], is_final=False) == (2, 3)
