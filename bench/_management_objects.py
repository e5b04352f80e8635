"""Documents that users, cells and Karmada write while the management operator is measured.

Nothing here imports the operator: `ExpectedRepair` states the required result of a change, and the
process of the planes checks it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from compute_api_types import labels, names
from compute_sim_planes.client.rest import Resource
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
UNSERVED: Final = "unserved"
CITY: Final = "DFW"
CELL: Final = "dfw-1"
SINCE: Final = "2026-03-01T00:00:00Z"
EDITED: Final = "bench.example/edited"
OF_DEPLOYMENT: Final = f"-us-{CITY.lower()}"
NEWS: Final = "Instance was restarted"
# Typical size: three containers with some environment (3.4 KB as stored).
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


def a_heavy_workload(name: str) -> JsonObject:
    """A Workload of about 160 KB, near the limit of admission, that does not compress (AT-01)."""
    chance = random.Random(name)  # noqa: S311 - filler, not a secret
    env: list[JsonValue] = [
        {"name": f"E{number}", "value": chance.randbytes(16_000).hex()} for number in range(5)
    ]
    workload = a_workload(name)
    containers = objects_at(
        workload, "spec", "template", "spec", "runtime", "sandbox", "containers"
    )
    containers[0]["env"] = env
    return workload


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
    """The edit by which a user restarts a Workload."""
    annotations: JsonObject = {EDITED: str(number)}
    return {"spec": {"template": {"metadata": {"annotations": annotations}}}}


EDIT: Final = an_edit(1)
DRIFT: Final[JsonObject] = {"spec": {"scaleSettings": {"minReplicas": 7}}}


# --- written by cells -----------------------------------------------------------------------------


def a_condition(kind: str, reason: str, message: str = "") -> JsonObject:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": SINCE,
    }


def a_report(copy: JsonObject) -> JsonObject:
    """The status that the interpreter aggregates when the deployment runs in a cell."""
    counters = ("replicas", "desiredReplicas", "readyReplicas", "currentReplicas")
    conditions: list[JsonValue] = [
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
        "conditions": conditions,
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
    """An Instance as a cell writes it back: with all labels, owned by the copy of its
    deployment.
    """
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


# --- expected results -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExpectedRepair:
    """A deployment that was changed, and how."""

    change: int  # 0 Workload edited, 1 hub copy changed, 2 Instance status changed
    project: str
    namespace: str
    name: str

    @classmethod
    def of(cls, change: int, copy: JsonObject) -> ExpectedRepair:
        metadata = object_at(copy, "metadata")
        return cls(
            change, project_of(copy), string_at(metadata, "namespace"), string_at(metadata, "name")
        )

    @property
    def workload(self) -> str:
        return family_of(self.name)

    def is_met_by(self, document: JsonObject) -> bool:
        """Whether the copy or the projection is repaired."""
        if self.change == 0:
            annotations = object_at(document, "spec", "template", "metadata", "annotations")
            return annotations.get(EDITED) == "1"
        if self.change == 1:
            return value_at(document, "spec", "scaleSettings", "minReplicas") == 1
        conditions = objects_at(document, "status", "conditions")
        return any(one.get("message") == NEWS for one in conditions)


def project_of(copy: JsonObject) -> str:
    copy_labels = string_map_at(copy, "metadata", "labels")
    return names.decode_project(copy_labels, None, owner="a copy on the hub")


def family_of(name: str) -> str:
    """The Workload in the name of a deployment or Instance."""
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
