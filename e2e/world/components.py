"""Components of `deploy/components` that an administrator adds to a running installation.

They are read from the shipped files: a copy in a scenario would keep a right that the component no
longer gives. Roles come first and operators restart with the setting, as the install page has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from compute_api_types.wire import JsonObject
from compute_kubeconfig.strict_yaml import parse_document
from e2e.world.handles import Operator, Plane
from e2e.world.objects import texts_at

if TYPE_CHECKING:
    from e2e.world.scenario import World

COMPONENTS: Final = Path(__file__).parents[2] / "deploy" / "components"
# Of kustomize itself: how an overlay is built, and no object of a plane.
KUSTOMIZATION: Final = "kustomization.yaml"
SEPARATOR: Final = "\n---\n"
DATA_ON: Final[JsonObject] = {"referencedData": "on"}


def load_component(component: str) -> list[JsonObject]:
    """The objects that a component adds; its patches need an overlay and kubectl."""
    return _load_folder(COMPONENTS / component)


def parse_manifests(text: str) -> list[JsonObject]:
    """The documents of a YAML text; duplicate keys, aliases and tags are refused."""
    return [parse_document(part) for part in text.removeprefix("---\n").split(SEPARATOR)]


async def add_component(plane: Plane, component: str) -> None:
    for document in load_component(component):
        await plane.apply(document)


async def deliver_data(world: World) -> None:
    """Switches referenced data on in all operators, management first."""
    await add_component(world.root, "referenced-data/project")
    await add_component(world.hub, "referenced-data/hub")
    await restart(world.management, DATA_ON)
    for cell in world.needs.cells:
        await add_component(world.cell(cell), "referenced-data/cell")
        await restart(world.operator_of(cell), DATA_ON)


async def restart(operator: Operator, settings: JsonObject) -> None:
    await operator.stop()
    await operator.start(settings)


def _load_folder(folder: Path) -> list[JsonObject]:
    kustomization = parse_document((folder / KUSTOMIZATION).read_text("utf-8"))
    parts = (*texts_at(kustomization, "resources"), *texts_at(kustomization, "components"))
    return [document for part in parts for document in _load(folder / part)]


def _load(path: Path) -> list[JsonObject]:
    return _load_folder(path) if path.is_dir() else parse_manifests(path.read_text("utf-8"))
