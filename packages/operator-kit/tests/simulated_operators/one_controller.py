"""One controller at work on one simulated plane of ConfigMaps: what the kit owes any controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_operator_kit.apply.desk import Means
from compute_operator_kit.clock import Clock
from compute_operator_kit.controller import Controller, Mapper, Reconcile, Watch, map_to_itself
from compute_operator_kit.exchange import Answer, Connection, Transport
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.manager import Manager, Runtime, Workers
from compute_operator_kit.planes import Plane, Planes, Setting, Watched
from compute_operator_kit.wire import JsonMapping
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.clock import VirtualClock

HUB: Final = PlaneName("hub")
THING: Final = Kind("", "v1", "configmaps", "ConfigMap")
NAME: Final = "looker"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
SOON: Final = timedelta(milliseconds=100)


def a_thing(name: str) -> ObjectKey:
    return ObjectKey(HUB, THING, "default", name)


@dataclass(frozen=True)
class Conditions:
    """What is not as usual."""

    clock: Clock | None = None  # the manager's, where it is not the world's
    map: Mapper = map_to_itself
    workers: Workers = field(default_factory=Workers)
    of_one: int | None = None  # workers of the controller
    way: Callable[[Transport], Transport] = lambda transport: transport


@dataclass(frozen=True)
class SlowAnswers:
    """The server has written, and tells who watches, before the writer hears of it."""

    transport: Transport
    clock: Clock
    delay: timedelta

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        answer = await self.transport.request(method, target, headers, body)
        if method != "GET":
            await self.clock.sleep(self.delay)
        return answer


@dataclass(frozen=True)
class LateEvents:
    """Who watches hears of everything after a while."""

    transport: Transport
    clock: Clock
    delay: timedelta

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        answer = await self.transport.request(method, target, headers, body)
        return _LateAnswer(answer, self.clock, self.delay) if "watch=1" in target else answer


@dataclass(frozen=True)
class _LateAnswer:
    answer: Answer
    clock: Clock
    delay: timedelta

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self.answer.chunks():
            await self.clock.sleep(self.delay)
            yield chunk

    async def close(self) -> None:
        await self.answer.close()


@dataclass(frozen=True)
class Stage:
    """The manager, and somebody else on the plane."""

    manager: Manager
    stranger: Kube

    async def make(self, key: ObjectKey) -> None:
        metadata = {"name": key.name, "namespace": key.namespace}
        body: JsonMapping = {"apiVersion": "v1", "kind": THING.kind, "metadata": metadata}
        await self.stranger.create(key, body)

    def wake(self, *names: str) -> None:
        for name in names:
            self.manager.wake(NAME, a_thing(name))


@asynccontextmanager
async def at_work(
    clock: VirtualClock, reconcile: Reconcile, given: Conditions | None = None
) -> AsyncGenerator[Stage]:
    """On a plane that holds nothing yet."""
    given = given or Conditions()
    server = SimulatedPlane("hub", PlaneParts(clock=clock, identities=clock.identities))

    def connect(plane: Plane, lane: Lane) -> Kube:
        transport = given.way(server.connect())
        return KubeHttp(Connection(plane.name, plane.role, transport, lane), Writer("x", "x"))

    random = clock.random("world")
    planes = Planes(connect, [Watched(Role.HUB, THING)], Setting(clock, random))
    controller = Controller(
        name=NAME,
        writer=Writer(NAME, NAME),
        watches=(Watch(Role.HUB, THING, given.map),),
        reconcile=reconcile,
        workers=given.of_one,
    )
    means = Means(planes, given.clock or clock)
    manager = Manager([controller], Runtime(means, random, workers=given.workers))
    planes.engage(Plane(HUB, Role.HUB))
    running = asyncio.create_task(manager.run())
    await clock.sleep(SOON)
    connection = Connection(HUB, Role.HUB, server.connect(), Lane(HUB, clock))
    yield Stage(manager, KubeHttp(connection, Writer("stranger", "stranger")))
    manager.stop()
    await running
    await planes.close()
    await server.close()
