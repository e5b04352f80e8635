"""`deploy/hub` on a real hub: Karmada accepts our interpreter and aggregates with it."""

from __future__ import annotations

import uuid

import orjson

from compute_api_types.testing import a_deployment
from compute_sim_planes.json_types import JsonObject, integer_at, object_at
from e2e.harness.access.waiting import until
from e2e.harness.deploy.manifests import load_overlay
from e2e.harness.planes.plane_manifests import a_namespace
from e2e.harness.planes.topology import CITY_LABEL
from e2e.harness.stack.stack import RealPlanes
from e2e.harness.testing.installation import Installation

COMPUTE = "/apis/compute.datumapis.com/v1alpha"
CUSTOMIZATIONS = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations"


def a_city_policy(namespace: str) -> JsonObject:
    matched: JsonObject = {"matchLabels": {CITY_LABEL: "DFW"}}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"namespace": namespace, "name": "city-dfw"},
        "spec": {
            "resourceSelectors": [
                {
                    "apiVersion": "compute.datumapis.com/v1alpha",
                    "kind": "WorkloadDeployment",
                    "labelSelector": matched,
                }
            ],
            "placement": {"clusterAffinity": {"labelSelector": matched}},
        },
    }


async def test_status_of_a_cell_reaches_the_hub_through_the_shipped_script(
    real_planes: RealPlanes, installation: Installation
) -> None:
    await installation.apply("hub", load_overlay("hub"))
    namespace = f"ns-{uuid.uuid4()}"
    wanted: JsonObject = orjson.loads(
        orjson.dumps(a_deployment().model_dump(mode="json", by_alias=True, exclude_none=True))
    )
    wanted["metadata"] = {"namespace": namespace, "name": "web", "labels": {CITY_LABEL: "DFW"}}
    wanted.pop("status", None)
    path = f"{COMPUTE}/namespaces/{namespace}/workloaddeployments/web"
    async with (
        real_planes.plane("hub").client() as hub,
        real_planes.plane("dfw-1").client() as cell,
    ):
        assert await hub.find(f"{CUSTOMIZATIONS}/workloaddeployment")
        await hub.create(a_namespace(namespace))
        await hub.create(a_city_policy(namespace))
        await hub.create(wanted)

        async def arrived() -> JsonObject | None:
            return await cell.find(path)

        deployment = await until("the deployment in the cell", arrived, check=real_planes.check)
        status: JsonObject = {
            **object_at(deployment, "status"),
            "replicas": 3,
            "readyReplicas": 2,
            "observedGeneration": integer_at(deployment, "metadata", "generation"),
        }
        await cell.patch(f"{path}/status", {"status": status})

        async def aggregated() -> bool:
            hub_status = object_at(await hub.get(path), "status")
            return (hub_status.get("replicas"), hub_status.get("readyReplicas")) == (3, 2)

        await until("the status on the hub", aggregated, check=real_planes.check)
        await hub.delete(path)
        await hub.delete(f"/api/v1/namespaces/{namespace}")
