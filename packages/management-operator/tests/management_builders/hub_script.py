"""What Karmada and cells do on the hub, as far as management can see it, played by a script.

Karmada claims deployments; its interpreter writes their status; cells write Instances beside them.
The script does so at the word of a test and nothing by itself, so that a test can hold the world
still. It writes as the user, and is written down as such.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from compute_api_types import labels
from compute_management_operator.planes import (
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
)
from compute_operator_kit.core.json import Json, JsonObject, member_object, member_text
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.faults.plans import Fault
from management_builders.documents import (
    a_cluster_document,
    a_condition_document,
    a_deployment_document,
    a_deployment_status,
    a_document,
    a_template_document,
)
from management_builders.world import Process, Run, World, play, uid_of

PROJECT: Final = "acme"
WD: Final = "web-us-dfw"
INSTANCE_NAME: Final = f"{WD}-0"
CLAIM: Final = "propagationpolicy.karmada.io/permanent-id"
BINDING_OF_WD: Final = f"{WD}-workloaddeployment"


def metadata_of(document: JsonObject) -> JsonObject:
    return member_object(document, "metadata")


def labels_of(document: JsonObject) -> JsonObject:
    return member_object(metadata_of(document), "labels")


def annotations_of(document: JsonObject) -> JsonObject:
    return member_object(metadata_of(document), "annotations")


def finalizers_of(document: JsonObject) -> Json:
    return metadata_of(document).get("finalizers", [])


class Hub:
    """The hub side of one project, and one operator beside it."""

    def __init__(self, world: World, process: Process) -> None:
        self.world = world
        self.process = process
        self.within = "default"  # the project namespace that a test is about

    async def namespace(self, name: str = "", project: str = PROJECT) -> str:
        """The hub namespace of a project namespace."""
        document = await self.world.get(project, NAMESPACE, name or self.within)
        return f"ns-{uid_of(document)}"

    def strike_namespace(self, name: str, project: str = PROJECT) -> None:
        """Takes a project namespace away under what is in it.

        No API server does so by itself; one that is restored from a backup may have it so.
        """
        store = self.world.planes[project].state.store
        document = store.get(GroupResource("", "namespaces"), "", name)
        assert document is not None, name
        store.remove(document, "restored")

    # --- deployments ----------------------------------------------------------------------------

    async def copy(self, name: str = WD, namespace: str = "") -> JsonObject:
        return await self.world.get(HUB, DEPLOYMENT, name, namespace or await self.namespace())

    async def has_copy(self, name: str = WD) -> bool:
        return await self.world.exists(HUB, DEPLOYMENT, name, await self.namespace())

    async def has_no_copy(self, name: str = WD) -> bool:
        return not await self.has_copy(name)

    async def federate(
        self, name: str = WD, city: str = "DFW", project: str = PROJECT, *, scale: int = 1
    ) -> None:
        """A bare deployment in the project, until its copy is on the hub."""
        document = a_deployment_document(name, city=city, namespace=self.within, scale=scale)
        await self.world.create(project, document)
        place = await self.namespace(project=project)

        async def is_there() -> bool:
            return await self.world.exists(HUB, DEPLOYMENT, name, place)

        await self.world.eventually(is_there)

    async def claim(self, name: str = WD) -> None:
        """As Karmada marks what it has taken."""
        body: JsonObject = {
            "metadata": {
                "labels": {CLAIM: "claimed"},
                "annotations": {"propagationpolicy.karmada.io/name": "city-dfw"},
            }
        }
        await self.world.patch(HUB, DEPLOYMENT, name, body, await self.namespace())

    async def report(
        self,
        *conditions: JsonObject,
        name: str = WD,
        cells: str = "dfw-1",
        observed: int | None = None,
        ready: int = 0,
    ) -> None:
        """As the interpreter aggregates what cells say about the present generation."""
        copy = await self.copy(name)
        generation = metadata_of(copy)["generation"]
        assert isinstance(generation, int)
        silent = a_condition_document("CellsReporting", "True", "AllCellsReport", cells)
        status = a_deployment_status(
            *conditions,
            silent,
            observed=generation if observed is None else observed,
            ready=ready,
        )
        status["location"] = {"name": "us-dallas-1", "namespace": ""} if cells else None
        await self.world.set_status(HUB, DEPLOYMENT, name, status, await self.namespace())

    async def hold_copy(self, name: str = WD) -> None:
        """Keeps the hub's copy from going, as Karmada does until its cells have let go of it."""
        await self._finalize_copy(name, ["karmada.io/binding-controller"])

    async def release_copy(self, name: str = WD) -> None:
        await self._finalize_copy(name, [])

    async def _finalize_copy(self, name: str, finalizers: list[Json]) -> None:
        body: JsonObject = {"metadata": {"finalizers": finalizers}}
        await self.world.patch(HUB, DEPLOYMENT, name, body, await self.namespace())

    async def policies(self) -> list[str]:
        return await self.world.names(HUB, POLICY)

    # --- instances ------------------------------------------------------------------------------

    async def show(
        self, name: str = INSTANCE_NAME, owned_by: str = "", **changed: Mapping[str, str | None]
    ) -> None:
        """As a cell writes an Instance back; `labels` and `annotations` lie over the usual."""
        place = await self.namespace()
        owner = await self.copy(owned_by or name.rpartition("-")[0])
        await self.world.create(HUB, self._instance(name, place, owner, changed))

    def _instance(
        self,
        name: str,
        place: str,
        owner: JsonObject,
        changed: Mapping[str, Mapping[str, str | None]],
    ) -> JsonObject:
        linking: dict[str, str | None] = {
            labels.UPSTREAM_CLUSTER_NAME: f"cluster-{PROJECT}",
            labels.UPSTREAM_NAMESPACE: self.within,
            labels.WORKLOAD_DEPLOYMENT_NAME: name.rpartition("-")[0],
            labels.WORKLOAD_DEPLOYMENT_UID: "of-the-cell",
            labels.INSTANCE_INDEX: name.rpartition("-")[2],
            labels.CITY_CODE: "DFW",
            labels.CELL: "dfw-1",
            **changed.get("labels", {}),
        }
        noted: dict[str, str | None] = {
            labels.INSTANCE_UID: f"cell-uid-of-{name}",
            **changed.get("annotations", {}),
        }
        template = a_template_document()
        spec: JsonObject = {
            **member_object(template, "spec"),
            "controller": {"templateHash": "v1-1", "schedulingGates": [{"name": "Quota"}]},
        }
        document = a_document(INSTANCE, name, place, spec=spec)
        document["metadata"] = {
            **metadata_of(document),
            "labels": {key: text for key, text in linking.items() if text is not None},
            "annotations": {key: text for key, text in noted.items() if text is not None},
            "ownerReferences": [
                {
                    "apiVersion": DEPLOYMENT.api_version,
                    "kind": DEPLOYMENT.kind,
                    "name": member_text(metadata_of(owner), "name"),
                    "uid": uid_of(owner),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        }
        return document

    async def say(self, *conditions: JsonObject, name: str = INSTANCE_NAME) -> None:
        """As a cell writes the status of an Instance back."""
        entries: list[Json] = [*conditions]
        place = await self.namespace()
        await self.world.set_status(HUB, INSTANCE, name, {"conditions": entries}, place)

    async def source(self, name: str = INSTANCE_NAME) -> JsonObject:
        return await self.world.get(HUB, INSTANCE, name, await self.namespace())

    async def relabel(self, name: str = INSTANCE_NAME, **changed: str | None) -> None:
        """Edits labels of a hub Instance: `cell="x"`, by the last part of the key."""
        keys = {
            key.rpartition("/")[2].replace("-", "_"): key
            for key in (*labels.LINKING_LABELS, *labels.IDENTITY_LABELS, labels.CELL)
        }
        body: JsonObject = {
            "metadata": {"labels": {keys[name]: value for name, value in changed.items()}}
        }
        await self.world.patch(HUB, INSTANCE, name, body, await self.namespace())

    async def unshow(self, name: str = INSTANCE_NAME) -> None:
        await self.world.delete(HUB, INSTANCE, name, await self.namespace())

    async def projection(self, name: str = INSTANCE_NAME) -> JsonObject:
        return await self.world.get(PROJECT, INSTANCE, name, self.within)

    async def is_shown(self, name: str = INSTANCE_NAME) -> bool:
        return await self.world.exists(PROJECT, INSTANCE, name, self.within)

    async def is_not_shown(self, name: str = INSTANCE_NAME) -> bool:
        return not await self.is_shown(name)

    async def project(self, name: str = INSTANCE_NAME) -> None:
        """A hub Instance that is in order, until its project shows it."""
        await self.show(name)
        await self.say(*READY, name=name)
        await self.world.eventually(lambda: self.is_shown(name))


READY: Final = (
    a_condition_document("Programmed", "True", "Programmed", "Instance is programmed"),
    a_condition_document("Available", "True", "Available", "Instance is available"),
    a_condition_document("QuotaGranted", "True", "QuotaAvailable", "Quota is granted"),
    a_condition_document("Ready", "True", "Available", "Instance is ready"),
)
WD_READY: Final = (
    a_condition_document("Available", "True", "StableInstanceFound", "1/1 instances are ready"),
    a_condition_document("ReplicasReady", "True", "ReplicasAvailable", "1/1 replicas available"),
    a_condition_document("Ready", "True", "ReplicasAvailable", "1/1 replicas available"),
)
WD_BLOCKED: Final = (
    a_condition_document("Available", "False", "QuotaNotGranted", "no quota"),
    a_condition_document("ReplicasReady", "False", "QuotaNotGranted", "no quota"),
    a_condition_document("Ready", "False", "QuotaNotGranted", "no quota"),
)

Story: TypeAlias = Callable[[Hub], Awaitable[None]]


def play_hub(
    story: Story,
    *faults: Fault,
    clusters: Mapping[str, str | None] | None = None,
    projects: tuple[str, ...] = (PROJECT,),
    is_clean: bool = True,
) -> Run:
    """Projects, a hub with one cell in Dallas, and an operator that is engaged with all of them."""

    async def whole(world: World) -> None:
        for project in projects:
            await world.add_project(project, cities=("DFW", "LHR", "LAX"))
        for name, city in (clusters or {"dfw-1": "DFW"}).items():
            await world.create(HUB, a_cluster_document(name, city))
        process = world.process()
        process.start()
        await world.sleep(2)
        await story(Hub(world, process))

    return play(whole, *faults, is_clean=is_clean)
