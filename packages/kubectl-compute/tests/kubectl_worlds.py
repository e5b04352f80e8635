"""A settled Workload on a project, a hub and two cells as documents, and ways to disturb it.

Tests change one document and look at the answer. Documents that operators and Karmada really write
are in the scenarios about `why`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from compute_api_types import labels
from compute_api_types.template_hash import derive_template_hash
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.explain.diagnosis import CityDiagnosis, Diagnosis
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.capture import Capture, CapturedPlane, Reading
from compute_kubectl.snapshot.decode import decode
from compute_kubectl.snapshot.planes import Role, Snapshot

START = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)
NOW = START + timedelta(minutes=10)
UID = "9573f9cf-ca60-4fd6-919a-b61d5ca0b43a"
NAMESPACE_UID = "85092faa-6b07-41c3-8e33-dfdf2b4cbd68"
HUB_NAMESPACE = f"ns-{NAMESPACE_UID}"
CITIES = {"DFW": "dfw-1", "ORD": "ord-1"}
TEMPLATE: JsonObject = {
    "spec": {
        "runtime": {
            "resources": {"instanceType": "datumcloud/d1-standard-2"},
            "sandbox": {
                "containers": [
                    {
                        "name": "web",
                        "image": "registry.example.net/shop/web:1.0",
                        "args": ["--token", "MARKER-args"],
                        "env": [{"name": "PASSWORD", "value": "MARKER-env"}],
                    }
                ]
            },
        },
        "networkInterfaces": [{"network": {"name": "default"}}],
    }
}


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(
    kind: str, status: str, reason: str, message: str = "", seconds: float = 5
) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(seconds),
    }


def wrote(manager: str, *parts: str, seconds: float = 0, subresource: str = "") -> JsonObject:
    members: JsonObject = {f"f:{part}": {} for part in parts}
    entry: JsonObject = {
        "manager": manager,
        "operation": "Update",
        "time": at(seconds),
        "fieldsV1": members,
    }
    return {**entry, "subresource": subresource} if subresource else entry


def document(kind: str, name: str, namespace: str = "", **members: JsonValue) -> JsonObject:
    metadata: JsonObject = {
        "name": name,
        "uid": f"uid-{kind}-{namespace}-{name}".lower(),
        "generation": 1,
        "creationTimestamp": at(0),
        "labels": {},
        "annotations": {},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": kind, "metadata": metadata, **members}


def part(one: JsonValue, *path: str) -> JsonObject:
    """An object inside a document; a missing one is an error of the test."""
    for name in path:
        assert isinstance(one, dict), path
        one = one[name]
    assert isinstance(one, dict), path
    return one


Documents = dict[str, list[JsonObject]]


@dataclass
class Planes:
    """Documents per plane and plural, and how reading each plane ends."""

    project: Documents = field(default_factory=dict[str, list[JsonObject]])
    hub: Documents = field(default_factory=dict[str, list[JsonObject]])
    cells: dict[str, Documents] = field(default_factory=dict[str, Documents])
    access: dict[str, Access] = field(default_factory=dict[str, Access])
    unread: dict[tuple[str, str], Access] = field(default_factory=dict[tuple[str, str], Access])

    def capture(self) -> Capture:
        planes = [
            self._plane("project", Role.PROJECT, self.project),
            self._plane("hub", Role.HUB, self.hub),
        ]
        planes += [self._plane(name, Role.CELL, one) for name, one in self.cells.items()]
        return Capture("shop", NOW, tuple(planes))

    def _plane(self, name: str, role: Role, documents: Documents) -> CapturedPlane:
        state = self.access.get(name, Access.READ)
        readings = {
            plural: self._reading(name, plural, state, items) for plural, items in documents.items()
        }
        return CapturedPlane(name, role, state, at=NOW, readings=readings)

    def _reading(self, plane: str, plural: str, state: Access, items: list[JsonObject]) -> Reading:
        state = self.unread.get((plane, plural), state)
        return Reading(state, tuple(items) if state is Access.READ else (), NOW)

    def snapshot(self) -> Snapshot:
        return decode(self.capture())

    def explain(self, now: datetime = NOW, name: str = "web") -> Diagnosis:
        return explain(self.snapshot(), now, Subject(name))

    def city(self, code: str = "DFW", now: datetime = NOW) -> CityDiagnosis:
        return next(one for one in self.explain(now).cities if one.city == code)

    def hide(self, *planes: str, access: Access = Access.NOT_ASKED) -> Planes:
        for name in planes:
            self.access[name] = access
        return self

    def only_project(self) -> Planes:
        return self.hide("hub", *self.cells)

    def every(self, plural: str) -> Iterable[JsonObject]:
        for documents in (self.project, self.hub, *self.cells.values()):
            yield from documents.get(plural, ())

    def copy(self) -> Planes:
        return deepcopy(self)


def deployment(city: str, namespace: str, replicas: int) -> JsonObject:
    name = f"web-main-{city.lower()}"
    one = document("WorkloadDeployment", name, namespace)
    part(one, "metadata")["managedFields"] = [wrote("writer", "spec")]
    one["spec"] = {
        "workloadRef": {"name": "web", "uid": UID},
        "placementName": "main",
        "cityCode": city,
        "scaleSettings": {"minReplicas": replicas, "instanceManagementPolicy": "OrderedReady"},
        "template": deepcopy(TEMPLATE),
    }
    one["status"] = {
        "observedGeneration": 1,
        "replicas": replicas,
        "desiredReplicas": replicas,
        "readyReplicas": replicas,
        "updatedReplicas": replicas,
        "currentReplicas": replicas,
        "conditions": [
            condition("Available", "True", "StableInstanceFound"),
            condition("ReplicasReady", "True", "ReplicasAvailable"),
            condition("Ready", "True", "ReplicasAvailable"),
        ],
    }
    return one


def instance(city: str, ordinal: int, namespace: str, *, cell: str = "") -> JsonObject:
    name = f"web-main-{city.lower()}-{ordinal}"
    one = document("Instance", name, namespace)
    linking: JsonObject = {
        labels.WORKLOAD_UID: UID,
        labels.WORKLOAD_DEPLOYMENT_NAME: f"web-main-{city.lower()}",
        labels.INSTANCE_INDEX: str(ordinal),
    }
    metadata = part(one, "metadata")
    metadata["labels"] = {**linking, labels.CELL: cell} if cell else linking
    if cell:
        metadata["annotations"] = {labels.INSTANCE_UID: f"uid-instance-{name}"}
    else:
        metadata["uid"] = f"uid-instance-{name}"
    one["spec"] = {
        **deepcopy(part(TEMPLATE, "spec")),
        "controller": {"templateHash": derive_template_hash(TEMPLATE), "schedulingGates": []},
    }
    one["status"] = {
        "conditions": [
            condition("Programmed", "True", "Programmed"),
            condition("Available", "True", "Available"),
            condition("Ready", "True", "Available"),
            condition("QuotaGranted", "True", "QuotaAvailable"),
        ]
    }
    return one


def claim(city: str, ordinal: int) -> JsonObject:
    one = document("ResourceClaim", f"instance-web-main-{city.lower()}-{ordinal}", "shop")
    amounts = (("instances", 1), ("vcpus", 1000), ("memory", 2048))
    one["spec"] = {
        "consumerRef": {"kind": "Project", "name": "acme"},
        "requests": [
            {"resourceType": f"compute.datumapis.com/{kind}", "amount": amount}
            for kind, amount in amounts
        ],
    }
    part(one, "metadata")["labels"] = {labels.SOURCE_CLUSTER: CITIES.get(city, "")}
    one["status"] = {
        "conditions": [condition("Granted", "True", "QuotaAvailable")],
        "allocations": [
            {
                "resourceType": f"compute.datumapis.com/{kind}",
                "allocatedAmount": amount,
                "status": "Granted",
            }
            for kind, amount in amounts
        ],
    }
    return one


def bucket(kind: str, limit: int, allocated: int) -> JsonObject:
    one = document("AllowanceBucket", f"bucket-{kind}", "milo-system")
    one["spec"] = {
        "resourceType": f"compute.datumapis.com/{kind}",
        "consumerRef": {"kind": "Project", "name": "acme"},
    }
    one["status"] = {"limit": limit, "allocated": allocated, "available": limit - allocated}
    return one


def workload(cities: Iterable[str], replicas: int) -> JsonObject:
    one = document("Workload", "web", "shop")
    metadata = part(one, "metadata")
    metadata["uid"] = UID
    metadata["finalizers"] = [labels.WORKLOAD_FINALIZER]
    metadata["managedFields"] = [wrote("tenant", "spec")]
    one["spec"] = {
        "template": deepcopy(TEMPLATE),
        "placements": [
            {
                "name": "main",
                "cityCodes": [*cities],
                "scaleSettings": {"minReplicas": replicas},
            }
        ],
    }
    one["status"] = {
        "observedGeneration": 1,
        "conditions": [
            condition("Available", "True", "AvailablePlacementFound"),
            condition("Ready", "True", "PlacementsReady"),
        ],
        "placements": [{"name": "main", "conditions": []}],
    }
    return one


def cluster(name: str, city: str) -> JsonObject:
    one = document("Cluster", name)
    part(one, "metadata")["labels"] = {labels.TOPOLOGY_CITY_CODE: city}
    one["spec"] = {"syncMode": "Push"}
    one["status"] = {"conditions": [condition("Ready", "True", "ClusterReady")]}
    return one


def binding(city: str, cell: str) -> JsonObject:
    name = f"web-main-{city.lower()}"
    one = document("ResourceBinding", f"{name}-workloaddeployment", HUB_NAMESPACE)
    one["spec"] = {
        "resource": {
            "kind": "WorkloadDeployment",
            "name": name,
            "uid": f"uid-workloaddeployment-{HUB_NAMESPACE}-{name}",
        },
        "clusters": [{"name": cell}],
    }
    one["status"] = {
        "schedulerObservedGeneration": 1,
        "conditions": [condition("Scheduled", "True", "Success", seconds=1)],
        "aggregatedStatus": [
            {
                "clusterName": cell,
                "applied": True,
                "status": {"observedTemplateGeneration": 1},
            }
        ],
    }
    return one


def policy(city: str) -> JsonObject:
    selector: JsonObject = {"matchLabels": {labels.TOPOLOGY_CITY_CODE: city}}
    one = document("PropagationPolicy", f"city-{city.lower()}", HUB_NAMESPACE)
    one["spec"] = {"placement": {"clusterAffinity": {"labelSelector": selector}}}
    return one


def hub_namespace() -> JsonObject:
    one = document("Namespace", HUB_NAMESPACE)
    part(one, "metadata")["labels"] = {
        labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
        labels.UPSTREAM_NAMESPACE: "shop",
    }
    return one


def settled(replicas: int = 2, cities: dict[str, str] | None = None) -> Planes:
    """Everything runs and every plane shows it."""
    cities = CITIES if cities is None else cities
    namespace = document("Namespace", "shop")
    part(namespace, "metadata")["uid"] = NAMESPACE_UID
    amount = replicas * len(cities)
    planes = Planes(
        project={
            "namespaces": [namespace],
            "workloads": [workload(cities, replicas)],
            "workloaddeployments": [],
            "instances": [],
            "resourceclaims": [claim(city, n) for city in cities for n in range(replicas)],
            "allowancebuckets": [
                bucket("instances", 10, amount),
                bucket("vcpus", 40000, 1000 * amount),
            ],
            "events": [],
        },
        hub={
            "namespaces": [hub_namespace()],
            "workloaddeployments": [],
            "instances": [],
            "propagationpolicies": [policy(city) for city in cities],
            "resourcebindings": [binding(city, cell) for city, cell in cities.items()],
            "clusters": [cluster(cell, city) for city, cell in cities.items()],
        },
    )
    for city, cell in cities.items():
        _add_city(planes, city, cell, replicas)
    return planes


def _add_city(planes: Planes, city: str, cell: str, replicas: int) -> None:
    shown = deployment(city, "shop", replicas)
    metadata = part(shown, "metadata")
    metadata["finalizers"] = [labels.FEDERATION_FINALIZER]
    metadata["annotations"] = {labels.FEDERATION_NAMESPACE: HUB_NAMESPACE}
    planes.project["workloaddeployments"].append(shown)
    copy = deployment(city, HUB_NAMESPACE, replicas)
    part(copy, "metadata")["annotations"] = {
        labels.PROJECT_GENERATION: "1",
        "propagationpolicy.karmada.io/name": f"city-{city.lower()}",
    }
    planes.hub["workloaddeployments"].append(copy)
    real = deployment(city, HUB_NAMESPACE, replicas)
    metadata = part(real, "metadata")
    metadata["uid"] = f"uid-of-{cell}"
    metadata["annotations"] = {labels.KARMADA_TEMPLATE_GENERATION: "1"}
    part(real, "status")["observedTemplateGeneration"] = 1
    slots = range(replicas)
    planes.project["instances"] += [instance(city, n, "shop", cell=cell) for n in slots]
    planes.hub["instances"] += [instance(city, n, HUB_NAMESPACE, cell=cell) for n in slots]
    planes.cells[cell] = {
        "workloaddeployments": [real],
        "instances": [instance(city, n, HUB_NAMESPACE) for n in slots],
        "networkbindings": [],
        "networkcontexts": [],
        "subnetclaims": [],
        "subnets": [],
    }


# --- disturbances ---------------------------------------------------------------------------------


def find(items: list[JsonObject], name: str) -> JsonObject:
    return next(one for one in items if part(one, "metadata")["name"] == name)


def set_condition(one: JsonObject, changed: JsonObject) -> None:
    status = part(one, "status")
    listed = status.setdefault("conditions", [])
    assert isinstance(listed, list)
    kept = [each for each in listed if part(each)["type"] != changed["type"]]
    status["conditions"] = [*kept, changed]


def everywhere(planes: Planes, name: str, change: Callable[[JsonObject], None]) -> None:
    """Changes the Instance of that name on every plane that has it."""
    for one in planes.every("instances"):
        if part(one, "metadata")["name"] == name:
            change(one)


def block_instance(
    planes: Planes,
    name: str,
    changed: JsonObject,
    *,
    gates: tuple[str, ...] = (),
    ready: str = "",
) -> None:
    """An Instance that is not Ready for a reason, as every plane shows it."""

    def change(one: JsonObject) -> None:
        part(one, "spec", "controller")["schedulingGates"] = [{"name": gate} for gate in gates]
        set_condition(one, changed)
        reason = ready or str(changed["reason"])
        message = str(changed["message"])
        seconds = 60
        set_condition(one, condition("Ready", "False", reason, message, seconds))

    everywhere(planes, name, change)


def block_deployment(planes: Planes, city: str, reason: str, message: str = "") -> None:
    """A deployment that reports a reason, as every plane shows it."""
    for one in planes.every("workloaddeployments"):
        if part(one, "spec")["cityCode"] == city:
            for kind in ("Ready", "ReplicasReady"):
                set_condition(one, condition(kind, "False", reason, message, 60))


def edit_workload(planes: Planes, seconds: float, replicas: int) -> None:
    """The tenant has changed the scale; nothing has reacted yet."""
    one = planes.project["workloads"][0]
    part(one, "metadata")["generation"] = 2
    part(one, "metadata")["managedFields"] = [wrote("tenant", "spec", seconds=seconds)]
    placements = part(one, "spec")["placements"]
    assert isinstance(placements, list)
    part(placements[0], "scaleSettings")["minReplicas"] = replicas


def scale(one: JsonObject, replicas: int, generation: int, seconds: float) -> None:
    """A WorkloadDeployment whose spec has the new scale and whose status is the old one."""
    part(one, "metadata")["generation"] = generation
    part(one, "metadata")["managedFields"] = [wrote("writer", "spec", seconds=seconds)]
    part(one, "spec", "scaleSettings")["minReplicas"] = replicas
