"""Keys of a suspended project: parked, probed once a minute, written at once after the resume."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import pytest
from simulated_operators.one_controller import START, THING

from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.controller.manager import Manager, ManagerDeps
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.intents.intents import Ensure, OwnedFields, Plan, RecordEvent
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane, PlaneState
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_operator_kit.telemetry.events import EventSink, EventSource
from compute_operator_kit.testing.fakes import FakeMetrics
from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.api_errors import forbidden
from compute_sim_planes.api_server.authz.identity import MASTERS, authenticated
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.time.clock import VirtualClock, run

PROJECT: Final = PlaneName("acme")
MARK: Final = "example.com/mark"
MINUTE: Final = timedelta(minutes=1)
SOON: Final = timedelta(seconds=1)


@dataclass
class SuspendedProject:
    """An admission plugin that refuses as Milo does, and counts."""

    is_suspended: bool = False
    refused: list[str] = field(default_factory=list[str])

    def handles(self, request: AdmissionRequest) -> bool:
        return self.is_suspended and request.operation != "DELETE" and request.user.name == "ours"

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        if request.existing is not None and "deletionTimestamp" in str(request.existing):
            return ()
        self.refused.append(request.name)
        refusal = forbidden(request.kind.group_resource, request.name, "suspended")
        refusal.add_cause({"reason": "ProjectSuspended", "message": "suspended"})
        raise refusal


@dataclass
class World:
    """One project with ConfigMaps, and a controller that marks each of them."""

    clock: VirtualClock
    milo: SuspendedProject
    planes: Planes
    manager: Manager
    other: KubeClient
    measures: FakeMetrics
    mark: str = "1"

    async def make(self, count: int) -> None:
        for number in range(count):
            key = a_map(number)
            body: JsonMapping = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": key.name, "namespace": "default"},
            }
            await self.other.create(key, body)

    async def marks(self) -> set[str]:
        store = self.planes.get(PROJECT).stores[THING]
        entries = [store.entry("default", a_map(number).name) for number in range(100)]
        return {entry.metadata.annotations.get(MARK, "") for entry in entries if entry is not None}

    def read_state(self) -> PlaneState:
        return self.planes.get(PROJECT).state

    def enqueue_all(self, count: int) -> None:
        for number in range(count):
            self.manager.enqueue("marks", a_map(number))


def a_map(number: int) -> ObjectKey:
    return ObjectKey(PROJECT, THING, "default", f"map-{number:03}")


@asynccontextmanager
async def at_work(clock: VirtualClock) -> AsyncGenerator[World]:
    """Runs the controller on an empty project."""
    server = SimulatedPlane("acme", PlaneParts(clock=clock, identities=clock.identities))
    milo = SuspendedProject()
    server.state.admission.reviewers.append(milo)
    measures = FakeMetrics()
    ours = authenticated("ours", MASTERS)

    def connect(plane: Plane, lane: FlowControl) -> KubeClient:
        config = RestConfig(plane.name, plane.role, server.connect(ours), lane)
        return HttpKubeClient(config, FieldOwner("x", "x"))

    random = clock.random("world")
    planes = Planes(
        connect, [CachedKind(Role.PROJECT, THING)], RegistryDeps(clock, random, measures)
    )
    holder: list[World] = []

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        existing = work.caches.lister(PROJECT, THING).get(key.namespace, key.name)
        if not isinstance(existing, Snapshot) or not key.name.startswith("map-"):
            return Result()
        desired = OwnedFields(annotations={MARK: holder[0].mark})
        plan = Plan.of(Ensure(key, desired, "Marked", uid=existing.metadata.uid))
        applied = await work.session.apply(plan)
        return Result(applied.wait, applied.failures)

    controller = Controller(
        name="marks",
        owner=FieldOwner("marks", "marks"),
        watches=(Watch(Role.PROJECT, THING),),
        reconcile=reconcile,
    )
    manager = Manager([controller], ManagerDeps(ApplyDeps(planes, clock), random, measures))
    planes.engage(Plane(PROJECT, Role.PROJECT))
    connection = RestConfig(PROJECT, Role.PROJECT, server.connect(), FlowControl(PROJECT, clock))
    other = HttpKubeClient(connection, FieldOwner("other", "other"))
    world = World(clock, milo, planes, manager, other, measures)
    holder.append(world)
    running = asyncio.create_task(manager.run())
    await clock.sleep(SOON)
    yield world
    manager.stop()
    await running
    await planes.close()
    await server.close()


@pytest.mark.spec("SU-01")
def test_parked_keys_probe_once_a_minute_and_are_written_after_the_resume(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main(clock: VirtualClock) -> None:
        async with at_work(clock) as world:
            await world.make(100)
            await clock.sleep(SOON)
            assert await world.marks() == {"1"}
            errors = world.measures.total(names.RECONCILE_ERRORS)
            world.milo.is_suspended, world.mark = True, "2"
            caplog.clear()
            world.enqueue_all(100)
            await clock.sleep(timedelta(seconds=40))
            assert len(world.milo.refused) <= 4, "only those in flight before the first refusal"
            assert world.read_state() is PlaneState.SUSPENDED
            world.milo.refused.clear()
            for _ in range(10):
                world.enqueue_all(100)  # events of the keys: reconciled, and nothing is sent
                await clock.sleep(MINUTE)
            assert 7 <= len(world.milo.refused) <= 13, "one per minute, ± 20 %"
            lines = [record.getMessage() for record in caplog.records]
            assert lines.count("Patching object") <= 4, "of those in flight"
            others = [line for line in lines if line != "Patching object"]
            assert others == ["Project is suspended"]
            assert world.measures.total(names.RECONCILE_ERRORS) == errors
            assert world.measures.total(names.QUEUE_RETRIES) == 0
            world.milo.is_suspended = False
            world.planes.expect_resume(PROJECT)
            await clock.sleep(SOON)
            assert await world.marks() == {"2"}
            assert world.read_state() is PlaneState.UP

    run(main, seed=1, start=START)


@pytest.mark.spec("SU-01")
def test_a_resume_that_is_not_seen_is_found_by_the_probe() -> None:
    async def main(clock: VirtualClock) -> None:
        async with at_work(clock) as world:
            await world.make(20)
            await clock.sleep(SOON)
            world.milo.is_suspended, world.mark = True, "2"
            world.enqueue_all(20)
            await clock.sleep(SOON)
            world.milo.is_suspended = False
            await clock.sleep(timedelta(seconds=75))
            assert await world.marks() == {"2"}

    run(main, seed=1, start=START)


@pytest.mark.spec("SU-01")
def test_an_admission_that_is_behind_its_project_delays_the_resume_by_seconds() -> None:
    async def main(clock: VirtualClock) -> None:
        async with at_work(clock) as world:
            await world.make(20)
            await clock.sleep(SOON)
            world.milo.is_suspended, world.mark = True, "2"
            world.enqueue_all(20)
            await clock.sleep(SOON)
            world.planes.expect_resume(PROJECT)
            await clock.sleep(timedelta(seconds=1.2))
            assert await world.marks() == {"1"}
            world.milo.is_suspended = False
            await clock.sleep(timedelta(seconds=2))
            assert await world.marks() == {"2"}

    run(main, seed=1, start=START)


@pytest.mark.spec("SU-01")
def test_a_probe_that_needs_no_write_is_passed_on_to_the_next_key() -> None:
    async def main(clock: VirtualClock) -> None:
        async with at_work(clock) as world:
            await world.make(10)
            await clock.sleep(SOON)
            world.milo.is_suspended, world.mark = True, "2"
            world.enqueue_all(10)
            await clock.sleep(SOON)
            for number in range(9):
                entry = world.planes.get(PROJECT).stores[THING].entry("default", f"map-{number:03}")
                assert entry is not None
                await world.other.patch_merge(
                    a_map(number), {"metadata": {"annotations": {MARK: "2"}}}
                )
            world.milo.is_suspended = False
            await clock.sleep(timedelta(seconds=80))
            assert await world.marks() == {"2"}
            assert world.read_state() is PlaneState.UP

    run(main, seed=1, start=START)


@pytest.mark.spec("SU-01")
def test_events_into_a_suspended_project_are_dropped_without_a_request() -> None:
    async def main(clock: VirtualClock) -> None:
        async with at_work(clock) as world:
            world.milo.is_suspended = True
            sink = EventSink(
                lambda plane: world.planes.get(plane).kube, EventSource("ours", "ours-1"), clock
            )
            writing = asyncio.create_task(sink.run())
            for number in range(5):
                sink.record(RecordEvent(a_map(number), Uid("u"), "Tried", "words", "Trying"))
            await sink.drain()
            assert len(world.milo.refused) == 1
            assert sink.dropped == 5
            writing.cancel()
            await asyncio.wait({writing})

    run(main, seed=1, start=START)
