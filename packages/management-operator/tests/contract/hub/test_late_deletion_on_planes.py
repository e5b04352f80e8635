"""A project deployment is deleted, and the operator's watch brings that late or never."""

from __future__ import annotations

from datetime import timedelta

import pytest
from management_builders.hub_script import PROJECT, WD, WD_READY, Hub, play_hub

from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Injected

MARGIN = 10  # writes above those of a run without the fault (faults.md, FS-01)


def late(nth: int, seconds: float | None) -> Fault:
    """The watch of the project's deployments is behind from the nth event on; None: silent."""
    at = Point(plane=PROJECT, verb="watch", kind=DEPLOYMENT.kind, nth=nth)
    if seconds is None:
        return Fault("FS-01", Action.SILENCE, at)
    delay = timedelta(seconds=seconds)
    return Fault("FS-01", Action.STALE, at, Parameters(delay=delay, count=0))


def count_writes(fault: Fault | None, *, is_stripped: bool) -> int:
    """Deletes a deployment that is shown; `is_stripped`: past the finalizer that would hold it."""
    counted: list[int] = []

    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.project()
        await world.sleep(60)
        before = len(world.writes())
        if fault is not None:
            world.injector.arm(fault)
        await world.delete(PROJECT, DEPLOYMENT, WD)
        if is_stripped:
            await world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"finalizers": None}})
        await world.sleep(120)
        counted.append(len(world.writes()) - before)
        assert await world.names(PROJECT, INSTANCE) == []
        assert await world.names(HUB, DEPLOYMENT) == []

    done = play_hub(story)
    assert bool(list(done.history.of(Injected))) is (fault is not None)
    return counted[0]


@pytest.mark.spec("FS-01")
@pytest.mark.parametrize("is_stripped", [False, True], ids=["held", "stripped"])
@pytest.mark.parametrize("nth", [1, 2], ids=["going", "gone"])
@pytest.mark.parametrize("seconds", [5, 30, None], ids=["5s", "30s", "silent"])
def test_a_deletion_that_is_seen_late_copies_and_shows_nothing_again(
    seconds: float | None, nth: int, *, is_stripped: bool
) -> None:
    least = count_writes(None, is_stripped=is_stripped)
    assert count_writes(late(nth, seconds), is_stripped=is_stripped) <= least + MARGIN
