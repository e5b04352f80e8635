"""Stories about referenced data in a federation: rights, objects and what is on the hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import yaml

from compute_api_types import labels
from compute_management_operator.hub.referenced_data.references import VALUES_OF
from compute_management_operator.planes import CONFIG_MAP, DEPLOYMENT, HUB, ROOT, SECRET
from compute_operator_kit.core.json import Json, JsonObject, member_object
from compute_operator_kit.core.keys import Kind
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.faults.plans import Fault
from e2e.harness.deploy.manifests import DEPLOY
from management_builders.documents import a_cluster_document, a_deployment_document, a_document
from management_builders.hub_script import PROJECT, WD, Hub
from management_builders.world import Process, Run, World, play, settings_of

COMPONENT: Final = DEPLOY / "components/referenced-data"
MARKER: Final = "bWFya2VyLW9mLWEtc2VjcmV0"
CONFIG_MAPS: Final = VALUES_OF[CONFIG_MAP]
SECRETS: Final = VALUES_OF[SECRET]


async def grant(world: World, folder: str, *planes: str) -> None:
    """The shipped component, as an administrator applies it."""
    for file in sorted((COMPONENT / folder).glob("*.yaml")):
        if file.name == "kustomization.yaml":
            continue
        documents = list(yaml.safe_load_all(file.read_text("utf-8")))
        for plane in planes:
            await apply_manifests(world.planes[plane].connect(), documents)


class DataHub(Hub):
    """A hub, and a project whose templates name objects."""

    async def deploy(self, *tokens: str, name: str = WD, city: str = "DFW") -> None:
        """A bare deployment that names these objects, by environment."""
        document = a_deployment_document(name, city=city)
        name_objects(document, *tokens)
        await self.world.create(PROJECT, document)

    async def name_anew(self, *tokens: str, name: str = WD) -> None:
        document = a_deployment_document(name)
        name_objects(document, *tokens)
        template = member_object(document, "spec")["template"]
        await self.world.patch(PROJECT, DEPLOYMENT, name, {"spec": {"template": template}})

    async def companion(self, kind: Kind, name: str) -> JsonObject | None:
        place = await self.namespace()
        if not await self.world.exists(HUB, kind, name, place):
            return None
        return await self.world.get(HUB, kind, name, place)

    async def stated(self, name: str = WD) -> dict[str, Json]:
        """The annotations of the copy about its data, by their last part."""
        if not await self.has_copy(name):
            return {}
        annotations = member_object(member_object(await self.copy(name), "metadata"), "annotations")
        return {
            key.rpartition("/")[2]: annotations[key]
            for key in labels.REFERENCED_DATA_ANNOTATIONS
            if key in annotations
        }


def an_object(kind: Kind, name: str, **members: Json) -> JsonObject:
    data: JsonObject = {"k": MARKER}
    return {**a_document(kind, name, "default"), "data": data, **members}


def name_objects(document: JsonObject, *tokens: str) -> None:
    """`Kind/name`, with `?` for an optional one."""
    template = member_object(member_object(document, "spec"), "template")
    sandbox = member_object(member_object(member_object(template, "spec"), "runtime"), "sandbox")
    containers = sandbox["containers"]
    assert isinstance(containers, list)
    assert isinstance(containers[0], dict)
    sources: list[Json] = []
    for token in tokens:
        kind, _, name = token.removesuffix("?").partition("/")
        reference: JsonObject = {"name": name, "optional": token.endswith("?")}
        sources.append({"configMapRef" if kind == "ConfigMap" else "secretRef": reference})
    containers[0]["envFrom"] = sources


DataStory = Callable[[DataHub], Awaitable[None]]


def play_data(story: DataStory, *faults: Fault, is_clean: bool = True, on: bool = True) -> Run:
    """A project, a hub with one cell in Dallas, and an operator that delivers data."""

    async def whole(world: World) -> None:
        await world.add_project(PROJECT, cities=("DFW", "LHR", "LAX"))
        if on:
            await grant(world, "hub", HUB)
            await grant(world, "project", ROOT, PROJECT)
        await world.create(HUB, a_cluster_document("dfw-1", "DFW"))
        process = start(world, on=on)
        await world.sleep(2)
        await story(DataHub(world, process))

    return play(whole, *faults, is_clean=is_clean)


def start(world: World, *, on: bool = True) -> Process:
    settings = settings_of(referencedData="on" if on else "off")
    process = world.process(settings=settings, writes_events=True)
    process.start()
    return process
