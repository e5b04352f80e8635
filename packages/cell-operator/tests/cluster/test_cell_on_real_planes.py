"""What the simulation cannot prove by itself, on real API servers and a gateway: that deployments
and Instances live through their whole lives there, that quota is asked for and given back, and that
the shipped rights and policies are enough.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from cell_builders.documents import (
    CELL_NAME,
    a_deployment_document,
    a_namespace_document,
    a_network_document,
    a_template_document,
)
from cell_builders.world import condition_of, spec_of, status_of, uid_of

from compute_api_types import labels
from compute_operator_kit.core.json import JsonObject, member_list, member_object, member_text
from compute_sim_planes.milo.testing import a_grant
from compute_sim_planes.networking import NetworkServices
from compute_sim_planes.provider import Provider
from compute_sim_planes.time.sources import SystemClock
from e2e.backends.real.external import Clients
from e2e.harness.access.client import ApiError, PlaneClient
from e2e.harness.access.waiting import until
from e2e.harness.planes.identities import ADMIN
from e2e.harness.testing.operator_process import OperatorProcess

COMPUTE = "/apis/compute.datumapis.com/v1alpha"
QUOTA = "/apis/quota.miloapis.com/v1alpha1"
PROJECT = "p1"
PATIENCE = timedelta(seconds=120)
AMPLE = {
    labels.INSTANCES_RESOURCE: 100,
    labels.VCPUS_RESOURCE: 100_000,
    labels.MEMORY_RESOURCE: 1_000_000,
}
CORES_OF_NOBODY = 40_000  # more than any grant of a test


@dataclass(slots=True)
class Site:
    """One namespace of project p1, with everything that belongs to it elsewhere."""

    operator: OperatorProcess
    project: PlaneClient
    hub: PlaneClient
    cell: PlaneClient
    within: str  # the project's namespace
    namespace: str  # on the hub and in the cell
    granted: list[JsonObject] = field(default_factory=list[JsonObject])

    def path(self, plural: str, name: str = "") -> str:
        return f"{COMPUTE}/namespaces/{self.namespace}/{plural}/{name}".rstrip("/")

    def instance(self, name: str) -> str:
        return self.path("instances", name)

    def deployment(self, name: str = "web") -> str:
        return self.path("workloaddeployments", name)

    def claim(self, slot: str) -> str:
        return f"{QUOTA}/namespaces/{self.within}/resourceclaims/instance-{slot}"

    async def deliver(self, replicas: int, template: JsonObject | None = None) -> None:
        """As management and Karmada would: on the hub, and in the cell with the hub's UID."""
        given = template or a_template_document()
        root = await self.hub.create(
            a_deployment_document("web", replicas, template=given, namespace=self.namespace)
        )
        await self.cell.create(
            a_deployment_document(
                "web", replicas, template=given, namespace=self.namespace, hub_uid=uid_of(root)
            )
        )

    async def until(self, what: str, ask: Callable[[], Awaitable[object]]) -> None:
        async def is_so() -> bool | None:
            return bool(await ask()) or None

        await until(what, is_so, check=self.operator.check, patience=PATIENCE)

    async def names(self, client: PlaneClient) -> list[str]:
        found = member_list(await client.get(self.path("instances")), "items")
        return sorted(
            member_text(member_object(one, "metadata"), "name")
            for one in found
            if isinstance(one, dict)
        )

    async def until_ready(self, replicas: int, image: str) -> None:
        """So many Instances of this image run, and the status of the deployment shows it."""

        async def is_so() -> bool:
            found = await self.cell.get(self.deployment())
            status = status_of(found)
            generation = member_object(found, "metadata").get("generation")
            return (
                status.get("observedGeneration") == generation
                and status.get("readyReplicas") == replicas
                and condition_of(found, "Ready")[0] == "True"
                and image in str(spec_of(await self.cell.get(self.instance("web-0"))))
            )

        await self.until(f"{replicas} of {image}", is_so)

    async def until_copied(self, *wanted: str) -> None:
        """The hub has these Instances, each as it is in the cell."""

        async def is_so() -> bool:
            if await self.names(self.hub) != sorted(wanted):
                return False
            for name in wanted:
                copy, here = [await one.get(self.instance(name)) for one in (self.hub, self.cell)]
                if (spec_of(copy), status_of(copy)) != (spec_of(here), status_of(here)):
                    return False
            return True

        await self.until(f"copies of {wanted}", is_so)

    async def until_recorded(self, slot: str) -> JsonObject:
        """The claim of a slot is granted and records the Instance that is in it."""

        async def found() -> JsonObject | None:
            claim = await self.project.find(self.claim(slot))
            here = await self.cell.find(self.instance(slot))
            if claim is None or here is None:
                return None
            noted = member_object(member_object(claim, "metadata"), "annotations")
            is_so = noted.get(labels.INSTANCE_UID) == uid_of(here)
            return claim if is_so and condition_of(claim, "Granted")[0] == "True" else None

        return await until(slot, found, check=self.operator.check, patience=PATIENCE)

    async def until_gone(self, client: PlaneClient, path: str) -> None:
        async def is_gone() -> bool:
            return await client.find(path) is None

        await self.until(f"{path} to go", is_gone)


