"""Components of the installation that a swept story switches on before it begins.

They are off as shipped. The roles come first and the operators restart with the setting, as the
install page has it; a story that skipped this would sweep an operator that waits for its rights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from compute_api_types.wire import JsonObject
from e2e.harness.deploy.manifests import DEPLOY
from e2e.world.handles import Plane
from e2e.world.scenario import World

DATA: Final = DEPLOY / "components/referenced-data"
AUTOSCALING: Final = DEPLOY / "components/autoscaling"
DATA_ON: Final[JsonObject] = {"referencedData": "on"}
AUTOSCALING_ON: Final[JsonObject] = {"autoscaling": {"mode": "on"}}


async def deliver_data(world: World) -> None:
    """Referenced data in both operators; management first."""
    await _apply(world.root, DATA / "project/role.yaml")
    await _apply(world.hub, DATA / "hub/role.yaml")
    await _apply(world.hub, DATA / "hub/compute-companions.yaml")
    await world.management.stop()
    await world.management.start(DATA_ON)
    await _restart_cells(world, DATA / "cell/role.yaml", DATA_ON)


async def autoscale(world: World) -> None:
    """Autoscaling in the operators of all cells."""
    await _restart_cells(world, AUTOSCALING / "cell/role.yaml", AUTOSCALING_ON)


async def _restart_cells(world: World, role: Path, settings: JsonObject) -> None:
    for cell in world.needs.cells:
        await _apply(world.cell(cell), role)
        operator = world.operator_of(cell)
        await operator.stop()
        await operator.start(settings)


async def _apply(plane: Plane, path: Path) -> None:
    for document in _read(path):
        await plane.apply(document)


def _read(path: Path) -> list[JsonObject]:
    return [*yaml.safe_load_all(path.read_text("utf-8"))]
