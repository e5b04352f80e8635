"""Crashes around every write of a deployment's life, on every plane (faults.md A1, A2; C-90)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from functools import cache

import pytest
from cell_builders.documents import PROJECT
from cell_builders.world import QUOTA_ON, Process, Run, World, play, settings_of

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB
from compute_sim_planes.faults.plans import Action, Fault, Point
from compute_sim_planes.history import Commit, Injected


class Watchman:
    """Starts a new process whenever the last one died."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._crashed = asyncio.Event()
        self._lives = 0
        self.process = self._start()

    def _start(self) -> Process:
        self._lives += 1
        settings = settings_of(quota=QUOTA_ON, networking="off")
        process = self._world.process(f"operator-{self._lives}", settings)
        process.life.on_crash = lambda _: self._crashed.set()
        process.start()
        return process

    async def watch(self) -> None:
        while True:
            await self._crashed.wait()
            self._crashed.clear()
            await self.process.kill()
            await self._world.sleep(2)
            self.process = self._start()


async def whole_life(world: World) -> None:
    """Create, roll, scale, delete; each step comes to its end before the next."""
    milo = await world.add_milo()
    # Long enough that what is shown while quota is pending is written too.
    milo.milo.options.evaluation_delay = timedelta(seconds=1)
    world.start_neighbours()
    await world.federate()
    watchman = Watchman(world)
    watching = asyncio.create_task(watchman.watch(), name="watchman")
    try:
        await world.deliver("web", 2)
        await _settle(world, "web-0", "web-1")
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await _settle(world, "web-0", "web-1")
        await world.scale("web", 1)
        await world.sleep(1)
        await _settle(world, "web-0")
        await world.delete(CELL, DEPLOYMENT, "web")
        await world.eventually(world.has_instances, within=120)
        await world.eventually(world.has_no_copies, within=120)

        async def has_no_claims() -> bool:
            return not await milo.claims()

        await world.eventually(has_no_claims, within=120)
        assert world.provider.violations == []
        # Two at first, two for the roll: a crash neither costs nor gives one.
        assert len(world.provider.started) == 4
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def _settle(world: World, *names: str) -> None:
    assert world.milo is not None
    await world.eventually(world.is_converged, within=120)
    await world.eventually(lambda: world.has_copies(*names), within=120)
    wanted = sorted(f"instance-{name}" for name in names)

    async def is_claimed() -> bool:
        assert world.milo is not None
        return sorted(await world.milo.claims()) == wanted

    await world.eventually(is_claimed, within=120)


@cache
def reference() -> Run:
    """The same scenario without a crash."""
    return play(whole_life)


def births_and_deaths(done: Run) -> Counter[tuple[str, str, str]]:
    """How often each object was made and went, by whomever."""
    return Counter(
        (commit.plane, commit.type, commit.key)
        for commit in done.history.of(Commit)
        if commit.type in {"ADDED", "DELETED"} and commit.kind in KINDS
    )


KINDS = {"Instance", "ResourceClaim"}
LENGTHS = {CELL: 39, HUB: 26, PROJECT: 6}  # writes of the reference, by plane
STEPS = {CELL: 3, HUB: 2, PROJECT: 1}


def points(first: int) -> list[tuple[str, int]]:
    """Before the first write of three, after the second: where there are many, each gap counts
    once.
    """
    return [
        (plane, nth)
        for plane, length in LENGTHS.items()
        for nth in range(min(first, STEPS[plane]), length + 1, STEPS[plane])
    ]


def test_the_points_cover_the_whole_life() -> None:
    assert Counter(one.address.plane for one in reference().world.writes("operator-1")) == LENGTHS


@pytest.mark.spec("C-90")
@pytest.mark.fault("A1")
@pytest.mark.parametrize(("plane", "nth"), points(1))
def test_a_crash_before_any_write_ends_in_the_same_world(plane: str, nth: int) -> None:
    _crash(Action.CRASH_BEFORE, plane, nth)


@pytest.mark.spec("C-90")
@pytest.mark.fault("A2")
@pytest.mark.parametrize(("plane", "nth"), points(2))
def test_a_crash_after_any_write_ends_in_the_same_world(plane: str, nth: int) -> None:
    _crash(Action.CRASH_AFTER, plane, nth)


def _crash(action: Action, plane: str, nth: int) -> None:
    done = play(whole_life, Fault("A1", action, Point(plane=plane, verb="write", nth=nth)))
    assert list(done.history.of(Injected)), "the fault never took effect"
    assert births_and_deaths(done) == births_and_deaths(reference())
