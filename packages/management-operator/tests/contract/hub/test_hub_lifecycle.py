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

from compute_management_operator import hub_measures
from compute_management_operator.federation.memory import HELD_BY
from compute_management_operator.kinds import (
    DEPLOYMENT,
    INSTANCE,
    NAMESPACE,
    POLICY,
    WORKLOAD,
)
from compute_management_operator.plane_names import HUB
from compute_operator_kit.wire import JsonObject
from compute_sim_planes.canonical import canonical_state
from compute_sim_planes.fault_plans import Action, Fault, Point
from compute_sim_planes.history import Commit, Injected
from compute_sim_planes.json_types import JsonObject as Document

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


async def is_told(hub: Hub, reason: str) -> bool:
    found = await hub.world.find(PROJECT, WORKLOAD, "web")
    return found is not None and condition_of(found, "Ready")[1] == reason


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
    await world.eventually(lambda: is_told(hub, "QuotaNotGranted"))
    await world.eventually(hub.is_shown)
    await world.sleep(1)
    await open_gate(hub)
    await hub.say(*READY)
    await hub.report(*WD_READY, ready=1)
    await world.eventually(lambda: is_told(hub, "PlacementsReady"))
    await world.sleep(1)
    await world.delete(PROJECT, WORKLOAD, "web")
    await world.eventually(lambda: world.is_gone(PROJECT, WORKLOAD, "web"))
    await world.sleep(5)


async def left_over(world: World) -> dict[str, list[str]]:
    return {
        f"{plane} {kind.kind}": found
        for plane, kinds in (
            (PROJECT, (WORKLOAD, DEPLOYMENT, INSTANCE)),
            (HUB, (DEPLOYMENT, INSTANCE, POLICY)),
        )
        for kind in kinds
        if (found := await world.names(plane, kind))
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
    """Every number that a life without trouble has; those of troubles are shown beside them."""

    async def story(hub: Hub) -> None:
        await live_slowly(hub)
        await hub.world.sleep(10)
        found = hub.process.measures
        assert {
            tuple(value for _, value in series): number
            for (name, series), number in found.counts.items()
            if name == hub_measures.FEDERATION_WRITES
        } == {
            ("namespace", "create"): 1,
            ("deployment", "create"): 1,
            ("deployment", "delete"): 1,
        }
        assert found.total(hub_measures.POLICY_WRITES, operation="create") == 1
        assert found.total(hub_measures.POLICY_WRITES, operation="delete") == 1
        assert found.total(hub_measures.PROJECTION_WRITES, operation="create") == 1
        for histogram in (
            hub_measures.LATENCY,
            hub_measures.MIRROR_LATENCY,
            hub_measures.PROJECTION_LAG,
        ):
            measured = found.values[(histogram, ())]
            assert measured
            assert max(measured) < 1, histogram
        for gauge in (
            (hub_measures.POLICIES, ()),
            (hub_measures.ORPHANED, ()),
            (hub_measures.AMBIGUOUS_CITIES, ()),
            *((hub_measures.REPORTING_CELLS, (("cells", one),)) for one in ("0", "1", "many")),
            *((hub_measures.FINALIZERS_HELD, (("reason", one),)) for one in HELD_BY),
        ):
            assert found.gauges[gauge] == 0, gauge

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
        await world.eventually(lambda: is_told(hub, "PlacementsReady"))
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
    ("said", "shows", "held"), [(PROVISIONAL, STARTING, 0.2), (WD_BLOCKED, HELD, 0.0)]
)
def test_report_stands_in_the_project_within_its_moment(
    said: tuple[JsonObject, ...], shows: tuple[JsonObject, ...], held: float
) -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await world.sleep(5)
        await hub.show()
        await world.sleep(5)
        begun = world.clock.now()
        before = len(world.writes())
        await hub.report(*said)
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
def test_passes_in_the_meantime_do_not_extend_the_moment() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await world.sleep(5)
        begun: datetime = world.clock.now()
        before = len(world.writes())
        for number in range(8):
            told = [{**one, "message": f"starting {number}"} for one in PROVISIONAL]
            await hub.report(*told)
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
    """A life with whoever has to be revived; and what it left behind."""
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
    found: dict[str, list[Document]] = {}
    for plane, kinds in (
        (PROJECT, (WORKLOAD, DEPLOYMENT, INSTANCE)),
        (HUB, (DEPLOYMENT, INSTANCE, POLICY)),
    ):
        found[plane] = [one for kind in kinds for one in await world.listed(plane, kind)]
    return canonical_state(found)


def creations(done: Run) -> list[str]:
    """What processes made, each time they made it."""
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
    reference, wanted = play_life(live_slowly)
    made = creations(reference)
    number = len(reference.world.writes("operator-1"))
    assert number > 20
    for nth in range(1, number + 1):
        done, found = play_life(live_slowly, a_crash(action, nth))
        assert list(done.history.of(Injected)), nth
        assert found == wanted, nth
        assert creations(done) == made, nth


def test_dump_tells_worlds_apart() -> None:
    async def half(hub: Hub) -> None:
        await hub.world.create(PROJECT, a_workload_document("web"))
        await hub.world.eventually(hub.has_copy)

    _, one = play_life(half)
    _, other = play_life(live_slowly)
    assert one != other
