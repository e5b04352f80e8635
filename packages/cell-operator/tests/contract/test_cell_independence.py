"""Decision 5: the far plane never blocks the near one.

With the hub and every project plane away the cell rolls, scales down and deletes; when they are
back everything converges, nothing is left behind and nothing is given back twice.
"""

from __future__ import annotations

import pytest
from cell_builders.quota_oracle import assert_quota_is_safe
from cell_builders.quota_scenes import (
    claim_writes,
    claims,
    cut,
    has_claims,
    heal,
    open_cell,
    records,
)
from cell_builders.world import World, play, spec_of, uid_of

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.history import Request

OUTAGE = 600.0  # seconds, far beyond every retry


async def begin(world: World) -> None:
    """Two deployments that run, with copies and claims."""
    await open_cell(world)
    await world.deliver("web", 3)
    await world.deliver("old", 2)
    await world.eventually(lambda: world.is_converged("web"))
    await world.eventually(lambda: world.is_converged("old"))
    everything = ("web-0", "web-1", "web-2", "old-0", "old-1")
    await world.eventually(lambda: world.has_copies(*everything))
    await world.eventually(has_claims(world, *(f"instance-{name}" for name in everything)))


def cut_all(world: World, state: LinkState) -> None:
    world.links[HUB].cut(state)
    cut(world, state)


def heal_all(world: World) -> None:
    world.links[HUB].heal()
    heal(world)


def effective(requests: list[Request]) -> list[str]:
    """What these requests were about, where they changed something."""
    return sorted(one.address.key for one in requests if one.commits)


async def work_alone(world: World) -> None:
    """A roll, a scale-down and a delete, all of them to the end."""
    await world.set_image("web", "2.0")
    await world.sleep(1)
    await world.eventually(world.is_converged, within=120)
    await world.scale("web", 1)
    await world.delete(CELL, DEPLOYMENT, "old")
    await world.eventually(lambda: world.has_instances("web-0"), within=120)
    await world.eventually(world.is_converged, within=120)
    assert "2.0" in str(spec_of(await world.instance("web-0")))


@pytest.mark.spec("C-87", "C-75")
@pytest.mark.fault("D4")
@pytest.mark.parametrize("state", [LinkState.REFUSED, LinkState.SILENT])
def test_a_cell_alone_rolls_scales_down_and_deletes_and_what_it_owes_is_settled_once(
    state: LinkState,
) -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        before = {name: uid_of(claim) for name, claim in (await claims(world)).items()}
        cut_all(world, state)
        await work_alone(world)
        await world.sleep(OUTAGE)
        # Far away nothing has moved: every copy and every claim is as it was.
        assert {name: uid_of(one) for name, one in (await claims(world)).items()} == before
        assert len(await world.copies()) == 5
        # A change on the hub by Karmada or management meanwhile has no effect here.
        await world.delete(HUB, DEPLOYMENT, "old")
        heal_all(world)
        await world.eventually(has_claims(world, "instance-web-0"), within=300)
        await world.eventually(records(world, "web-0"), within=300)
        await world.eventually(lambda: world.has_copies("web-0"), within=300)
        # The slot kept its claim through the roll.
        kept = (await claims(world))["instance-web-0"]
        assert uid_of(kept) == before["instance-web-0"]
        assert await world.rests(20) == []
        settle_once(world)

    done = play(scenario)
    assert_quota_is_safe(done)


def settle_once(world: World) -> None:
    """Every claim was made once, and every one that is gone was given back once."""
    gone = ["old-0", "old-1", "web-1", "web-2"]
    assert effective(claim_writes(world, "create")) == sorted(
        f"shop/instance-{name}" for name in [*gone, "web-0"]
    )
    released = [one for one in claim_writes(world, "delete") if not one.is_refused]
    assert effective(released) == [f"shop/instance-{name}" for name in gone]
    assert len(released) == len(gone)
    removed = world.writes(plane=HUB, kind=INSTANCE.kind, verb="delete")
    twice = {one.address.key for one in removed if one.commits}
    assert len(effective(removed)) == len(twice)
