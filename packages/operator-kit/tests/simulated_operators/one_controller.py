"""One controller on one simulated plane of ConfigMaps, for tests of the controller runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig, StreamingResponse, Transport
from compute_operator_kit.controller.manager import Manager, ManagerDeps, Workers
from compute_operator_kit.controller.spec import (
    Controller,
    Mapper,
    Reconcile,
    Watch,
    enqueue_object,
)
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.time.clock import VirtualClock

HUB: Final = PlaneName("hub")
THING: Final = Kind("", "v1", "configmaps", "ConfigMap")
NAME: Final = "things"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
SOON: Final = timedelta(milliseconds=100)


def a_thing(name: str) -> ObjectKey:
    return ObjectKey(HUB, THING, "default", name)


@dataclass(frozen=True)
class Options:
    """Options of `at_work`."""

    clock: Clock | None = None  # of the manager, if not of the world
    map: Mapper = enqueue_object
    workers: Workers = field(default_factory=Workers)
    of_one: int | None = None  # workers of the controller
    wrap: Callable[[Transport], Transport] = lambda transport: transport


@dataclass(frozen=True)
class SlowAnswers:
    """Delays responses to writes, so that watch events arrive first."""

    transport: Transport
    clock: Clock
    delay: timedelta

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> StreamingResponse:
        answer = await self.transport.request(method, target, headers, body)
        if method != "GET":
            await self.clock.sleep(self.delay)
        return answer


@dataclass(frozen=True)
class LateEvents:
    """Delays watch events."""

    transport: Transport
    clock: Clock
    delay: timedelta

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> StreamingResponse:
        answer = await self.transport.request(method, target, headers, body)
        return _LateAnswer(answer, self.clock, self.delay) if "watch=1" in target else answer


@dataclass(frozen=True)
class _LateAnswer:
    answer: StreamingResponse
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
class Fixture:
    """The manager, and the client of another writer."""

    manager: Manager
    other_client: KubeClient

    async def make(self, key: ObjectKey) -> None:
        metadata = {"name": key.name, "namespace": key.namespace}
        body: JsonMapping = {"apiVersion": "v1", "kind": THING.kind, "metadata": metadata}
        await self.other_client.create(key, body)

    def enqueue(self, *names: str) -> None:
        for name in names:
            self.manager.enqueue(NAME, a_thing(name))


@asynccontextmanager
async def at_work(
    clock: VirtualClock, reconcile: Reconcile, options: Options | None = None
) -> AsyncGenerator[Fixture]:
    """Runs a controller on an empty plane."""
    options = options or Options()
    server = SimulatedPlane("hub", PlaneParts(clock=clock, identities=clock.identities))

    def connect(plane: Plane, lane: FlowControl) -> KubeClient:
        transport = options.wrap(server.connect())
        return HttpKubeClient(
            RestConfig(plane.name, plane.role, transport, lane), FieldOwner("x", "x")
        )

    random = clock.random("world")
    planes = Planes(connect, [CachedKind(Role.HUB, THING)], RegistryDeps(clock, random))
    controller = Controller(
        name=NAME,
        owner=FieldOwner(NAME, NAME),
        watches=(Watch(Role.HUB, THING, options.map),),
        reconcile=reconcile,
        workers=options.of_one,
    )
    deps = ApplyDeps(planes, options.clock or clock)
    manager = Manager([controller], ManagerDeps(deps, random, workers=options.workers))
    planes.engage(Plane(HUB, Role.HUB))
    running = asyncio.create_task(manager.run())
    await clock.sleep(SOON)
    connection = RestConfig(HUB, Role.HUB, server.connect(), FlowControl(HUB, clock))
    yield Fixture(manager, HttpKubeClient(connection, FieldOwner("other", "other")))
    manager.stop()
    await running
    await planes.close()
    await server.close()
