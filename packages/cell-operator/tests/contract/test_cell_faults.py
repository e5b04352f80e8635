"""Faults in the way of the deployment controller: refusals, conflicts, lost events."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from cell_builders.documents import NS, a_deployment_document
from cell_builders.world import World, condition_of, play, spec_of

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE, NETWORK_BINDING
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected


def error(at: Point, status: int, reason: str = "", fault: str = "C1") -> Fault:
    return Fault(fault, Action.ERROR, at, Parameters(status=status, reason=reason))


CREATES = Point(verb="create", kind=INSTANCE.kind, times=0)


@pytest.mark.spec("C-46")
@pytest.mark.parametrize(("status", "reason"), [(422, "Invalid"), (403, "Forbidden")])
def test_a_refused_create_is_shown_with_its_cause_and_the_status_is_written(
    status: int, reason: str
) -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        process = world.process()
        process.start()
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(lambda: world.says("InstanceFailedToCreate"))
        found = await world.deployment()
        _, _, message = condition_of(found, "Available")
        assert message.startswith('Instance "web-0" could not be created: ')
        assert condition_of(found, "ReplicasReady")[1] == "InstanceFailedToCreate"
        await world.sleep(240)
        assert len(world.writes(kind=INSTANCE.kind)) <= 5
        assert process.reasons().count("InstanceFailedToCreate") == 1

    play(scenario, error(CREATES, status, reason), is_clean=False)


@pytest.mark.spec("C-85", "FS-04")
@pytest.mark.fault("C1")
def test_a_minute_of_conflicts_is_retried_ever_less_often_and_loses_nothing() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.sleep_until(60)
        await world.eventually(world.is_converged, within=9)

    at = Point(verb="update", kind=DEPLOYMENT.kind, times=0, until=timedelta(seconds=60))
    done = play(scenario, error(at, 409, "Conflict"))
    tries = [request.at for request in done.world.writes(kind=DEPLOYMENT.kind)]
    gaps = [(b - a).total_seconds() for a, b in itertools.pairwise(tries)]
    assert len(tries) <= 30
    assert max(gaps) <= 8.2  # a wait that grew further would make the truth late
    assert min(gaps[-6:]) >= 6


@pytest.mark.spec("FS-04")
@pytest.mark.fault("C1")
def test_a_conflict_is_tried_again_on_what_is_there_and_not_on_what_the_cache_has() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        # The cache of deployments falls behind, and the status is derived from what it has.
        at = Point(plane=CELL, verb="watch", kind=DEPLOYMENT.kind)
        behind = Parameters(delay=timedelta(seconds=25), count=0)
        world.injector.arm(Fault("B5", Action.STALE, at, behind))
        await world.patch(CELL, DEPLOYMENT, "web", {"metadata": {"annotations": {"a": "b"}}})
        before = len(world.writes(kind=DEPLOYMENT.kind))
        await world.delete(CELL, INSTANCE, "web-0")
        await world.sleep(24)
        assert len(world.writes(kind=DEPLOYMENT.kind)) - before == 1
        await world.sleep(2)
        await world.eventually(world.is_converged)
        refused = [one for one in world.writes(kind=DEPLOYMENT.kind)[before:] if not one.commits]
        assert len(refused) == 1

    play(scenario)


@pytest.mark.spec("C-10")
def test_a_delete_that_came_too_late_spares_the_successor() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        # A user deletes the Instance during our own delete, and a new one gets its name.
        await world.set_image("web", "2.0")
        await world.delete(CELL, INSTANCE, "web-0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        assert "2.0" in str(spec_of(await world.instance("web-0")))
        born = [one for one in world.writes(kind=INSTANCE.kind, verb="create") if one.commits]
        assert len(born) == 2

    at = Point(verb="delete", kind=INSTANCE.kind)
    slow = Fault("B6", Action.DELAY, at, Parameters(delay=timedelta(seconds=5)))
    play(scenario, slow)


@pytest.mark.spec("C-87", "C-75")
def test_the_hub_being_away_changes_nothing_in_the_cell() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(world.is_converged)
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)

    at = Point(plane=HUB, times=0)
    play(scenario, Fault("D1", Action.REFUSE, at))


@pytest.mark.spec("C-88")
def test_a_deployment_that_is_refused_is_reported_on_itself_and_stops_no_other() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("odd", 1))
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        assert await world.says("InstanceFailedToCreate", "odd")

    at = Point(verb="create", kind=INSTANCE.kind, key=f"{NS}/odd-0", times=0)
    done = play(scenario, error(at, 422, "Invalid"))
    assert list(done.history.of(Injected)), "the fault never took effect"


def test_an_unreadable_kind_of_networking_changes_nothing_and_scaling_down_goes_on() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(world.is_converged)
        await world.processes[0].stop()
        forbidden = Point(verb="list", kind=NETWORK_BINDING.kind, times=0)
        world.injector.arm(error(forbidden, 403, "Forbidden", "C5"))
        world.process("operator-2").start()
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        assert await world.exists(CELL, NETWORK_BINDING, "web-net-0")

    play(scenario, is_clean=False)
