"""A process crashes, stops, loses its Lease, and runs with a wrong clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from example_operator.mirror.observe import copy_key
from example_operator.notes import HUB
from example_operator.oracles import find_violations
from example_operator.scenario import check_end, live_and_rest, use
from example_operator.world import Process, World, a_note, play

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, Preconditions
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.metrics import NoMetrics
from compute_operator_kit.core.objects import Snapshot
from compute_operator_kit.process.leader import LEASE, Candidacy, Election, LeaseLostError
from compute_sim_planes.faults.injection import CrashableProcess, FaultyTransport
from compute_sim_planes.faults.links import Link, LinkState
from compute_sim_planes.faults.plans import Action, Fault, Point
from compute_sim_planes.history import Request
from compute_sim_planes.time.clock import SkewedClock

HOME = PlaneName("home")
LEASE_KEY = ObjectKey(HOME, LEASE, "default", "example-operator")


# crash and stop --------------------------------------------------------------------------------


class Watchman:
    """Starts a process again whenever it crashed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._crashed = asyncio.Event()
        self.starts = 0
        self.process = self._start()

    def _start(self) -> Process:
        self.starts += 1
        process = self._world.process(f"operator-{self.starts}")
        process.life.on_crash = lambda _: self._crashed.set()
        process.start("alpha", "beta")
        return process

    async def watch(self) -> None:
        while True:
            await self._crashed.wait()
            self._crashed.clear()
            await self.process.kill()
            await self._world.sleep(1)
            self.process = self._start()


async def live_guarded(world: World) -> None:
    """Runs the scenario with restarts after crashes."""
    world.start_acting()
    watching = asyncio.create_task(Watchman(world).watch())
    try:
        await use(world)
        await world.sleep(14 * 60)
        await check_end(world)
    finally:
        watching.cancel()
        await asyncio.wait({watching})


def created(world: World) -> int:
    """Objects that the processes created, by the commits of the planes."""
    mine = (request for process in world.processes for request in world.writes(process.name))
    return sum(commit.type == "ADDED" for request in mine for commit in request.commits)


@pytest.mark.parametrize("nth", range(1, 17, 2))
@pytest.mark.parametrize(
    "action",
    [
        pytest.param(Action.CRASH_BEFORE, marks=pytest.mark.fault("A1")),
        pytest.param(Action.CRASH_AFTER, marks=pytest.mark.fault("A2")),
    ],
)
def test_a_crash_around_any_write_ends_in_the_same_world(action: Action, nth: int) -> None:
    at = Point(verb="write", kind="Note", nth=nth)
    done = play(live_guarded, Fault("A", action, at))
    assert len(done.world.processes) == 2, "the crash never happened: the test shows nothing"
    assert find_violations(done) == ""
    assert created(done.world) == 4


@pytest.mark.fault("A3")
def test_a_crash_loop_at_one_point_makes_nothing_grow() -> None:
    async def crash_twenty_times(world: World) -> None:
        watching = asyncio.create_task(Watchman(world).watch())
        await world.create(a_note())
        await world.sleep(60)
        world.injector.disarm("A3")
        await world.sleep(14 * 60)
        assert await world.is_mirrored(a_note())
        watching.cancel()
        await asyncio.wait({watching})

    at = Point(verb="create", kind="Note", times=20)
    done = play(crash_twenty_times, Fault("A3", Action.CRASH_BEFORE, at))
    assert len(done.world.processes) >= 20
    assert created(done.world) == 1


@pytest.mark.fault("A4")
@pytest.mark.parametrize("delay", [2, 60])
def test_a_stop_lets_a_reconcile_end_or_cancels_it_within_eight_seconds(delay: int) -> None:
    async def stop_in_the_middle(world: World) -> None:
        process = world.process()
        process.start("alpha", "beta")
        await world.sleep(5)
        world.links[HUB].slow(timedelta(seconds=delay))
        await world.create(a_note())
        await world.sleep(1)
        await world.create(a_note("late"))
        before = world.clock.monotonic()
        await process.stop()
        taken = (world.clock.monotonic() - before).total_seconds()
        assert taken <= 8.5
        copies.append(await world.find(copy_key(a_note())) is not None)
        assert await world.find(copy_key(a_note("late"))) is None, "no more keys are taken"

    copies: list[bool] = []
    done = play(stop_in_the_middle)
    assert copies == [delay == 2], "what can end in time ends"
    assert done.report.pending == []
    assert done.report.unhandled == []
    assert done.history.open_responses == {}


# time ------------------------------------------------------------------------------------------


