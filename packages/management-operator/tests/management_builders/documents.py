"""Objects as a user or an administrator would write them: plain documents, valid as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compute_api_types import labels
from compute_management_operator.planes import (
    CLAIM,
    CLUSTER,
    DEPLOYMENT,
    LOCATION,
    NETWORK,
    PROJECT,
    WORKLOAD,
)
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import Kind

IMAGE = "registry.example/web:1"


def a_document(kind: Kind, name: str, namespace: str = "", **members: Json) -> JsonObject:
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **members}


def a_template_document(
    networks: Sequence[str] = ("default",), annotations: Mapping[str, str] | None = None
) -> JsonObject:
    interfaces: list[Json] = [{"network": {"name": name}} for name in networks]
    runtime: JsonObject = {
        "resources": {"instanceType": "datumcloud/d1-standard-2"},
        "sandbox": {"containers": [{"name": "web", "image": IMAGE}]},
    }
    template: JsonObject = {"spec": {"runtime": runtime, "networkInterfaces": interfaces}}
    if annotations:
        template["metadata"] = {"annotations": {**annotations}}
    return template


def a_placement_document(name: str, cities: Sequence[str], replicas: int = 1) -> JsonObject:
    return {
        "name": name,
        "cityCodes": [*cities],
        "scaleSettings": {"minReplicas": replicas, "instanceManagementPolicy": "OrderedReady"},
    }


def a_workload_document(
    name: str = "web",
    placements: Mapping[str, Sequence[str]] | None = None,
    *,
    namespace: str = "default",
    replicas: int = 1,
    template: JsonObject | None = None,
) -> JsonObject:
    wanted = placements if placements is not None else {"us": ("DFW",)}
    listed: list[Json] = [
        a_placement_document(placement, cities, replicas) for placement, cities in wanted.items()
    ]
    spec: JsonObject = {"template": template or a_template_document(), "placements": listed}
    return a_document(WORKLOAD, name, namespace, spec=spec)


def a_deployment_document(
    name: str = "web-us-dfw",
    *,
    namespace: str = "default",
    city: str = "DFW",
    placement: str = "us",
    workload_uid: str = "",
    scale: int = 1,
) -> JsonObject:
    """A WorkloadDeployment without an owner."""
    spec: JsonObject = {
        "workloadRef": {"name": "somebody", "uid": workload_uid},
        "placementName": placement,
        "cityCode": city,
        "template": a_template_document(),
        "scaleSettings": {"minReplicas": scale, "instanceManagementPolicy": "OrderedReady"},
    }
    return a_document(DEPLOYMENT, name, namespace, spec=spec)


def a_location_document(city: str, name: str = "") -> JsonObject:
    spec: JsonObject = {
        "locationClassName": "datum-managed",
        "topology": {labels.TOPOLOGY_CITY_CODE: city},
        "provider": {},
    }
    return a_document(LOCATION, name or f"at-{city.lower().replace(' ', '-')}", spec=spec)


def a_network_document(name: str = "default", namespace: str = "default") -> JsonObject:
    return a_document(NETWORK, name, namespace, spec={"ipam": {"mode": "Auto"}})


def a_project_document(name: str) -> JsonObject:
    return a_document(PROJECT, name, spec={"ownerRef": {"kind": "Organization", "name": "acme"}})


def a_cluster_document(name: str, city: str | None = "DFW") -> JsonObject:
    document = a_document(CLUSTER, name, spec={"syncMode": "Pull"})
    if city is not None:
        document["metadata"] = {"name": name, "labels": {labels.TOPOLOGY_CITY_CODE: city}}
    return document


def a_claim_document(name: str, cell: str, *resources: str) -> JsonObject:
    """A quota claim that names a cell, as an object of the project namespace `default`."""
    project: JsonObject = {
        "apiGroup": "resourcemanager.miloapis.com",
        "kind": "Project",
        "name": "acme",
    }
    asked: list[Json] = [
        {"resourceType": one, "amount": 1} for one in resources or (labels.INSTANCES_RESOURCE,)
    ]
    spec: JsonObject = {"consumerRef": project, "resourceRef": project, "requests": asked}
    document = a_document(CLAIM, name, "default", spec=spec)
    found: JsonObject = {"name": name, "namespace": "default"}
    document["metadata"] = {**found, "labels": {labels.SOURCE_CLUSTER: cell}} if cell else found
    return document


def a_condition_document(
    kind: str, status: str, reason: str, message: str = "", *, generation: int | None = None
) -> JsonObject:
    condition: JsonObject = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-03-01T00:00:00Z",
    }
    if generation is not None:
        condition["observedGeneration"] = generation
    return condition


def a_deployment_status(
    *conditions: JsonObject, observed: int = 1, replicas: int = 1, ready: int = 0, desired: int = 1
) -> JsonObject:
    listed: list[Json] = [*conditions]
    return {
        "replicas": replicas,
        "desiredReplicas": desired,
        "readyReplicas": ready,
        "currentReplicas": replicas,
        "updatedReplicas": replicas,
        "observedGeneration": observed,
        "conditions": listed,
    }
