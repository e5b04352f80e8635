"""The operator beside a simulated Karmada: what a member does to a Workload, and what users see.

The member's cell is played by the test, which writes the status of the copy as a cell would.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_status,
    a_template_document,
    a_workload_document,
)
from management_builders.world import (
    Process,
    World,
    condition_of,
    definitions,
    play,
    spec_of,
    status_of,
)

from compute_management_operator.hub import metrics
from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE, WORKLOAD
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_sim_planes.api_server.manifests import apply_manifests, read_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.karmada.options import real_plane_options
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts

INTERPRETER: Final = Path(__file__).parents[4] / "deploy" / "hub" / "interpreter"
PROJECT: Final = "acme"
CELL: Final = "dfw-1"
WD: Final = "web-us-dfw"
CITY: Final = "topology.datum.net/city-code"
GENERATION: Final = "resourcetemplate.karmada.io/generation"
IMAGE: Final = ("spec", "template", "spec", "runtime", "sandbox", "containers", "[]", "image")


class Stage:
    """A project, the operator, and one cell behind Karmada."""

    def __init__(self, world: World, process: Process) -> None:
        self.world = world
        self.process = process

    async def refuse_new_images(self) -> None:
        """The member's schema is older: what the hub sends is not valid there."""
        await self.world.forbid_long_values(CELL, DEPLOYMENT, IMAGE)

    async def accept_images(self) -> None:
        await apply_manifests(self.world.planes[CELL].connect(), definitions())

    async def hub_namespace(self) -> str:
        existing = await self.world.get(PROJECT, NAMESPACE, "default", "")
        return f"ns-{member_text(member_object(existing, 'metadata'), 'uid')}"

    async def find_copy(self) -> JsonObject | None:
        return await self.world.find(CELL, DEPLOYMENT, WD, await self.hub_namespace())

    async def has_copy(self) -> bool:
        return await self.find_copy() is not None

    async def run_copy(self) -> None:
        """The cell runs what it was sent, and reports it."""
        existing = await self.find_copy()
        assert existing is not None
        metadata = member_object(existing, "metadata")
        sent = member_text(member_object(metadata, "annotations"), GENERATION)
        status = a_deployment_status(
            a_condition_document("Available", "True", "StableInstanceFound"),
            a_condition_document("ReplicasReady", "True", "ReplicasAvailable"),
            a_condition_document("Ready", "True", "ReplicasAvailable"),
            observed=member_int(metadata, "generation"),
            ready=1,
        )
        status["observedTemplateGeneration"] = int(sent)
        place = await self.hub_namespace()
        await self.world.set_status(CELL, DEPLOYMENT, WD, status, place)

    async def deployment(self) -> JsonObject:
        """As the user sees it."""
        return await self.world.get(PROJECT, DEPLOYMENT, WD)

    async def is_ready(self) -> bool:
        return condition_of(await self.deployment(), "Ready")[0] == "True"

    async def is_unsure(self) -> bool:
        return condition_of(await self.deployment(), "Ready")[0] == "Unknown"

    async def edit_image(self, image: str) -> None:
        template = a_template_document()
        runtime = member_object(member_object(template, "spec"), "runtime")
        containers: list[Json] = []
        for container in member_list(member_object(runtime, "sandbox"), "containers"):
            assert isinstance(container, dict)
            containers.append({**container, "image": image})
        sandbox: JsonObject = {"containers": containers}
        body: JsonObject = {"spec": {"template": {"spec": {"runtime": {"sandbox": sandbox}}}}}
        await self.world.patch(PROJECT, WORKLOAD, "web", body)

    async def image_in_cell(self) -> str:
        existing = await self.find_copy() or {}
        sandbox = member_object(member_object(spec_of(existing), "template"), "spec")
        for step in ("runtime", "sandbox"):
            sandbox = member_object(sandbox, step)
        (container,) = member_list(sandbox, "containers")
        assert isinstance(container, dict)
        return member_text(container, "image")

    def reporting(self, cells: str) -> float | None:
        """How many deployments so many cells report for."""
        return self.process.measures.gauges.get((metrics.REPORTING_CELLS, (("cells", cells),)))


@asynccontextmanager
async def on_stage(world: World) -> AsyncGenerator[Stage]:
    parts = PlaneParts(clock=world.clock, identities=world.clock.identities)
    cell = world.planes[CELL] = Plane(CELL, parts)
    await apply_manifests(cell.connect(), definitions())
    hub = world.planes[HUB].connect()
    await apply_manifests(hub, read_manifests(INTERPRETER))
    karmada = Karmada(hub, KarmadaParts(world.clock, world.clock.identities, real_plane_options()))
    karmada.start()
    try:
        await karmada.join(CELL, cell.connect(), {CITY: "DFW"})
        await world.add_project(PROJECT, cities=("DFW",))
        process = world.process()
        process.start()
        yield Stage(world, process)
    finally:
        await karmada.stop()


def test_a_workload_runs_in_a_cell_and_its_user_sees_it() -> None:
    async def scenario(world: World) -> None:
        async with on_stage(world) as stage:
            await world.create(PROJECT, a_workload_document())
            took = await world.eventually(stage.has_copy)
            assert took < 5
            await stage.run_copy()
            await world.eventually(stage.is_ready, within=5)

    play(scenario)


@pytest.mark.fault("C7")
def test_what_runs_is_not_erased_when_a_member_rejects_a_change_and_it_heals() -> None:
    async def scenario(world: World) -> None:
        async with on_stage(world) as stage:
            await world.create(PROJECT, a_workload_document())
            await world.eventually(stage.has_copy)
            await stage.run_copy()
            await world.eventually(stage.is_ready)
            before = await stage.image_in_cell()
            await stage.refuse_new_images()
            await stage.edit_image("registry.example/web:next")
            await world.eventually(stage.is_unsure)
            # Replicas that are known to run still run, and are still reported.
            status = status_of(await stage.deployment())
            assert (status["readyReplicas"], status["replicas"]) == (1, 1)
            assert condition_of(await stage.deployment(), "Available")[0] == "True"
            assert await stage.image_in_cell() == before
            await world.sleep(60)
            assert (stage.reporting("0"), stage.reporting("1")) == (1, 0)
            await stage.accept_images()

            async def is_there() -> bool:
                return await stage.image_in_cell() == "registry.example/web:next"

            await world.eventually(is_there)
            await stage.run_copy()
            await world.eventually(stage.is_ready)
            await world.sleep(60)
            assert (stage.reporting("0"), stage.reporting("1")) == (0, 1)

    play(scenario)


@pytest.mark.fault("C7")
def test_a_deployment_that_a_member_rejects_from_the_start_shows_that_it_waits() -> None:
    async def scenario(world: World) -> None:
        async with on_stage(world) as stage:
            await stage.refuse_new_images()
            await world.create(PROJECT, a_workload_document())
            await world.sleep(90)
            assert not await stage.has_copy()
            waiting = 'Waiting for a cell in city "DFW" to report'
            reported = condition_of(await stage.deployment(), "Ready")
            assert reported == ("False", "InstancesProvisioning", waiting)
            assert stage.reporting("0") == 1
            await stage.accept_images()
            await world.eventually(stage.has_copy)
            await stage.run_copy()
            await world.eventually(stage.is_ready)

    play(scenario)