@pytest.mark.fault("E1")
@pytest.mark.parametrize("offset", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_a_wrong_clock_changes_nothing(offset: timedelta) -> None:
    async def live_with_a_wrong_clock(world: World) -> None:
        world.start_acting()
        clock = SkewedClock(world.clock, offset)
        world.process(clock=clock).start("alpha", "beta")
        await use(world)
        await world.sleep(12 * 60)
        await check_end(world)

    assert find_violations(play(live_with_a_wrong_clock), is_reference=True) == ""


@pytest.mark.fault("E1")
def test_a_clock_that_steps_back_an_hour_neither_stops_nor_spins() -> None:
    async def step_back(world: World) -> None:
        world.start_acting()
        clock = SkewedClock(world.clock)
        world.process(clock=clock).start("alpha", "beta")
        asyncio.get_running_loop().call_later(15, clock.step, timedelta(hours=-1))
        asyncio.get_running_loop().call_later(25, clock.slew, 1.5)
        await use(world)
        await world.sleep(12 * 60)
        await check_end(world)

    assert find_violations(play(step_back), is_reference=True) == ""


# leadership ------------------------------------------------------------------------------------


class Replica:
    """A process that writes only under the Lease."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.link = Link()
        transport = FaultyTransport(
            world.planes[HOME].connect(),
            world.injector,
            plane=HOME,
            process=CrashableProcess(name),
            link=self.link,
        )
        lane = FlowControl(HOME, world.clock)
        leases = HttpKubeClient(
            RestConfig(HOME, Role.HOME, transport, lane), FieldOwner("leader", "example-leader")
        )
        self.election = Election(
            leases,
            Candidacy(LEASE_KEY, name),
            clock=world.clock,
            random=world.clock.random(f"{name}/lease"),
            measures=NoMetrics(),
        )
        self.process = world.process(name, leadership=self.election)
        self.process.operator.engage_hub()
        for project in ("alpha", "beta"):
            self.process.operator.engage_project(project)
        self.task = asyncio.create_task(self.election.lead(self.process.operator.manager.run))

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


def last_write(world: World, name: str) -> float:
    sent = [request.begun for request in world.writes(name)]
    return (max(sent) - world.history.begun).total_seconds() if sent else 0.0


def first_write(world: World, name: str) -> float:
    sent = [request.begun for request in world.writes(name)]
    return (min(sent) - world.history.begun).total_seconds() if sent else float("inf")


async def keep_busy(world: World, seconds: int) -> None:
    """A change every half second, so that the leader always has a write to send."""
    for number in range(2 * seconds):
        await world.edit(a_note(), f"edit {number}")
        await world.sleep(0.5)


@pytest.mark.fault("E2", "E3")
@pytest.mark.parametrize("way", ["unwritable", "stolen", "deleted"])
def test_a_leader_that_lost_its_lease_stops_before_the_next_one_begins(way: str) -> None:
    async def lose(world: World) -> None:
        await world.add_plane(HOME, with_notes=False)
        world.start_acting()
        await world.create(a_note())
        first = Replica(world, "first")
        await world.sleep(5)
        second = Replica(world, "second")
        await keep_busy(world, 10)
        assert first_write(world, "second") == float("inf"), "only the leader writes"
        lost_at = world.clock.monotonic().total_seconds()
        match way:
            case "unwritable":
                first.link.cut(LinkState.SILENT)
            case "stolen":
                first.link.cut(LinkState.SILENT)
                holder = {"spec": {"holderIdentity": "thief"}}
                await world.kube(HOME).patch_merge(LEASE_KEY, holder)
                await world.sleep(1)
                first.link.heal()
            case _:
                lease = await world.kube(HOME).get(LEASE_KEY)
                assert isinstance(lease, Snapshot)
                await world.kube(HOME).delete(
                    LEASE_KEY, preconditions=Preconditions(lease.metadata.uid)
                )
        await keep_busy(world, 60)
        if way == "deleted":
            # The leader creates it again, or another one does; never both.
            overlap = last_write(world, "first") > first_write(world, "second")
            assert not overlap
        else:
            assert isinstance(first.task.exception(), LeaseLostError)
            assert last_write(world, "first") <= lost_at + 10
            assert first_write(world, "second") >= last_write(world, "first")
            assert first_write(world, "second") < float("inf")
        await world.sleep(120)
        assert await world.is_mirrored(a_note())
        for replica in (first, second):
            await replica.end()

    done = play(lose)
    assert done.report.unhandled == []


@pytest.mark.fault("E2")
def test_two_processes_that_both_believe_to_lead_make_everything_once() -> None:
    async def live_twice(world: World) -> None:
        world.start_acting()
        for name in ("operator-1", "operator-2"):
            world.process(name).start("alpha", "beta")
        await use(world)
        await world.sleep(12 * 60)
        await check_end(world)

    for seed in range(1, 6):
        done = play(live_twice, seed=seed)
        assert find_violations(done) == ""
        assert created(done.world) == 4


def test_followers_send_no_write_and_know_what_to_do_when_they_lead() -> None:
    async def follow(world: World) -> None:
        world.start_acting()
        process = world.process()
        process.operator.engage_hub()
        process.operator.engage_project("alpha")
        await world.create(a_note())
        await world.sleep(30)
        assert world.writes() == []
        begun = world.clock.monotonic()
        process.start("alpha")
        await world.eventually(lambda: world.is_mirrored(a_note()))
        assert (world.clock.monotonic() - begun).total_seconds() < 1

    play(follow)


def test_the_story_is_the_same_for_the_operator_under_a_watchman() -> None:
    assert find_violations(play(live_guarded), is_reference=True) == ""
    assert find_violations(play(live_and_rest), is_reference=True) == ""


def test_requests_of_the_lease_are_not_those_of_reconciles() -> None:
    async def lead(world: World) -> None:
        await world.add_plane(HOME, with_notes=False)
        replica = Replica(world, "first")
        await world.sleep(60)
        await replica.end()

    done = play(lead)
    assert [
        r for r in done.history.of(Request) if r.caller.identity == "first" and r.address.is_write
    ] == []
