"""The shipped interpreter inside a real Karmada: the status of a copy as its cells join, report,
fall silent and leave.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_document,
    a_deployment_status,
    a_document,
)
from management_builders.real_operator import RealOperator

from compute_api_types import labels
from compute_management_operator.planes import NAMESPACE
from compute_operator_kit.core.json import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import until

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
DEPLOYMENTS = "/apis/compute.datumapis.com/v1alpha/namespaces/{}/workloaddeployments/web"
TEMPLATE_GENERATION = "resourcetemplate.karmada.io/generation"
CITY = "SEA"  # of these tests alone: no cell carries it unless they label one
PATIENCE = timedelta(seconds=120)
REFUSING = "refuses-deployments"


@dataclass(slots=True)
class Karmada:
    """A hub with two cells and one deployment on it; labels and reports are set by hand."""

    operator: RealOperator
    hub: PlaneClient
    cells: dict[str, PlaneClient]
    path: str

    async def label(self, cell: str, city: str | None) -> None:
        change: JsonObject = {"metadata": {"labels": {labels.TOPOLOGY_CITY_CODE: city}}}
        await self.hub.patch(f"{CLUSTERS}/{cell}", change)

    async def arrived(self, cell: str) -> JsonObject:
        async def find() -> JsonObject | None:
            return await self.cells[cell].find(self.path)

        return await until(
            f"the deployment in {cell}", find, check=self.operator.check, patience=PATIENCE
        )

    async def report(self, cell: str, *, replicas: int, status: str = "True") -> None:
        existing = await self.arrived(cell)
        metadata = member_object(existing, "metadata")
        reason = "StableInstanceFound" if status == "True" else "ImageUnavailable"
        reported = a_deployment_status(
            a_condition_document("Available", status, reason, f"by {cell}"),
            a_condition_document("Ready", status, reason, f"by {cell}"),
            observed=member_int(metadata, "generation"),
            replicas=replicas,
            ready=replicas,
            desired=replicas,
        )
        noted = member_object(metadata, "annotations")
        reported["observedTemplateGeneration"] = int(str(noted[TEMPLATE_GENERATION]))
        await self.cells[cell].patch(f"{self.path}/status", {"status": reported})

    async def until_status(self, what: str, is_so: Callable[[JsonObject], bool]) -> JsonObject:
        async def read() -> JsonObject | None:
            status = member_object(await self.hub.get(self.path), "status")
            return status if is_so(status) else None

        return await until(what, read, check=self.operator.check, patience=PATIENCE)

    async def edit(self, replicas: int) -> int:
        change: JsonObject = {"spec": {"scaleSettings": {"minReplicas": replicas}}}
        edited = await self.hub.patch(self.path, change)
        return member_int(member_object(edited, "metadata"), "generation")


def cells_of(status: JsonObject) -> tuple[str, str]:
    """Which cells report, and how."""
    for one in member_list(status, "conditions"):
        if isinstance(one, dict) and one.get("type") == "CellsReporting":
            return member_text(one, "reason"), member_text(one, "message")
    return "", ""


def word(status: JsonObject, kind: str) -> Json:
    for one in member_list(status, "conditions"):
        if isinstance(one, dict) and one.get("type") == kind:
            return one["status"]
    return None


def a_policy(namespace: str) -> JsonObject:
    matched: JsonObject = {"matchLabels": {labels.TOPOLOGY_CITY_CODE: CITY}}
    selector: JsonObject = {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "WorkloadDeployment",
        "labelSelector": matched,
    }
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"namespace": namespace, "name": "city-of-tests"},
        "spec": {
            "resourceSelectors": [selector],
            "placement": {"clusterAffinity": {"labelSelector": matched}},
            "conflictResolution": "Overwrite",
        },
    }


def a_refusal() -> JsonObject:
    """A webhook without a server, so that the cell's API server accepts no deployment."""
    rule: JsonObject = {
        "apiGroups": ["compute.datumapis.com"],
        "apiVersions": ["*"],
        "resources": ["workloaddeployments"],
        "operations": ["CREATE", "UPDATE"],
    }
    webhook: JsonObject = {
        "name": "nobody.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": REFUSING},
        "webhooks": [webhook],
    }


