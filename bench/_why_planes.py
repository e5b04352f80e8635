"""Simulated planes for `bench.why`: a project, a hub, and a cell in each of many cities, settled.

They run behind one TLS server in their own process and hold what operators and Karmada would have
written; no operator runs. Every Workload is in every city, with one Instance in each.
"""

from __future__ import annotations

import logging
import random
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
import uvloop

from bench._cell_planes import a_deployment, a_namespace
from bench._commanded import serve
from compute_api_types import labels, names
from compute_api_types.crd import derive_crds
from compute_api_types.template_hash import derive_template_hash
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import PrefixRoutes
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.time.sources import SeededIdentities

PROJECT: Final = "acme"
HUB: Final = "hub"
SHOP: Final = "shop"
GROUP: Final = "compute.datumapis.com"
WORKLOAD: Final = Resource(GROUP, "v1alpha", "workloads", "Workload")
DEPLOYMENT: Final = Resource(GROUP, "v1alpha", "workloaddeployments", "WorkloadDeployment")
INSTANCE: Final = Resource(GROUP, "v1alpha", "instances", "Instance")
NAMESPACE: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
CLUSTER: Final = Resource(
    "cluster.karmada.io", "v1alpha1", "clusters", "Cluster", is_namespaced=False
)
POLICY: Final = Resource(
    "policy.karmada.io", "v1alpha1", "propagationpolicies", "PropagationPolicy"
)
BINDING: Final = Resource("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding")
AT: Final = "2026-03-01T12:00:00Z"


def city_of(number: int) -> str:
    """`AAA`, `AAB`, …"""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return f"A{letters[number // 26]}{letters[number % 26]}"


def cell_of(city: str) -> str:
    return f"{city.lower()}-1"


