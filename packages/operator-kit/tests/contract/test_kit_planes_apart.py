"""Planes that are engaged, disengaged, hang or fail do not affect each other."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from datetime import timedelta

import pytest
from example_operator.mirror.observe import copy_key
from example_operator.notes import HUB, NOTE
from example_operator.oracles import find_violations
from example_operator.scenario import check_end, live, live_and_rest
from example_operator.world import Run, World, a_note, play

from compute_operator_kit.core.errors import InvariantError, PlaneGoneError
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.planes.engaged_plane import Plane, PlaneState
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Request

BETA = PlaneName("beta")


def first_copy(done: Run, plane: str) -> float:
    made = [
        request.at
        for request in done.world.writes(verb="create")
        if request.status == 201 and request.address.name.startswith(f"{plane}.")
    ]
    return (min(made) - done.history.begun).total_seconds()


def error(status: int) -> Fault:
    at = Point(plane="alpha", kind="Note", times=0)
    return Fault("D2", Action.ERROR, at, Parameters(status=status))


@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(error(403), id="403"),
        pytest.param(error(503), id="503"),
        pytest.param(
            Fault("D2", Action.BAD_BODY, Point(plane="alpha", kind="Note", times=0)), id="garbage"
        ),
        pytest.param(
            Fault("D2", Action.TIMEOUT, Point(plane="alpha", kind="Note", times=0)), id="hangs"
        ),
        pytest.param(
            Fault("D2", Action.REFUSE, Point(plane="alpha", kind="Note", times=0)), id="vanished"
        ),
    ],
)
def test_a_plane_that_is_broken_delays_no_other_and_is_served_when_it_is_mended(
    fault: Fault,
) -> None:
    async def mend_later(world: World) -> None:
        await live(world)
        world.injector.disarm("D2")
        await world.sleep(14 * 60)
        await check_end(world)

    baseline = first_copy(play(live_and_rest), "beta")
    done = play(mend_later, fault)
    assert find_violations(done) == ""
    assert first_copy(done, "beta") <= 2 * baseline


@pytest.mark.fault("D1")
@pytest.mark.parametrize("state", [LinkState.REFUSED, LinkState.SILENT])
def test_a_hub_that_is_away_loses_nothing(state: LinkState) -> None:
    async def lose_the_hub(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.create(a_note("before"))
        await world.sleep(5)
        world.links[HUB].cut(state)
        await world.create(a_note("meanwhile"))
        await world.edit(a_note("before"), "edited meanwhile")
        await world.sleep(60)
        await world.delete(a_note("before"))
        await world.sleep(10 * 60)
        assert await world.find(a_note("before")) is not None, "the finalizer holds"
        world.links[HUB].heal()
        taken = await world.eventually(lambda: world.is_mirrored(a_note("meanwhile")), within=60)
        assert taken <= 60
        await world.eventually(lambda: world.is_gone(a_note("before")), within=60)
        await world.sleep(12 * 60)

    done = play(lose_the_hub)
    assert find_violations(done) == ""


@pytest.mark.fault("D1")
def test_while_a_plane_is_away_one_probe_asks_for_all_keys() -> None:
    async def lose_the_hub(world: World) -> None:
        world.start_acting()
        world.process().start("alpha", "beta")
        await world.sleep(5)
        for number in range(50):
            await world.create(a_note(f"n{number}"))
        await world.sleep(2)
        world.links[HUB].cut()
        for number in range(50):
            await world.edit(a_note(f"n{number}"), "edited")
        await world.sleep(60)
        asked.append(_requests_to_hub(world))
        await world.sleep(5 * 60)
        asked.append(_requests_to_hub(world))
        world.links[HUB].heal()
        await world.sleep(12 * 60)
        for number in range(50):
            assert await world.is_mirrored(a_note(f"n{number}"))

    asked: list[int] = []
    done = play(lose_the_hub)
    assert find_violations(done) == ""
    assert asked[1] - asked[0] <= 15, "five minutes at a probe every 30 s"


def _requests_to_hub(world: World) -> int:
    return sum(
        request.caller.identity == "operator" and request.address.plane == HUB
        for request in world.history.of(Request)
    )


@pytest.mark.fault("D3")
def test_keys_of_a_plane_that_is_gone_are_dropped_and_what_it_held_is_released() -> None:
    async def leave(world: World) -> None:
        world.start_acting()
        process = world.process()
        process.start("alpha", "beta")
        for plane in ("alpha", "beta"):
            await world.create(a_note(plane=plane))
        await world.sleep(5)
        before = len(world.history.open_responses)
        await process.operator.planes.disengage(BETA)
        assert len(world.history.open_responses) == before - 1, "its watch is closed"
        assert process.operator.planes.find(BETA) is None
        with pytest.raises(PlaneGoneError):
            process.operator.planes.lister(BETA, NOTE)
        sent = len(world.writes())
        await world.edit(a_note(plane="beta"), "not seen")
        await world.set_phase(copy_key(a_note(plane="beta")), "Lost")
        await world.sleep(60)
        assert len(world.writes()) == sent
        await world.edit(a_note(plane="alpha"), "seen")
        await world.eventually(lambda: world.is_mirrored(a_note(plane="alpha")))
        process.operator.engage_project("beta")
        await world.eventually(lambda: world.is_mirrored(a_note(plane="beta")))
        await world.sleep(12 * 60)

    assert find_violations(play(leave)) == ""


def test_a_plane_may_go_in_the_middle_of_everything() -> None:
    async def leave(world: World) -> None:
        world.start_acting()
        process = world.process()
        process.start("alpha", "beta")
        for step in range(60):
            await world.create(a_note(f"n{step}", plane="beta"))
            process.operator.engage_project("beta")
            await world.clock.sleep(timedelta(milliseconds=7 * step))
            await process.operator.planes.disengage(BETA)
        process.operator.engage_project("beta")
        await world.sleep(14 * 60)
        for step in range(60):
            assert await world.is_mirrored(a_note(f"n{step}", plane="beta"))

    done = play(leave)
    assert find_violations(done) == ""
    assert done.world.error_lines == []


def test_starting_and_stopping_a_plane_two_hundred_times_leaks_nothing() -> None:
    async def come_and_go(world: World) -> None:
        others = _objects_of_the_kit()  # still held by earlier tests
        process = world.process()
        process.start("alpha")
        for number in range(20):
            await world.create(a_note(f"n{number}", plane="beta"))
        held: list[Counter[str]] = []
        for round_ in range(200):
            process.operator.engage_project("beta")
            await world.sleep(1)
            await process.operator.planes.disengage(BETA)
            if round_ in {20, 199}:
                await world.sleep(10 * 60)  # the simulated loop keeps cancelled timers until then
                held.append(_objects_of_the_kit())
                assert len(asyncio.all_tasks()) <= 8
                assert len(world.history.open_responses) == 2, "the watches of hub and alpha"
        grown = {name: held[1][name] - held[0][name] for name in held[1]}
        assert {name: more for name, more in grown.items() if more > 2} == {}
        ours = [held[1][name] - others[name] for name in ("EngagedPlane", "Store", "Reflector")]
        assert ours == [2, 2, 2]

    done = play(come_and_go)
    assert done.report.pending == []
    assert done.report.unhandled == []


def _objects_of_the_kit() -> Counter[str]:
    """Live objects of classes of the kit, without fakes, which keep objects on purpose."""
    gc.collect()
    return Counter(
        type(one).__name__
        for one in gc.get_objects()
        if str(type(one).__module__).startswith("compute_operator_kit.")
        and type(one).__module__ != "compute_operator_kit.testing.fakes"
        and not isinstance(one, RecordEvent | ObjectKey)  # kept by the fake recorder
    )


@pytest.mark.fault("D2")
def test_sixteen_planes_that_hang_hold_the_start_of_others_for_one_attempt_at_most() -> None:
    hanging = tuple(f"hangs-{number}" for number in range(20))

    async def start_many(world: World) -> None:
        for name in hanging:
            world.links[name].cut(LinkState.SILENT)
        world.start_acting()
        world.process().start(*hanging, "alpha")
        await world.create(a_note())
        taken = await world.eventually(lambda: world.is_mirrored(a_note()), within=60)
        assert taken <= 25

    done = play(start_many, projects=(*hanging, "alpha"))
    assert done.report.pending == []


def test_at_most_sixteen_planes_start_at_once() -> None:
    many = tuple(f"p{number}" for number in range(40))

    async def start_many(world: World) -> None:
        for name in many:
            world.links[name].slow(timedelta(seconds=1))
        world.process().start(*many)
        await world.sleep(20)

    done = play(start_many, projects=many)
    begun = sorted(
        (request.begun, request.at)
        for request in done.history.of(Request)
        if request.address.verb == "list"
        and request.address.plane in many
        and request.caller.identity == "operator"
    )
    assert len(begun) == 40
    for moment, _ in begun:
        assert sum(start <= moment < end for start, end in begun) <= 16


def test_the_state_of_planes_is_in_metrics() -> None:
    async def break_some(world: World) -> None:
        process = world.process()
        process.start("alpha", "beta")
        planes = process.operator.planes
        assert planes.get(BETA).state is PlaneState.DOWN, "never synced"
        await world.sleep(5)
        assert planes.get(BETA).state is PlaneState.UP
        world.links["beta"].cut()
        await world.sleep(1)
        assert planes.get(BETA).state is PlaneState.DEGRADED
        await world.sleep(60)
        assert planes.get(BETA).state is PlaneState.DOWN
        gauges = process.measures.gauges
        assert gauges[("compute_plane_up", (("plane", "hub"),))] == 1
        assert gauges[("compute_planes", (("plane", "project"), ("state", "down")))] == 1
        assert gauges[("compute_planes", (("plane", "project"), ("state", "up")))] == 1
        world.links["beta"].heal()
        await world.sleep(60)
        assert planes.get(BETA).state is PlaneState.UP

    play(break_some)


def test_planes_of_a_role_are_listed_in_order() -> None:
    async def come_and_go(world: World) -> None:
        planes = world.process().operator.planes
        listed = [planes.planes(Role.PROJECT)]
        for name in ("beta", "alpha"):
            planes.engage(Plane(PlaneName(name), Role.PROJECT))
            listed.append(planes.planes(Role.PROJECT))
        await planes.disengage(BETA)
        listed.append(planes.planes(Role.PROJECT))
        assert listed == [(), ("beta",), ("alpha", "beta"), ("alpha",)]
        await planes.close()

    play(come_and_go)


def test_a_plane_is_engaged_once_and_never_replaced_in_silence() -> None:
    async def engage_twice(world: World) -> None:
        planes = world.process().operator.planes
        first = planes.engage(Plane(BETA, Role.PROJECT, uid="u1"))
        assert planes.engage(Plane(BETA, Role.PROJECT, uid="u1")) is first
        with pytest.raises(InvariantError, match="another one has that name"):
            planes.engage(Plane(BETA, Role.PROJECT, uid="u2"))
        assert planes.planes(Role.PROJECT) == (BETA,)
        with pytest.raises(InvariantError, match="not watched"):
            planes.lister(BETA, NOTE.__class__("", "v1", "pods", "Pod"))
        assert planes.lister(BETA, NOTE).snapshots() == Unreadable("NotSynced")
        await planes.disengage(BETA)
        await planes.disengage(BETA)

    play(engage_twice)


def test_a_plane_needs_a_name() -> None:
    with pytest.raises(InvariantError, match="no name"):
        Plane(PlaneName(""), Role.HUB)


def test_nothing_acts_before_the_caches_it_reads_are_complete() -> None:
    async def start_without_the_hub(world: World) -> None:
        await world.create(a_note())
        world.links[HUB].cut(LinkState.SILENT)
        world.process().start("alpha", "beta")
        await world.sleep(60)
        assert world.writes() == [], "half a list looks like a mass deletion"
        world.links[HUB].heal()
        await world.eventually(lambda: world.is_mirrored(a_note()), within=60)

    play(start_without_the_hub)
