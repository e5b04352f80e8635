"""Components of the installation that a swept story switches on before it begins.

They are off as shipped. The roles come first and the operators restart with the setting, as the
install page has it; a story that skipped this would sweep an operator that waits for its rights.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.wire import JsonObject
from e2e.world.handles import Plane
from e2e.world.scenario import World, load_component

DATA_ON: Final[JsonObject] = {"referencedData": "on"}
AUTOSCALING_ON: Final[JsonObject] = {"autoscaling": {"mode": "on"}}


async def deliver_data(world: World) -> None:
    """Referenced data in both operators; management first."""
    await _add(world.root, "referenced-data/project")
    await _add(world.hub, "referenced-data/hub")
    await world.management.stop()
    await world.management.start(DATA_ON)
    await _restart_cells(world, "referenced-data/cell", DATA_ON)


async def autoscale(world: World) -> None:
    """Autoscaling in the operators of all cells."""
    await _restart_cells(world, "autoscaling/cell", AUTOSCALING_ON)


async def _restart_cells(world: World, component: str, settings: JsonObject) -> None:
    for cell in world.needs.cells:
        await _add(world.cell(cell), component)
        operator = world.operator_of(cell)
        await operator.stop()
        await operator.start(settings)


async def _add(plane: Plane, component: str) -> None:
    for document in load_component(component):
        await plane.apply(document)
