"""The life of one Workload with a hub: what it costs, and what a crash anywhere leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest
from management_builders.documents import (
    a_cluster_document,
    a_condition_document,
    a_deployment_document,
    a_workload_document,
)
from management_builders.hub_script import (
    INSTANCE_NAME,
    PROJECT,
    READY,
    WD_BLOCKED,
    WD_READY,
    Hub,
    play_hub,
)
from management_builders.world import Process, Run, World, condition_of, play, shown

from compute_management_operator.hub import metrics
from compute_management_operator.hub.federation.tracker import HELD_BY
from compute_management_operator.planes import (
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
    WORKLOAD,
)
from compute_operator_kit.core.json import JsonObject
from compute_sim_planes.faults.plans import Action, Fault, Point
from compute_sim_planes.history import Commit, Injected
from compute_sim_planes.json_types import JsonObject as Document
from compute_sim_planes.oracles.canonical_state import canonical_state

HELD = (
    a_condition_document("QuotaGranted", "False", "QuotaExceeded", "no quota"),
    a_condition_document("Ready", "False", "PendingQuota", "no quota"),
)
PROVISIONAL = (
    a_condition_document("Available", "False", "InstancesProvisioning", "starting"),
    a_condition_document("ReplicasReady", "False", "InstancesProvisioning", "starting"),
    a_condition_document("Ready", "False", "InstancesProvisioning", "starting"),
)
STARTING = (
    a_condition_document("QuotaGranted", "True", "QuotaAvailable", "granted"),
    a_condition_document("Ready", "False", "PendingProgramming", "starting"),
)


async def is_reported(hub: Hub, reason: str) -> bool:
    existing = await hub.world.find(PROJECT, WORKLOAD, "web")
    return existing is not None and condition_of(existing, "Ready")[1] == reason


async def open_gate(hub: Hub) -> None:
    ungated: JsonObject = {"spec": {"controller": {"schedulingGates": None}}}
    await hub.world.patch(HUB, INSTANCE, INSTANCE_NAME, ungated, await hub.namespace())


async def live_slowly(hub: Hub) -> None:
    """Placed, blocked by quota, ready, gone."""
    world = hub.world
    await world.create(PROJECT, a_workload_document("web"))
    await world.eventually(hub.has_copy)
    await hub.claim()
    await world.sleep(1)
    await hub.show()
    await hub.say(*HELD)
    await hub.report(*WD_BLOCKED)
    await world.eventually(lambda: is_reported(hub, "QuotaNotGranted"))
    await world.eventually(hub.is_shown)
    await world.sleep(1)
    await open_gate(hub)
    await hub.say(*READY)
    await hub.report(*WD_READY, ready=1)
    await world.eventually(lambda: is_reported(hub, "PlacementsReady"))
    await world.sleep(1)
    await world.delete(PROJECT, WORKLOAD, "web")
    await world.eventually(lambda: world.is_gone(PROJECT, WORKLOAD, "web"))
    await world.sleep(5)


async def left_over(world: World) -> dict[str, list[str]]:
    return {
        f"{plane} {kind.kind}": existing
        for plane, kinds in (
            (PROJECT, (WORKLOAD, DEPLOYMENT, INSTANCE)),
            (HUB, (DEPLOYMENT, INSTANCE, POLICY)),
        )
        for kind in kinds
        if (existing := await world.names(plane, kind))
    }


@pytest.mark.spec("M-89")
def test_slow_life_of_a_workload_costs_at_most_26_writes_and_leaves_a_namespace() -> None:
    async def story(hub: Hub) -> None:
        await live_slowly(hub)
        assert await left_over(hub.world) == {}
        assert await hub.namespace() in await hub.world.names(HUB, NAMESPACE)
        written = shown(hub.world.writes())
        assert len(written) <= 26, written

    play_hub(story)


def test_slow_life_of_a_workload_is_measured() -> None:
    """Every metric that a life without faults has."""

    async def story(hub: Hub) -> None:
        await live_slowly(hub)
        await hub.world.sleep(10)
        measures = hub.process.measures
        assert {
            tuple(value for _, value in series): number
            for (name, series), number in measures.counts.items()
            if name == metrics.FEDERATION_WRITES
        } == {
            ("namespace", "create"): 1,
            ("deployment", "create"): 1,
            ("deployment", "delete"): 1,
        }
        assert measures.total(metrics.POLICY_WRITES, operation="create") == 1
        assert measures.total(metrics.POLICY_WRITES, operation="delete") == 1
        assert measures.total(metrics.PROJECTION_WRITES, operation="create") == 1
        for histogram in (
            metrics.LATENCY,
            metrics.MIRROR_LATENCY,
            metrics.PROJECTION_LAG,
        ):
            measured = measures.values[(histogram, ())]
            assert measured
            assert max(measured) < 1, histogram
        for gauge in (
            (metrics.POLICIES, ()),
            (metrics.ORPHANED, ()),
            (metrics.AMBIGUOUS_CITIES, ()),
            *((metrics.REPORTING_CELLS, (("cells", one),)) for one in ("0", "1", "many")),
            *((metrics.FINALIZERS_HELD, (("reason", one),)) for one in HELD_BY),
        ):
            assert measures.gauges[gauge] == 0, gauge

    play_hub(story)


@pytest.mark.spec("M-95")
def test_quick_life_of_a_workload_costs_at_most_16_writes() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate("kept-us-dfw")
        await hub.report(*WD_READY, name="kept-us-dfw")
        await world.sleep(5)
        before = len(world.writes())
        await world.create(PROJECT, a_workload_document("web"))
        await world.eventually(hub.has_copy)
        await hub.show()
        await open_gate(hub)
        await hub.say(*READY)
        await hub.report(*WD_READY, ready=1)
        await world.eventually(lambda: is_reported(hub, "PlacementsReady"))
        await world.eventually(hub.is_shown)
        await world.sleep(1)
        await world.delete(PROJECT, WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone(PROJECT, WORKLOAD, "web"))
        await world.sleep(5)
        written = shown(world.writes()[before:])
        assert len(written) <= 16, written
        assert await hub.policies() == ["city-dfw"]

    play_hub(story)


@pytest.mark.spec("M-95")
@pytest.mark.spec("M-96")
@pytest.mark.parametrize(
    ("reported", "shows", "held"), [(PROVISIONAL, STARTING, 0.2), (WD_BLOCKED, HELD, 0.0)]
)
def test_report_is_written_to_the_project_in_time(
    reported: tuple[JsonObject, ...], shows: tuple[JsonObject, ...], held: float
) -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await world.sleep(5)
        await hub.show()
        await world.sleep(5)
        begun = world.clock.now()
        before = len(world.writes())
        await hub.report(*reported)
        await hub.say(*shows)
        await world.sleep(1)
        written = world.writes()[before:]
        assert sorted(shown(written)) == [
            f"update Instance status {INSTANCE_NAME}",
            "update WorkloadDeployment status web-us-dfw",
        ]
        for one in written:
            assert (one.at - begun).total_seconds() == pytest.approx(held, abs=0.02)

    play_hub(story)


@pytest.mark.spec("M-96")
def test_reconciles_in_the_meantime_do_not_extend_the_deferral() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await world.sleep(5)
        begun: datetime = world.clock.now()
        before = len(world.writes())
        for number in range(8):
            conditions = [{**one, "message": f"starting {number}"} for one in PROVISIONAL]
            await hub.report(*conditions)
            await world.sleep(0.05)
        first = world.writes()[before]
        assert 0.15 <= (first.at - begun).total_seconds() <= 0.25

    play_hub(story)


# --- crashes --------------------------------------------------------------------------------------


class Reviver:
    """Starts a new process whenever one died."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tasks: list[asyncio.Task[None]] = []
        self.number = 0

    def start(self) -> Process:
        self.number += 1
        process = self._world.process(f"operator-{self.number}")
        process.life.on_crash = lambda _: self._tasks.append(
            asyncio.create_task(self._revive(process), name="reviver")
        )
        process.start()
        return process

    async def _revive(self, dead: Process) -> None:
        await dead.kill()
        self.start()


