"""Outages and crashes as stories: what a cell writes, where, and in which order.

`UPDATE_GOLDENS=1 pytest packages/cell-operator/tests/stories` writes the texts anew.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

from cell_builders.storyteller import Storyteller, assert_golden, describe
from cell_builders.world import QUOTA_ON, World, play, settings_of, uid_of

from compute_cell_operator.planes import HUB
from compute_operator_kit.core.json import member_object
from compute_sim_planes.faults.plans import Action, Fault, Point
from compute_sim_planes.history import Request

GOLDEN: Final = Path(__file__).parent / "golden"
RECORDED: Final = "compute.datumapis.com/instance-uid"


async def begin(world: World) -> None:
    await world.add_milo()
    world.provider.options.start_at_once()
    world.start_neighbours()
    await world.federate()


def start(world: World, name: str = "operator") -> None:
    world.process(name, settings_of(quota=QUOTA_ON, networking="off")).start()


async def assert_whole(world: World, *names: str) -> None:
    """Every Instance runs, and has one copy and one claim, both its own."""
    assert world.milo is not None
    await world.eventually(lambda: world.has_copies(*names), within=120)
    claims = await world.milo.claims()
    assert sorted(claims) == sorted(f"instance-{name}" for name in names)
    for name in names:
        uid = uid_of(await world.instance(name))
        for document in (await world.copy(name), claims[f"instance-{name}"]):
            metadata = member_object(document, "metadata")
            assert member_object(metadata, "annotations")[RECORDED] == uid


def test_hub_away_for_an_hour() -> None:
    async def scenario(world: World) -> None:
        story = Storyteller(world)
        await begin(world)
        start(world)
        story.say("two replicas come up, the hub beside them")
        await world.deliver("web", 2)
        await world.eventually(world.is_converged)
        await world.sleep(10)
        story.note()
        story.say("the hub goes away; a new image rolls through the cell")
        world.links[HUB].cut()
        await world.set_image("web", "2.0")
        await world.sleep(30)
        assert await world.is_converged()
        story.note()
        story.say("one replica is enough, still without a hub")
        await world.scale("web", 1)
        await world.sleep(30)
        story.note()
        story.say("an hour passes")
        await world.sleep(3600)
        story.note()
        story.say("the hub is back: it hears what is true now, and nothing of what was between")
        world.links[HUB].heal()
        await world.sleep(120)
        story.note()
        await assert_whole(world, "web-0")
        story.say("and then it is quiet")
        await world.sleep(3600)
        story.note()
        texts.append(story.text())

    texts: list[str] = []
    play(scenario)
    assert_golden(GOLDEN / "hub-away-for-an-hour.txt", texts[0])


def test_operator_killed_at_each_step() -> None:
    """One replica comes up; after each of its writes the process dies and another takes over."""
    steps = _writes_of_a_first_rollout()
    chapters = ["# What a first rollout writes when nobody dies", *map(describe, steps)]
    for number, step in enumerate(steps, start=1):
        chapters += ["", f"# Killed when this had just taken effect:{describe(step)[1:]}"]
        left = _writes_after_a_crash(number)
        chapters += map(describe, left) if left else ["  nothing is left to be written"]
    assert_golden(GOLDEN / "operator-killed-at-each-step.txt", "\n".join(chapters) + "\n")


def _evaluate_slowly(world: World) -> None:
    """What is shown while quota is pending is written too, so that a crash can follow it."""
    assert world.milo is not None
    world.milo.milo.options.evaluation_delay = timedelta(seconds=1)


def _writes_of_a_first_rollout() -> list[Request]:
    async def scenario(world: World) -> None:
        await begin(world)
        _evaluate_slowly(world)
        start(world)
        await world.deliver()
        await world.eventually(world.is_converged)
        await assert_whole(world, "web-0")

    done = play(scenario)
    return [one for one in done.world.writes() if one.commits]


def _writes_after_a_crash(number: int) -> list[Request]:
    """What the second process writes, and that the world is the same in the end."""

    async def scenario(world: World) -> None:
        await begin(world)
        _evaluate_slowly(world)
        start(world)
        await world.deliver()
        await world.sleep(10)
        first = world.processes[0]
        assert first.life.is_dead, "the fault never took effect"
        await first.kill()
        start(world, "successor")
        await world.eventually(world.is_converged, within=120)
        await assert_whole(world, "web-0")
        assert world.provider.violations == []
        assert len(world.provider.started) == 1
        assert await world.rests(30, "successor") == []

    point = Point(verb="write", nth=number)
    done = play(scenario, Fault("A2", Action.CRASH_AFTER, point), is_clean=False)
    return [one for one in done.world.writes("successor") if one.commits]
