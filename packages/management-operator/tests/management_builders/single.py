"""One project, no hub: what the Workload controller does by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from compute_management_operator.planes import DEPLOYMENT, SINGLE, WORKLOAD
from compute_operator_kit.core.json import Json, JsonObject
from compute_sim_planes.faults.plans import Fault
from management_builders.world import Process, Run, World, play, single_settings

Play: TypeAlias = Callable[[World, Process], Awaitable[None]]


def play_single(
    scenario: Play,
    *faults: Fault,
    cities: tuple[str, ...] = ("DFW", "LHR", "ORD"),
    networks: tuple[str, ...] = ("default",),
    networking: str = "auto",
    has_networking: bool = True,
    is_clean: bool = True,
) -> Run:
    """One project, no hub: what the Workload controller does by itself."""

    async def whole(world: World) -> None:
        await world.add_project_plane(
            cities=cities, networks=networks, has_networking=has_networking
        )
        process = world.process(settings=single_settings(networking=networking))
        process.start()
        await scenario(world, process)

    return play(whole, *faults, is_clean=is_clean)


async def deployment_names(world: World) -> list[str]:
    return await world.names(SINGLE, DEPLOYMENT)


async def edit_placements(world: World, *placements: JsonObject, name: str = "web") -> None:
    listed: list[Json] = [*placements]
    await world.patch(SINGLE, WORKLOAD, name, {"spec": {"placements": listed}})
