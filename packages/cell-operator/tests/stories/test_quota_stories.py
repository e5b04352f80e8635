"""Quota as stories: what a cell writes while quota is short, and while its plane is away.

`UPDATE_GOLDENS=1 pytest packages/cell-operator/tests/stories` writes the texts anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cell_builders.documents import PROJECT_NAMESPACE
from cell_builders.quota_oracle import assert_quota_is_safe
from cell_builders.quota_scenes import (
    claims,
    cut,
    enforcing,
    has_claims,
    heal,
    make_claim,
    milo_of,
    records,
    says,
    times,
)
from cell_builders.storyteller import Storyteller, assert_golden
from cell_builders.world import World, play, uid_of

from compute_sim_planes.milo.kinds import CLAIMS

GOLDEN: Final = Path(__file__).parent / "golden"


async def begin(world: World, room: int) -> Storyteller:
    """A Milo with room for so many Instances, and an empty story."""
    story = Storyteller(world)
    await world.add_milo(times(room))
    world.provider.options.start_at_once()
    world.start_neighbours()
    await world.federate()
    return story


def test_quota_denied_then_freed() -> None:
    async def scenario(world: World) -> None:
        story = await begin(world, room=2)
        await make_claim(world, "somebody", cell="", requests=times(1))
        await world.sleep(1)
        enforcing(world).start()
        story.say("two replicas are asked for, and there is room for one")
        await world.deliver("web", 2)
        await world.eventually(says(world, "False", "QuotaExceeded", "web-1"))
        await world.sleep(5)
        story.note()
        story.say("half a minute later it is asked for again, in vain; what the user reads stays")
        await world.sleep(30)
        story.note()
        story.say("somebody leaves; the next attempt fits")
        await milo_of(world).inside().delete(CLAIMS, "somebody", namespace=PROJECT_NAMESPACE)
        await world.eventually(world.is_converged, within=120)
        await world.sleep(5)
        story.note()
        story.say("all of it is withdrawn")
        await world.withdraw("web")
        await world.eventually(has_claims(world), within=120)
        await world.sleep(5)
        story.note()
        assert_golden(GOLDEN / "quota-denied-then-freed.txt", story.text())

    done = play(scenario, has_networking=False)
    assert_quota_is_safe(done, times(2))


def test_quota_plane_away() -> None:
    async def scenario(world: World) -> None:
        story = await begin(world, room=9)
        enforcing(world).start()
        story.say("two replicas come up")
        await world.deliver("web", 2)
        await world.eventually(world.is_converged)
        await world.sleep(5)
        story.note()
        before = {name: uid_of(claim) for name, claim in (await claims(world)).items()}
        story.say("the project plane goes away; a new image rolls on the grants that are held")
        cut(world)
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged, within=120)
        await world.sleep(5)
        story.note()
        story.say("a third replica has no grant to stand on and waits")
        await world.scale("web", 3)
        await world.eventually(says(world, "False", "QuotaBackendUnavailable", "web-2"))
        await world.sleep(5)
        story.note()
        story.say("scaled down to one: nothing waits for the plane but the release")
        await world.scale("web", 1)
        await world.eventually(world.is_converged)
        await world.sleep(600)
        story.note()
        story.say("the plane returns: what is owed is made up, once")
        heal(world)
        await world.eventually(records(world), within=40)
        await world.eventually(has_claims(world, "instance-web-0"), within=40)
        await world.sleep(5)
        story.note()
        assert uid_of((await claims(world))["instance-web-0"]) == before["instance-web-0"]
        assert_golden(GOLDEN / "quota-plane-away.txt", story.text())

    done = play(scenario, has_networking=False)
    assert_quota_is_safe(done, times(9))
