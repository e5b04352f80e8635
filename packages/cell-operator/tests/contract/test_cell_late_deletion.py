"""A deployment is deleted, and the cell's watch brings its DELETED event late or never.

Until it comes, the cache has a deployment that is gone, and every Instance that the garbage
collector takes looks like an empty slot.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from cell_builders.quota_scenes import begin, claims
from cell_builders.world import World, play

from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NETWORK_BINDING
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected, Request

MARGIN = 10  # writes above those of a run without the fault (faults.md, FS-01)
EVENT = Point(plane=CELL, verb="watch", kind=DEPLOYMENT.kind)


def late(seconds: float) -> Fault:
    """From the next event on the watch of deployments is behind for so long."""
    delay = timedelta(seconds=seconds)
    return Fault("FS-01", Action.STALE, EVENT, Parameters(delay=delay, count=0))


SILENT = Fault("FS-01", Action.SILENCE, EVENT)


def count_writes(replicas: int, fault: Fault | None, *, is_new: bool) -> int:
    """Deletes a deployment that runs; how many writes that takes until all is at rest."""
    counted: list[int] = []

    async def scenario(world: World) -> None:
        await begin(world, replicas)
        if not is_new:
            await world.rests(1)
        before = len(world.writes())
        born = len(world.writes(verb="create"))
        if fault is not None:
            world.injector.arm(fault)
        await world.withdraw()
        await world.sleep(120)
        counted.append(len(world.writes()) - before)
        made = world.writes(verb="create")[born:]
        assert [one.address.name for one in made if one.address.kind == INSTANCE.kind] == []
        # What was read a moment before a create is believed: one binding may still be made then.
        bindings = [one.address.name for one in made if one.address.kind == NETWORK_BINDING.kind]
        assert len(bindings) <= int(is_new)
        assert await world.instances() == []
        assert await world.names(CELL, NETWORK_BINDING) == []
        assert await world.copies() == []
        assert await claims(world) == {}
        assert await world.rests(30) == []

    done = play(scenario)
    assert bool(list(done.history.of(Injected))) is (fault is not None)
    return counted[0]


@pytest.mark.spec("FS-01")
@pytest.mark.parametrize("is_new", [False, True], ids=["at-rest", "new"])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("fault", [late(5), late(30), SILENT], ids=["5s", "30s", "silent"])
def test_a_deletion_that_is_seen_late_starts_nothing_again(
    fault: Fault, replicas: int, *, is_new: bool
) -> None:
    least = count_writes(replicas, None, is_new=is_new)
    assert count_writes(replicas, fault, is_new=is_new) <= least + MARGIN


def made(world: World) -> list[Request]:
    return world.writes(plane=CELL, verb="create", kind=INSTANCE.kind)


@pytest.mark.spec("FS-01")
def test_a_deployment_made_again_under_its_name_starts_once_its_predecessor_is_seen_gone() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.rests(1)
        born = len(made(world))
        world.injector.arm(late(30))
        await world.withdraw()
        await world.deliver()
        await world.sleep(29)
        assert made(world)[born:] == []
        await world.sleep(2)
        await world.eventually(world.is_converged)
        assert len(made(world)[born:]) == 1

    play(scenario)