class WhyPlanes:
    """The planes and their objects; the first Workload waits for quota in the last city."""

    def __init__(self, cities: int, workloads: int) -> None:
        self.token = secrets.token_urlsafe(16)
        self._cities = [city_of(number) for number in range(cities)]
        self._workloads = [f"app-{number:02}" for number in range(workloads)]
        identities = SeededIdentities(random.SystemRandom())
        parts = PlaneParts(tokens=Tokens({self.token: ADMIN}), identities=identities)
        names_of = (PROJECT, HUB, *(cell_of(city) for city in self._cities))
        self._planes = {
            name: Plane(name, PlaneParts(tokens=parts.tokens, identities=identities))
            for name in names_of
        }
        self._hub_namespace = ""

    @property
    def paths(self) -> dict[str, str]:
        return {name: f"/planes/{name}" for name in self._planes}

    def routes(self) -> PrefixRoutes:
        routes = PrefixRoutes()
        for name, path in self.paths.items():
            routes.add(path, self._planes[name])
        return routes

    async def close(self) -> None:
        for plane in self._planes.values():
            await plane.close()

    # objects -------------------------------------------------------------------------------------

    async def fill(self) -> None:
        ours: list[JsonObject] = orjson.loads(orjson.dumps(derive_crds()))
        for name, plane in self._planes.items():
            others = {PROJECT: load_crds("milo"), HUB: load_crds("karmada")}.get(name, [])
            await apply_manifests(plane.connect(), [*ours, *others])
        shop = await self._client(PROJECT).create(NAMESPACE, a_namespace(SHOP))
        self._hub_namespace = names.derive_hub_namespace(string_at(shop, "metadata", "uid"))
        identity = {
            labels.UPSTREAM_CLUSTER_NAME: f"cluster-{PROJECT}",
            labels.UPSTREAM_NAMESPACE: SHOP,
        }
        for name in (HUB, *map(cell_of, self._cities)):
            await self._client(name).create(NAMESPACE, a_namespace(self._hub_namespace, identity))
        for city in self._cities:
            await self._add_city(city)
        for name in self._workloads:
            await self._add_workload(name)

    def _client(self, plane: str) -> Client:
        return Client(self._planes[plane].connect(), manager="bench")

    async def _make(
        self, plane: str, resource: Resource, document: JsonObject, status: JsonObject
    ) -> JsonObject:
        document = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
        made = await self._client(plane).create(resource, document)
        return await self._client(plane).update_status(resource, {**made, "status": status})

    async def _add_city(self, city: str) -> None:
        cluster: JsonObject = {
            "metadata": {"name": cell_of(city), "labels": {labels.TOPOLOGY_CITY_CODE: city}},
            "spec": {"syncMode": "Push", "id": cell_of(city), "apiEndpoint": "https://cell.test"},
        }
        await self._make(HUB, CLUSTER, cluster, _status(("Ready", "True", "ClusterReady")))
        selector: JsonObject = {"matchLabels": {labels.TOPOLOGY_CITY_CODE: city}}
        policy: JsonObject = {
            "apiVersion": POLICY.api_version,
            "kind": POLICY.kind,
            "metadata": {"name": f"city-{city.lower()}", "namespace": self._hub_namespace},
            "spec": {
                "resourceSelectors": [
                    {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.kind}
                ],
                "placement": {"clusterAffinity": {"labelSelector": selector}},
            },
        }
        await self._client(HUB).create(POLICY, policy)

    async def _add_workload(self, name: str) -> None:
        template = object_at(a_deployment(SHOP, name, 1), "spec", "template")
        cities: list[JsonValue] = [*self._cities]
        placement: JsonObject = {
            "name": "main",
            "cityCodes": cities,
            "scaleSettings": {"minReplicas": 1, "instanceManagementPolicy": "OrderedReady"},
        }
        document: JsonObject = {
            "metadata": {"name": name, "namespace": SHOP},
            "spec": {"template": template, "placements": [placement]},
        }
        status = _status(("Available", "True", "AvailablePlacementFound"))
        made = await self._make(PROJECT, WORKLOAD, document, {**status, "observedGeneration": 1})
        for city in self._cities:
            is_short = name == self._workloads[0] and city == self._cities[-1]
            await self._add_deployment(name, string_at(made, "metadata", "uid"), city, is_short)

    async def _add_deployment(self, workload: str, uid: str, city: str, is_short: bool) -> None:
        name, cell = f"{workload}-main-{city.lower()}", cell_of(city)
        base = a_deployment(SHOP, name, 1)
        spec: JsonObject = {
            **object_at(base, "spec"),
            "workloadRef": {"name": workload, "uid": uid},
            "placementName": "main",
            "cityCode": city,
        }
        ready = ("Ready", "False", "PendingQuota") if is_short else ("Ready", "True", "Available")
        status: JsonObject = {**_status(ready), "observedGeneration": 1, **_counters(is_short)}
        hub = self._hub_namespace
        inside: JsonObject = {
            "name": name,
            "namespace": SHOP,
            "labels": {labels.WORKLOAD_UID: uid},
            "finalizers": [labels.FEDERATION_FINALIZER],
            "annotations": {labels.FEDERATION_NAMESPACE: hub},
        }
        await self._make(PROJECT, DEPLOYMENT, {"metadata": inside, "spec": spec}, status)
        claimed: JsonObject = {
            labels.PROJECT_GENERATION: "1",
            "propagationpolicy.karmada.io/name": f"city-{city.lower()}",
        }
        copied: JsonObject = {"name": name, "namespace": hub, "annotations": claimed}
        copy = await self._make(HUB, DEPLOYMENT, {"metadata": copied, "spec": spec}, status)
        generation: JsonObject = {labels.KARMADA_TEMPLATE_GENERATION: "1"}
        delivered: JsonObject = {"name": name, "namespace": hub, "annotations": generation}
        acted: JsonObject = {**status, "observedTemplateGeneration": 1}
        await self._make(cell, DEPLOYMENT, {"metadata": delivered, "spec": spec}, acted)
        await self._bind(copy, cell)
        await self._add_instances(copy, uid, cell, is_short)

    async def _bind(self, copy: JsonObject, cell: str) -> None:
        name = string_at(copy, "metadata", "name")
        document: JsonObject = {
            "metadata": {"name": f"{name}-workloaddeployment", "namespace": self._hub_namespace},
            "spec": {
                "resource": {
                    "apiVersion": DEPLOYMENT.api_version,
                    "kind": DEPLOYMENT.kind,
                    "namespace": self._hub_namespace,
                    "name": name,
                    "uid": string_at(copy, "metadata", "uid"),
                },
                "clusters": [{"name": cell}],
            },
        }
        applied: JsonObject = {
            "clusterName": cell,
            "applied": True,
            "status": {"observedTemplateGeneration": 1},
        }
        status: JsonObject = {
            **_status(("Scheduled", "True", "Success")),
            "schedulerObservedGeneration": 1,
            "aggregatedStatus": [applied],
        }
        await self._make(HUB, BINDING, document, status)

    async def _add_instances(self, copy: JsonObject, uid: str, cell: str, is_short: bool) -> None:
        template = object_at(copy, "spec", "template")
        gates: list[JsonValue] = [{"name": labels.QUOTA_GATE}] if is_short else []
        spec: JsonObject = {
            **object_at(template, "spec"),
            "controller": {
                "templateHash": derive_template_hash(template),
                "schedulingGates": gates,
            },
        }
        deployment = string_at(copy, "metadata", "name")
        status = _status(*_conditions(is_short))
        uid_on_cell = ""
        for plane, namespace in (
            (cell, self._hub_namespace),
            (HUB, self._hub_namespace),
            (PROJECT, SHOP),
        ):
            linking: JsonObject = {
                labels.WORKLOAD_UID: uid,
                labels.WORKLOAD_DEPLOYMENT_NAME: deployment,
                labels.INSTANCE_INDEX: "0",
            }
            metadata: JsonObject = {"name": f"{deployment}-0", "namespace": namespace}
            if plane != cell:
                linking[labels.CELL] = cell
                metadata["annotations"] = {labels.INSTANCE_UID: uid_on_cell}
            metadata["labels"] = linking
            made = await self._make(plane, INSTANCE, {"metadata": metadata, "spec": spec}, status)
            uid_on_cell = uid_on_cell or string_at(made, "metadata", "uid")


def _conditions(is_short: bool) -> Iterator[tuple[str, str, str]]:
    if is_short:
        yield "QuotaGranted", "False", "QuotaExceeded"
        yield "Ready", "False", "PendingQuota"
        return
    for kind in ("Programmed", "Available", "Ready"):
        yield kind, "True", "Available"


def _status(*conditions: tuple[str, str, str]) -> JsonObject:
    listed: list[JsonValue] = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": AT,
        }
        for kind, status, reason in conditions
    ]
    return {"conditions": listed}


def _counters(is_short: bool) -> JsonObject:
    ready = 0 if is_short else 1
    counted = ("replicas", "currentReplicas", "desiredReplicas", "updatedReplicas")
    return {**dict.fromkeys(counted, 1), "readyReplicas": ready}


async def _serve(folder: Path, cities: int, workloads: int) -> None:
    world = WhyPlanes(cities, workloads)
    await serve(world, folder, world.paths)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    uvloop.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
