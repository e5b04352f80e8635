"""The operator is stopped while planes are away: it ends cleanly, whichever is closed first."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from management_builders.hub_script import PROJECT, WD, WD_READY, Hub, play_hub
from management_builders.world import World

from compute_management_operator.planes import DEPLOYMENT, HOME, HUB, ROOT
from compute_operator_kit.core.keys import PlaneName

PLANES = (HOME, HUB, ROOT, PlaneName(PROJECT))


async def end_late(world: World, seconds: float) -> None:
    """Cancelled, it takes so long to end: its plane is closed when all of a lesser wait are."""
    try:
        await asyncio.Event().wait()
    finally:
        await world.sleep(seconds)


@pytest.mark.spec("FS-02")
@pytest.mark.fault("A4")
@pytest.mark.parametrize("away", [PROJECT, HUB, ROOT])
@pytest.mark.parametrize("order", [*itertools.permutations(PLANES)], ids="-".join)
def test_a_stop_is_clean_whatever_is_away_and_in_every_order_of_closing(
    order: tuple[PlaneName, ...], away: str
) -> None:
    async def story(hub: Hub) -> None:
        world, operator = hub.world, hub.process.operator
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.project()
        world.links[away].cut()
        # Keys of either side wait for the other: Instances of the hub to be shown in the project,
        # deployments of the project to be copied to the hub.
        await world.sleep(1)
        for number in range(1, 4):
            await hub.show(f"web-us-dfw-{number}")
        await world.patch(PROJECT, DEPLOYMENT, WD, {"spec": {"scaleSettings": {"minReplicas": 4}}})
        await world.sleep(30)
        for place, name in enumerate(order):
            operator.planes.get(name).tasks.start(end_late(world, 0.1 * place), "late")
        await world.sleep(0)

    play_hub(story)
