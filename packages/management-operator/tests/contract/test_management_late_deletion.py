"""A Workload is deleted, and the operator's watch brings that late or never.

Until it comes, the cache has a Workload that is not going, and every deployment that the garbage
collector takes looks like a city without one.
"""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest
from management_builders.documents import a_workload_document
from management_builders.world import USER, World, play, single_settings

from compute_management_operator.planes import DEPLOYMENT, SINGLE, WORKLOAD
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected

MARGIN = 10  # writes above those of a run without the fault (faults.md, FS-01)
EVENT = Point(plane=SINGLE, verb="watch", kind=WORKLOAD.kind)
TARGET = "/apis/compute.datumapis.com/v1alpha/namespaces/default/workloads/web"


def late(seconds: float) -> Fault:
    """From the next event on the watch of Workloads is behind for so long."""
    delay = timedelta(seconds=seconds)
    return Fault("FS-01", Action.STALE, EVENT, Parameters(delay=delay, count=0))


SILENT = Fault("FS-01", Action.SILENCE, EVENT)


async def delete(world: World, propagation: str) -> None:
    body = orjson.dumps({"propagationPolicy": propagation})
    headers = {"Content-Type": "application/json"}
    plane = world.planes[SINGLE].connect(USER)
    answer = await plane.request("DELETE", TARGET, headers, body)
    await answer.close()
    assert answer.status == 200


def count_writes(propagation: str, rest: float, fault: Fault | None) -> int:
    """Deletes a Workload that is placed; how many writes that takes until all is at rest."""
    counted: list[int] = []

    async def scenario(world: World) -> None:
        await world.add_project_plane(cities=("DFW", "ORD"))
        world.process(settings=single_settings()).start()
        await world.create(SINGLE, a_workload_document("web"))
        await world.eventually(lambda: world.exists(SINGLE, DEPLOYMENT, "web-us-dfw"))
        await world.sleep(rest)
        before = len(world.writes())
        born = len(world.writes(verb="create", kind=DEPLOYMENT.kind))
        if fault is not None:
            world.injector.arm(fault)
        await delete(world, propagation)
        await world.sleep(120)
        counted.append(len(world.writes()) - before)
        assert await world.names(SINGLE, DEPLOYMENT) == []
        assert await world.names(SINGLE, WORKLOAD) == []
        if rest:
            assert world.writes(verb="create", kind=DEPLOYMENT.kind)[born:] == []

    done = play(scenario)
    assert bool(list(done.history.of(Injected))) is (fault is not None)
    return counted[0]


@pytest.mark.spec("FS-01")
@pytest.mark.parametrize("rest", [0, 60], ids=["new", "at-rest"])
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
@pytest.mark.parametrize("fault", [late(5), late(30), SILENT], ids=["5s", "30s", "silent"])
def test_a_deletion_that_is_seen_late_places_nothing_again(
    fault: Fault, propagation: str, rest: float
) -> None:
    least = count_writes(propagation, rest, None)
    assert count_writes(propagation, rest, fault) <= least + MARGIN
