"""What the simulation cannot prove by itself, on a real Karmada, real API servers and a gateway:
delivery, the way of a status back, the shipped rights, admission, and field ownership.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_status,
    a_document,
    a_location_document,
    a_network_document,
    a_workload_document,
)
from management_builders.real_operator import RealOperator

from compute_api_types import labels
from compute_management_operator.planes import NAMESPACE
from compute_operator_kit.core.json import (
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from e2e.harness.access.client import ApiError, PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.testing.installation import Installation

COMPUTE = "/apis/compute.datumapis.com/v1alpha"
CELL = "dfw-1"
GENERATION_OF_TEMPLATE = "resourcetemplate.karmada.io/generation"
CLAIM = "propagationpolicy.karmada.io/permanent-id"
PATIENCE = timedelta(seconds=120)


@dataclass(slots=True)
class Site:
    """One namespace of project p1, with everything that belongs to it elsewhere."""

    operator: RealOperator
    project: PlaneClient
    hub: PlaneClient
    cell: PlaneClient
    namespace: str
    hub_namespace: str

    def workload(self, name: str) -> str:
        return f"{COMPUTE}/namespaces/{self.namespace}/workloads/{name}"

    def deployment(self, name: str) -> str:
        return f"{COMPUTE}/namespaces/{self.namespace}/workloaddeployments/{name}"

    def copy(self, name: str) -> str:
        return f"{COMPUTE}/namespaces/{self.hub_namespace}/workloaddeployments/{name}"

    async def create(self, name: str = "web", **changed: int) -> None:
        document = a_workload_document(
            name, {"us": ("DFW",)}, namespace=self.namespace, replicas=changed.get("replicas", 1)
        )
        await post(self.project, document)

    async def until(self, what: str, ask: Callable[[], Awaitable[object]]) -> None:
        async def is_so() -> bool | None:
            return bool(await ask()) or None

        await until(what, is_so, check=self.operator.check, patience=PATIENCE)

    async def until_there(self, client: PlaneClient, path: str) -> JsonObject:
        async def there() -> JsonObject | None:
            return await client.find(path)

        return await until(path, there, check=self.operator.check, patience=PATIENCE)

    async def until_gone(self, client: PlaneClient, path: str) -> None:
        async def is_gone() -> bool:
            return await client.find(path) is None

        await self.until(f"{path} to go", is_gone)

    async def report(self, name: str, *, ready: int) -> None:
        """As the cell operator writes: both generations of the copy it read."""
        existing = await self.until_there(self.cell, self.copy(name))
        metadata = member_object(existing, "metadata")
        annotations = member_object(metadata, "annotations")
        word = "True" if ready else "False"
        reason = "StableInstanceFound" if ready else "QuotaNotGranted"
        status = a_deployment_status(
            a_condition_document("Available", word, reason, "told by hand"),
            a_condition_document("ReplicasReady", word, reason, "told by hand"),
            a_condition_document("Ready", word, reason, "told by hand"),
            observed=member_int(metadata, "generation"),
            ready=ready,
        )
        status["observedTemplateGeneration"] = int(str(annotations[GENERATION_OF_TEMPLATE]))
        await self.cell.patch(f"{self.copy(name)}/status", {"status": status})

    async def until_status(self, path: str, is_so: Callable[[JsonObject], bool]) -> None:
        async def is_written() -> bool:
            existing = await self.project.find(path)
            return existing is not None and is_so(existing)

        await self.until(f"the status of {path}", is_written)


def condition(existing: JsonObject, kind: str) -> JsonObject:
    for entry in member_list(member_object(existing, "status"), "conditions"):
        if isinstance(entry, dict) and entry.get("type") == kind:
            return entry
    return {}


def is_ready(existing: JsonObject) -> bool:
    return condition(existing, "Ready").get("status") == "True"


def observed(existing: JsonObject) -> int:
    return member_int(member_object(existing, "status"), "observedGeneration")


def generation(existing: JsonObject) -> int:
    return member_int(member_object(existing, "metadata"), "generation")


async def patiently(send: Callable[[JsonObject], Awaitable[object]], document: JsonObject) -> None:
    """An API server that has just started answers 429 until the storage of a kind is ready."""
    for _ in range(10):
        try:
            await send(document)
        except ApiError as refused:
            if refused.code != 429:
                raise
            await asyncio.sleep(1)
        else:
            return
    raise AssertionError("still put off")


async def post(client: PlaneClient, document: JsonObject) -> None:
    await patiently(client.create, document)


@pytest.fixture
async def site(operator: RealOperator, installation: Installation) -> AsyncIterator[Site]:
    planes = operator.planes
    await installation.apply("p1", [a_location_document("DFW")])
    namespace = f"shop-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        project = await stack.enter_async_context(planes.milo.client("p1"))
        hub = await stack.enter_async_context(planes.plane("hub").client())
        cell = await stack.enter_async_context(planes.plane(CELL).client())
        for document in (
            a_document(NAMESPACE, namespace),
            a_network_document("default", namespace),
        ):
            await patiently(project.apply, document)
        made = await project.get(f"/api/v1/namespaces/{namespace}")
        uid = member_text(member_object(made, "metadata"), "uid")
        site = Site(operator, project, hub, cell, namespace, f"ns-{uid}")
        yield site
        await project.delete(f"/api/v1/namespaces/{namespace}")
        # It outlives the project's by design; Karmada takes it from the cell as well.
        if await hub.find(f"/api/v1/namespaces/{site.hub_namespace}"):
            await hub.delete(f"/api/v1/namespaces/{site.hub_namespace}")


@pytest.mark.spec("M-07", "M-23", "M-26", "M-27", "M-32", "M-44", "M-52", "M-59")
async def test_a_workload_reaches_its_cell_and_the_status_of_the_cell_comes_back(
    site: Site,
) -> None:
    await site.create()
    copy = await site.until_there(site.hub, site.copy("web-us-dfw"))
    existing = await site.project.get(site.deployment("web-us-dfw"))
    metadata = member_object(existing, "metadata")
    assert metadata["finalizers"] == [labels.FEDERATION_FINALIZER]
    noted = member_object(metadata, "annotations")
    assert noted[labels.FEDERATION_NAMESPACE] == site.hub_namespace
    assert member_object(copy, "spec") == member_object(existing, "spec")

    await site.report("web-us-dfw", ready=0)
    await site.until_status(
        site.workload("web"),
        lambda reported: condition(reported, "Available").get("reason") == "QuotaNotGranted",
    )
    await site.report("web-us-dfw", ready=1)
    await site.until_status(site.deployment("web-us-dfw"), is_ready)
    await site.until_status(site.workload("web"), is_ready)
    reported = await site.project.get(site.deployment("web-us-dfw"))
    assert observed(reported) == generation(reported) == 1
    assert condition(reported, "CellsReporting") == {}

    await site.project.delete(site.workload("web"))
    await site.until_gone(site.project, site.workload("web"))
    policy = f"/apis/policy.karmada.io/v1alpha1/namespaces/{site.hub_namespace}"
    await site.until_gone(site.hub, f"{policy}/propagationpolicies/city-dfw")
    await site.until_gone(site.hub, site.copy("web-us-dfw"))
    await site.until_gone(site.cell, site.copy("web-us-dfw"))


@pytest.mark.spec("M-28", "M-29", "M-57", "M-59", "M-60")
async def test_an_edit_is_published_as_handled_only_when_the_cell_acted_on_it(site: Site) -> None:
    await site.create()
    await site.report("web-us-dfw", ready=1)
    await site.until_status(site.deployment("web-us-dfw"), is_ready)
    # There and back again: the hub may see one edit, two, or none at all.
    for number in (5, 1, 2):
        placement = a_workload_document("web", {"us": ("DFW",)}, replicas=number)
        body: JsonObject = {"spec": {"placements": member_object(placement, "spec")["placements"]}}
        await site.project.patch(site.workload("web"), body)

    async def has_arrived() -> bool:
        existing = await site.cell.get(site.copy("web-us-dfw"))
        scale = member_object(member_object(existing, "spec"), "scaleSettings")
        return scale.get("minReplicas") == 2

    await site.until("the last edit in the cell", has_arrived)
    reported = await site.project.get(site.deployment("web-us-dfw"))
    assert observed(reported) < generation(reported)
    await site.report("web-us-dfw", ready=1)
    await site.until_status(
        site.deployment("web-us-dfw"), lambda existing: observed(existing) == generation(existing)
    )
    copy = await site.hub.get(site.copy("web-us-dfw"))
    metadata = member_object(copy, "metadata")
    assert CLAIM in member_object(metadata, "labels")
    managers = {
        member_text(entry, "manager")
        for entry in member_list(metadata, "managedFields")
        if isinstance(entry, dict)
    }
    assert "compute-federation" in managers
    await site.project.delete(site.workload("web"))
    await site.until_gone(site.project, site.workload("web"))


@pytest.mark.spec("M-97")
async def test_a_field_name_that_breaks_karmadas_conversion_breaks_no_status(site: Site) -> None:
    document = a_workload_document("web", {"us": ("DFW",)}, namespace=site.namespace)
    template = member_object(member_object(document, "spec"), "template")
    template["metadata"] = {"annotations": {"a|b": "x"}}
    await post(site.project, document)
    await site.report("web-us-dfw", ready=1)
    await site.until_status(site.deployment("web-us-dfw"), is_ready)
    await site.project.delete(site.workload("web"))
    await site.until_gone(site.project, site.workload("web"))


@pytest.mark.spec("M-85", "M-86")
async def test_a_real_server_asks_for_admission_and_passes_the_answer_on(site: Site) -> None:
    configuration = site.operator.webhook_configuration()
    bad = a_workload_document("moon", {"moon": ("TYCHO",)}, namespace=site.namespace)
    async with site.operator.planes.plane("root").client() as root:
        await root.apply(configuration)
        try:

            async def is_refused() -> bool:
                """The gateway mirrors configurations of the root into projects, in its time."""
                try:
                    await post(site.project, bad)
                except ApiError as refused:
                    return refused.code == 422
                await site.project.delete(site.workload("moon"))
                return False

            await site.until("the webhook to be asked", is_refused)
            with pytest.raises(ApiError) as refused:
                await post(site.project, bad)
            details = member_object(refused.value.status, "details")
            (cause,) = member_list(details, "causes")
            assert isinstance(cause, dict)
            assert cause["field"] == "spec.placements[0].cityCodes[0]"
            await site.create("admitted")
            await site.until_there(site.project, site.deployment("admitted-us-dfw"))
            await site.project.delete(site.workload("admitted"))
            await site.until_gone(site.project, site.workload("admitted"))
        finally:
            await root.delete(await root.path_of(configuration))
