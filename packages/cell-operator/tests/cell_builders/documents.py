"""Objects as management, Karmada and people put them into a cell."""

from __future__ import annotations

from typing import Final

from compute_cell_operator.planes import (
    DEPLOYMENT,
    INSTANCE,
    LOCATION,
    NAMESPACE,
)
from compute_operator_kit.core.json import Json, JsonObject

NAMESPACE_UID: Final = "6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
NS: Final = f"ns-{NAMESPACE_UID}"
PROJECT: Final = "acme"
PROJECT_NAMESPACE: Final = "shop"
CELL_NAME: Final = "dfw-1"
CITY: Final = "DFW"
HUB_UID: Final = "0d9a3b5e-7c11-4c0b-8f63-5d1c8f2b9e77"
IMAGE: Final = "registry.example.net/shop/storefront"


def a_namespace_document(
    name: str = NS, project: str = PROJECT, within: str = PROJECT_NAMESPACE
) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": NAMESPACE.kind,
        "metadata": {
            "name": name,
            "labels": {
                "meta.datumapis.com/upstream-cluster-name": f"cluster-{project}",
                "meta.datumapis.com/upstream-namespace": within,
            },
        },
    }


def a_template_document(
    tag: str = "1.0",
    *,
    networks: tuple[str, ...] = ("default",),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> JsonObject:
    container: JsonObject = {"name": "app", "image": f"{IMAGE}:{tag}"}
    interfaces: list[Json] = [{"network": {"name": name}} for name in networks]
    template: JsonObject = {
        "spec": {
            "runtime": {
                "resources": {"instanceType": "datumcloud/d1-standard-2"},
                "sandbox": {"containers": [container]},
            },
            "networkInterfaces": interfaces,
        }
    }
    metadata: JsonObject = {}
    if labels:
        metadata["labels"] = {**labels}
    if annotations:
        metadata["annotations"] = {**annotations}
    return {"metadata": metadata, **template} if metadata else template


def a_deployment_document(
    name: str = "web",
    replicas: int = 1,
    *,
    tag: str = "1.0",
    city: str = "DFW",
    namespace: str = NS,
    template: JsonObject | None = None,
    policy: str = "OrderedReady",
    hub_generation: str = "1",
    hub_uid: str = HUB_UID,
) -> JsonObject:
    """A WorkloadDeployment as Karmada delivers it; on the hub it is its own root."""
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {
                "resourcetemplate.karmada.io/uid": hub_uid,
                "resourcetemplate.karmada.io/generation": hub_generation,
            },
        },
        "spec": {
            "workloadRef": {"name": "shop", "uid": "5b7f3f0e-0000-4000-8000-00000000000a"},
            "placementName": "us",
            "cityCode": city,
            "template": template or a_template_document(tag),
            "scaleSettings": {
                "minReplicas": replicas,
                "instanceManagementPolicy": policy,
            },
        },
    }


def an_instance_document(
    name: str, *, namespace: str = NS, owner_uid: str = "", labels: dict[str, str] | None = None
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace, "labels": {**(labels or {})}}
    if owner_uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": DEPLOYMENT.api_version,
                "kind": DEPLOYMENT.kind,
                "name": "web",
                "uid": owner_uid,
                "controller": True,
            }
        ]
    spec = a_template_document()["spec"]
    assert isinstance(spec, dict)
    controller: JsonObject = {
        "templateHash": "v1-0000000000000000",
        "schedulingGates": [{"name": "Quota"}],
    }
    return {
        "apiVersion": INSTANCE.api_version,
        "kind": INSTANCE.kind,
        "metadata": metadata,
        "spec": {**spec, "controller": controller},
    }


def a_location_document(name: str = "dfw", city: str = "DFW") -> JsonObject:
    topology: JsonObject = {"topology.datum.net/city-code": city} if city else {}
    return {
        "apiVersion": LOCATION.api_version,
        "kind": LOCATION.kind,
        "metadata": {"name": name},
        "spec": {
            "locationClassName": "datum-managed",
            "topology": topology,
            "provider": {"gcp": {"projectId": "p", "region": "r", "zone": "z"}},
        },
    }


def a_network_document(name: str = "default", namespace: str = NS) -> JsonObject:
    return {
        "apiVersion": LOCATION.api_version,
        "kind": "Network",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ipam": {"mode": "Auto"}},
    }