def play_life(life: Callable[[Hub], Awaitable[None]], *faults: Fault) -> tuple[Run, bytes]:
    """A life in which a crashed process is restarted; and the objects it left."""
    dumps: list[bytes] = []

    async def whole(world: World) -> None:
        await world.add_project(PROJECT, cities=("DFW",))
        await world.create(HUB, a_cluster_document("dfw-1"))
        await world.create(PROJECT, a_deployment_document("bystander-us-dfw"))
        reviver = Reviver(world)
        process = reviver.start()
        await world.sleep(2)
        await life(Hub(world, process))
        await world.sleep(30)
        dumps.append(await dump(world))

    done = play(whole, *faults, is_clean=False)
    assert done.world.error_lines == []
    return done, dumps[0]


async def dump(world: World) -> bytes:
    """Every object of both planes, without what differs from run to run."""
    objects: dict[str, list[Document]] = {}
    for plane, kinds in (
        (PROJECT, (WORKLOAD, DEPLOYMENT, INSTANCE)),
        (HUB, (DEPLOYMENT, INSTANCE, POLICY)),
    ):
        objects[plane] = [one for kind in kinds for one in await world.listed(plane, kind)]
    return canonical_state(objects)


def creations(done: Run) -> list[str]:
    """All creations by processes, repeated ones too."""
    return sorted(
        f"{commit.plane} {commit.kind} {commit.key.rpartition('/')[2]}"
        for commit in done.history.of(Commit)
        if commit.type == "ADDED" and commit.kind not in {"Event", "Lease"}
    )


def a_crash(action: Action, nth: int) -> Fault:
    fault_id = "A1" if action is Action.CRASH_BEFORE else "A2"
    return Fault(fault_id, action, Point(verb="write", nth=nth))


@pytest.mark.spec("M-90")
@pytest.mark.fault("A1")
@pytest.mark.fault("A2")
@pytest.mark.parametrize("action", [Action.CRASH_BEFORE, Action.CRASH_AFTER])
def test_crash_around_any_write_ends_in_the_same_world_without_a_second_create(
    action: Action,
) -> None:
    reference, expected = play_life(live_slowly)
    made = creations(reference)
    number = len(reference.world.writes("operator-1"))
    assert number > 20
    for nth in range(1, number + 1):
        done, left = play_life(live_slowly, a_crash(action, nth))
        assert list(done.history.of(Injected)), nth
        assert left == expected, nth
        assert creations(done) == made, nth


def test_dumps_of_different_worlds_differ() -> None:
    async def half(hub: Hub) -> None:
        await hub.world.create(PROJECT, a_workload_document("web"))
        await hub.world.eventually(hub.has_copy)

    _, one = play_life(half)
    _, other = play_life(live_slowly)
    assert one != other
