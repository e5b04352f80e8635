"""What people, cells and Karmada write while the management operator is measured. Plain documents.

Nothing here knows the operator: what it should have made of a document is said by `Wanted`, and
looked at by the process that has the planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import labels, names
from compute_sim_planes.client import Resource
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
    string_map_at,
    value_at,
)

GROUP: Final = "compute.datumapis.com"
WORKLOAD: Final = Resource(GROUP, "v1alpha", "workloads", "Workload")
DEPLOYMENT: Final = Resource(GROUP, "v1alpha", "workloaddeployments", "WorkloadDeployment")
INSTANCE: Final = Resource(GROUP, "v1alpha", "instances", "Instance")
PROJECT: Final = Resource(
    "resourcemanager.miloapis.com", "v1alpha1", "projects", "Project", is_namespaced=False
)
CITY: Final = "DFW"
CELL: Final = "dfw-1"
SINCE: Final = "2026-03-01T00:00:00Z"
EDITED: Final = "bench.example/edited"
OF_DEPLOYMENT: Final = f"-us-{CITY.lower()}"
NEWS: Final = "Instance was restarted"
# About the size of what users write: three containers with some environment (3.4 KB as stored).
ENVIRONMENT: Final = 12


def a_namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def a_project(name: str) -> JsonObject:
    owner: JsonObject = {"kind": "Organization", "name": "bench"}
    return _document(PROJECT, {"name": name}, spec={"ownerRef": owner})


def a_location() -> JsonObject:
    spec: JsonObject = {
        "locationClassName": "datum-managed",
        "topology": {labels.TOPOLOGY_CITY_CODE: CITY},
        "provider": {},
    }
    return {
        "apiVersion": "networking.datumapis.com/v1alpha",
        "kind": "Location",
        "metadata": {"name": "us-dallas-1"},
        "spec": spec,
    }


def a_network() -> JsonObject:
    return {
        "apiVersion": "networking.datumapis.com/v1alpha",
        "kind": "Network",
        "metadata": {"name": "default", "namespace": "default"},
        "spec": {"ipam": {"mode": "Auto"}},
    }


def a_cluster() -> JsonObject:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": CELL, "labels": {labels.TOPOLOGY_CITY_CODE: CITY}},
        "spec": {"syncMode": "Pull"},
    }


def a_workload(name: str, city: str = CITY) -> JsonObject:
    scale: JsonObject = {"minReplicas": 1, "instanceManagementPolicy": "OrderedReady"}
    placement: JsonObject = {"name": "us", "cityCodes": [city], "scaleSettings": scale}
    spec: JsonObject = {"template": {"spec": _template()}, "placements": [placement]}
    return _document(WORKLOAD, {"name": name, "namespace": "default"}, spec=spec)


def _template() -> JsonObject:
    env: list[JsonValue] = [
        {"name": f"SETTING_{number}", "value": "x" * 32} for number in range(ENVIRONMENT)
    ]
    containers: list[JsonValue] = [
        {"name": name, "image": f"registry.example/{name}:1.27.3", "env": env}
        for name in ("web", "worker", "sidecar")
    ]
    return {
        "runtime": {
            "resources": {"instanceType": "datumcloud/d1-standard-2"},
            "sandbox": {"containers": containers},
        },
        "networkInterfaces": [{"network": {"name": "default"}}],
    }


def an_edit(number: int) -> JsonObject:
    """As a user restarts a Workload."""
    annotations: JsonObject = {EDITED: str(number)}
    return {"spec": {"template": {"metadata": {"annotations": annotations}}}}


EDIT: Final = an_edit(1)
DRIFT: Final[JsonObject] = {"spec": {"scaleSettings": {"minReplicas": 7}}}


# --- what comes from cells ------------------------------------------------------------------------


def a_condition(kind: str, reason: str, message: str = "") -> JsonObject:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": SINCE,
    }


def a_report(copy: JsonObject) -> JsonObject:
    """As the interpreter aggregates a cell on which the deployment runs."""
    counters = ("replicas", "desiredReplicas", "readyReplicas", "currentReplicas")
    told: list[JsonValue] = [
        a_condition("Available", "StableInstanceFound", "1/1 instances are ready"),
        a_condition("ReplicasReady", "ReplicasAvailable", "1/1 replicas available"),
        a_condition("Ready", "ReplicasAvailable", "1/1 replicas available"),
        a_condition("CellsReporting", "AllCellsReport", CELL),
    ]
    generation = integer_at(copy, "metadata", "generation") or 0
    return {
        **dict.fromkeys((*counters, "updatedReplicas"), 1),
        "observedGeneration": generation,
        "observedTemplateGeneration": generation,
        "conditions": told,
    }


def a_ready_status(message: str = "Instance is ready") -> JsonObject:
    return {
        "conditions": [
            a_condition("Programmed", "Programmed", "Instance is programmed"),
            a_condition("Available", "Available", "Instance is available"),
            a_condition("QuotaGranted", "QuotaAvailable", "Quota is granted"),
            a_condition("Ready", "Available", message),
        ]
    }


def a_new_status() -> JsonObject:
    return a_ready_status(NEWS)


def an_instance(copy: JsonObject) -> JsonObject:
    """As a cell writes one back: with all labels, owned by the copy of its deployment."""
    metadata = object_at(copy, "metadata")
    name = f"{string_at(metadata, 'name')}-0"
    owner: JsonObject = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "name": string_at(metadata, "name"),
        "uid": string_at(metadata, "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    linking: JsonObject = {
        **{key: string_at(metadata, "labels", key) for key in labels.IDENTITY_LABELS},
        labels.WORKLOAD_DEPLOYMENT_NAME: string_at(metadata, "name"),
        labels.WORKLOAD_DEPLOYMENT_UID: "of-the-cell",
        labels.INSTANCE_INDEX: "0",
        labels.CITY_CODE: CITY,
        labels.CELL: CELL,
    }
    whole: JsonObject = {
        "name": name,
        "namespace": string_at(metadata, "namespace"),
        "labels": linking,
        "annotations": {labels.INSTANCE_UID: f"of-{name}"},
        "ownerReferences": [owner],
    }
    template = object_at(copy, "spec", "template", "spec")
    return _document(INSTANCE, whole, spec={**template, "controller": {"templateHash": "v1-1"}})


# --- what must have become of it ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """A deployment that was disturbed, and how."""

    way: int  # 0 the Workload was edited, 1 the copy was spoiled, 2 the Instance says something new
    project: str
    namespace: str
    name: str

    @classmethod
    def of(cls, way: int, copy: JsonObject) -> Wanted:
        metadata = object_at(copy, "metadata")
        return cls(
            way, project_of(copy), string_at(metadata, "namespace"), string_at(metadata, "name")
        )

    @property
    def workload(self) -> str:
        return family_of(self.name)

    def is_met_by(self, found: JsonObject) -> bool:
        """Whether the copy, or the projection, is as it should be."""
        if self.way == 0:
            annotations = object_at(found, "spec", "template", "metadata", "annotations")
            return annotations.get(EDITED) == "1"
        if self.way == 1:
            return value_at(found, "spec", "scaleSettings", "minReplicas") == 1
        conditions = objects_at(found, "status", "conditions")
        return any(one.get("message") == NEWS for one in conditions)


def project_of(copy: JsonObject) -> str:
    found = string_map_at(copy, "metadata", "labels")
    return names.decode_project(found, None, owner="a copy on the hub")


def family_of(name: str) -> str:
    """The Workload behind the name of a deployment or an Instance; Workloads have names apart."""
    return name.partition(OF_DEPLOYMENT)[0]


def is_available(workload: JsonObject) -> bool:
    conditions = objects_at(workload, "status", "conditions")
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


def _document(resource: Resource, metadata: JsonObject, **members: JsonValue) -> JsonObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **members,
    }