async def patiently(send: Callable[[JsonObject], Awaitable[object]], document: JsonObject) -> None:
    """An API server that has just started answers 429, and a resource type takes a moment until it
    is registered.
    """
    for _ in range(20):
        try:
            await send(document)
        except ApiError as refused:
            if refused.code not in {403, 429}:
                raise
            await asyncio.sleep(1)
        else:
            return
    raise AssertionError("still put off")


@pytest.fixture
async def neighbours(operator: OperatorProcess) -> AsyncIterator[None]:
    """The provider and NSO of the cell, over HTTP."""
    clients, clock = Clients(operator.planes), SystemClock()
    works = (
        Provider(clients.of(CELL_NAME, ADMIN), clock).run(),
        NetworkServices(clients.of(CELL_NAME, ADMIN), clock).run(),
    )
    tasks = [asyncio.create_task(work) for work in works]
    yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    await clients.close()


@pytest.fixture
async def site(operator: OperatorProcess, neighbours: None) -> AsyncIterator[Site]:
    del neighbours  # there before anything is delivered, and until it is gone again
    planes, within = operator.planes, f"shop-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        project = await stack.enter_async_context(planes.milo.client(PROJECT))
        hub = await stack.enter_async_context(planes.plane("hub").client())
        cell = await stack.enter_async_context(planes.plane(CELL_NAME).client())
        document: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": within},
        }
        await patiently(project.apply, document)
        made = await project.get(f"/api/v1/namespaces/{within}")
        namespace = f"ns-{uid_of(made)}"
        await hub.apply(a_namespace_document(namespace, PROJECT, within))
        await cell.apply(a_namespace_document(namespace, PROJECT, within))
        await cell.apply(a_network_document("default", namespace))
        site = Site(operator, project, hub, cell, within, namespace)
        yield site
        for document in site.granted:
            await project.delete(await project.path_of(document))
        for client, left in ((cell, namespace), (hub, namespace), (project, within)):
            await client.delete(f"/api/v1/namespaces/{left}")


async def grant(site: Site, name: str, amounts: dict[str, int]) -> None:
    document = a_grant(PROJECT, amounts, f"{name}-{site.within}")
    site.granted.append(document)
    await patiently(site.project.apply, document)


@pytest.mark.spec("C-02", "C-04", "C-08")
async def test_a_deployment_comes_up_rolls_scales_down_and_goes(site: Site) -> None:
    await grant(site, "ample", AMPLE)
    await site.deliver(2)
    await site.until_ready(2, ":1.0")
    await site.until_copied("web-0", "web-1")
    before = [await site.until_recorded(slot) for slot in ("web-0", "web-1")]

    template = a_template_document("2.0")
    await site.cell.patch(site.deployment(), {"spec": {"template": template}})
    await site.until_ready(2, ":2.0")
    await site.until_copied("web-0", "web-1")
    after = [await site.until_recorded(slot) for slot in ("web-0", "web-1")]
    # The slot has kept its claim, which now records the new Instance.
    assert [uid_of(claim) for claim in after] == [uid_of(claim) for claim in before]

    await site.cell.patch(site.deployment(), {"spec": {"scaleSettings": {"minReplicas": 1}}})
    await site.until_gone(site.cell, site.instance("web-1"))
    await site.until_gone(site.project, site.claim("web-1"))
    await site.until_copied("web-0")
    await site.until_ready(1, ":2.0")

    for client in (site.hub, site.cell):
        await client.delete(site.deployment())
    await site.until_gone(site.cell, site.instance("web-0"))
    await site.until_gone(site.project, site.claim("web-0"))
    await site.until_gone(site.hub, site.instance("web-0"))


@pytest.mark.spec("Q-27", "Q-29")
async def test_the_gate_stays_until_the_gateway_grants(site: Site) -> None:
    template = a_template_document()
    runtime = member_object(member_object(template, "spec"), "runtime")
    (container,) = member_list(member_object(runtime, "sandbox"), "containers")
    assert isinstance(container, dict)
    container["resources"] = {"limits": {"cpu": str(CORES_OF_NOBODY), "memory": "2Gi"}}
    await site.deliver(1, template)

    async def is_denied() -> bool:
        found = await site.cell.find(site.instance("web-0"))
        return found is not None and condition_of(found, "QuotaGranted")[1] == "QuotaExceeded"

    await site.until("a denial", is_denied)
    found = await site.cell.get(site.instance("web-0"))
    gates = member_list(member_object(spec_of(found), "controller"), "schedulingGates")
    assert {"name": "Quota"} in gates
    await grant(site, "enough", {**AMPLE, labels.VCPUS_RESOURCE: CORES_OF_NOBODY * 1000})
    await site.until_ready(1, ":1.0")
    await site.until_recorded("web-0")
    for client in (site.hub, site.cell):
        await client.delete(site.deployment())
    await site.until_gone(site.project, site.claim("web-0"))