@pytest.fixture
async def karmada(operator: RealOperator) -> AsyncIterator[Karmada]:
    planes = operator.planes
    # Not of the form `ns-<uuid>`: the operator has nothing to do with it.
    namespace = f"interpreted-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(planes.plane("hub").client())
        cells = {
            name: await stack.enter_async_context(planes.plane(name).client())
            for name in ("dfw-1", "ord-1")
        }
        await hub.create(a_document(NAMESPACE, namespace))
        await hub.create(a_policy(namespace))
        document = a_deployment_document("web", namespace=namespace, city=CITY)
        member_object(document, "metadata")["labels"] = {labels.TOPOLOGY_CITY_CODE: CITY}
        await hub.create(document)
        karmada = Karmada(operator, hub, cells, DEPLOYMENTS.format(namespace))
        try:
            yield karmada
        finally:
            for name, city in (("dfw-1", "DFW"), ("ord-1", "ORD")):
                await karmada.label(name, city)
            await hub.delete(f"/api/v1/namespaces/{namespace}")


@pytest.mark.spec("M-51", "M-52", "M-53", "M-56", "M-57", "M-58")
async def test_a_copy_has_the_status_of_its_cells_as_they_come_and_go(karmada: Karmada) -> None:
    await karmada.label("dfw-1", CITY)
    await karmada.report("dfw-1", replicas=2)
    one = await karmada.until_status("one cell", lambda status: status.get("replicas") == 2)
    assert cells_of(one) == ("AllCellsReport", "dfw-1")
    assert word(one, "Available") == word(one, "Ready") == "True"

    await karmada.label("ord-1", CITY)
    await karmada.arrived("ord-1")
    await karmada.report("ord-1", replicas=3, status="False")
    two = await karmada.until_status("two cells", lambda status: status.get("replicas") == 5)
    assert cells_of(two) == ("AllCellsReport", "dfw-1,ord-1")
    assert (word(two, "Available"), word(two, "Ready")) == ("True", "False")

    generation = await karmada.edit(7)
    await karmada.report("dfw-1", replicas=7)
    lagging = await karmada.until_status("a lag", lambda status: status.get("replicas") == 10)
    assert member_int(lagging, "observedGeneration") < generation

    await karmada.label("ord-1", "ORD")
    left = await karmada.until_status(
        "a cell that left", lambda status: status.get("replicas") == 7
    )
    assert cells_of(left) == ("AllCellsReport", "dfw-1")

    await karmada.label("dfw-1", "DFW")
    none = await karmada.until_status("no cell", lambda status: status.get("replicas") == 0)
    assert cells_of(none) == ("NoCellPlaced", "")
    assert word(none, "Available") is None


@pytest.mark.spec("M-54", "M-55")
@pytest.mark.fault("C7")
async def test_a_cell_that_refuses_the_copy_is_silent_and_what_is_known_stays(
    karmada: Karmada,
) -> None:
    await karmada.label("dfw-1", CITY)
    await karmada.report("dfw-1", replicas=2)
    await karmada.until_status("one cell", lambda status: status.get("replicas") == 2)
    cell = karmada.cells["dfw-1"]
    refusal = a_refusal()
    await cell.create(refusal)
    try:
        await karmada.edit(9)
        silent = await karmada.until_status(
            "a silent cell", lambda status: cells_of(status)[0] == "CellsSilent"
        )
        assert member_int(silent, "replicas") == 2
        assert (word(silent, "Available"), word(silent, "Ready")) == ("True", "Unknown")
    finally:
        await cell.delete(await cell.path_of(refusal))
    await karmada.report("dfw-1", replicas=9)
    healed = await karmada.until_status("a healed cell", lambda status: status.get("replicas") == 9)
    assert cells_of(healed) == ("AllCellsReport", "dfw-1")
    assert word(healed, "Ready") == "True"
