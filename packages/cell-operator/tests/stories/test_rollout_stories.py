"""Rollouts as stories: what the planner does, round by round, in text that people can review.

`UPDATE_GOLDENS=1 pytest packages/cell-operator/tests/stories` writes the texts anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from cell_builders.rollout_world import RolloutWorld

GOLDEN: Final = Path(__file__).parent / "golden"


def first_rollout(world: RolloutWorld) -> None:
    world.say("three replicas are asked for")
    world.desired = 3
    world.play()


def restart(world: RolloutWorld) -> None:
    first_rollout(world)
    world.say("restartedAt is set: a new template")
    world.template = "v2"
    world.play()


def bad_image_then_fix(world: RolloutWorld) -> None:
    first_rollout(world)
    world.say("an image that cannot be pulled")
    world.template = "bad"
    world.play()
    world.say("the image is corrected")
    world.template = "v3"
    world.play()


def scale_during_a_roll(world: RolloutWorld) -> None:
    first_rollout(world)
    world.say("a new template")
    world.template = "v2"
    world.play_one()
    world.say("five replicas, in the middle of the roll")
    world.desired = 5
    for _ in range(4):
        world.play_one()
    world.say("one replica, in the middle of it all")
    world.desired = 1
    world.play()


STORIES: Final[dict[str, Callable[[RolloutWorld], None]]] = {
    "first-rollout-of-three": first_rollout,
    "restart": restart,
    "bad-image-then-fix": bad_image_then_fix,
    "scale-3-5-1-during-a-roll": scale_during_a_roll,
}


@pytest.mark.parametrize("name", STORIES)
def test_the_story_is_as_it_was_reviewed(name: str) -> None:
    world = RolloutWorld(seed=1)
    STORIES[name](world)
    file = GOLDEN / f"{name}.txt"
    if "UPDATE_GOLDENS" in os.environ:
        file.write_text(world.text(), "utf-8")
    assert world.text() == file.read_text("utf-8")


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("seed", range(10))
def test_every_order_of_things_ends_the_same(name: str, seed: int) -> None:
    first, other = RolloutWorld(seed=1), RolloutWorld(seed=seed)
    STORIES[name](first)
    STORIES[name](other)
    assert {o: instance.template for o, instance in other.instances.items()} == {
        o: instance.template for o, instance in first.instances.items()
    }
    assert all(instance.is_ready for instance in other.instances.values())
