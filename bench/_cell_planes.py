"""Simulated planes for `bench.cell`: the cell, the hub, and Milo with its projects.

They run behind one TLS server in their own process, together with provider, NSO and the writes of
management and Karmada, so that the operator's process does only its own work. Times are taken here
from the commits of the operator's writes; polling would disturb the measurement.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import orjson
import uvloop

from bench._commanded import serve
from compute_api_types import labels, names
from compute_api_types.crd import derive_crds
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import PrefixRoutes
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.storage.records import Change
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from compute_sim_planes.milo.kinds import GRANTS, REGISTRATIONS
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.milo.testing import a_grant, a_registration
from compute_sim_planes.networking import NetworkServices, NsoOptions
from compute_sim_planes.pod_life import ProviderOptions
from compute_sim_planes.provider import Provider
from compute_sim_planes.time.sources import SeededIdentities, SystemClock

GROUP: Final = "compute.datumapis.com"
NETWORKING: Final = "networking.datumapis.com/v1alpha"
DEPLOYMENT: Final = Resource(GROUP, "v1alpha", "workloaddeployments", "WorkloadDeployment")
NAMESPACE: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
INSTANCES: Final = GroupResource(GROUP, "instances")
DEPLOYMENTS: Final = GroupResource(GROUP, "workloaddeployments")
CLAIMS: Final = GroupResource("quota.miloapis.com", "resourceclaims")
CITY: Final = "DFW"
PLENTY: Final = {
    labels.INSTANCES_RESOURCE: 100_000,
    labels.VCPUS_RESOURCE: 100_000_000,
    labels.MEMORY_RESOURCE: 1_000_000_000,
}
# Typical size: three containers with some environment.
ENVIRONMENT: Final = 12
AT_ONCE: Final = timedelta()
PROBE_TIMEOUT: Final = 30.0


class CellPlanes:
    """The planes, external controllers and users."""

    def __init__(self, projects: int) -> None:
        self.token = secrets.token_urlsafe(16)
        tokens, clock = Tokens({self.token: ADMIN}), SystemClock()
        identities = SeededIdentities(random.SystemRandom())
        self.cell, self.hub = (
            Plane(name, PlaneParts(tokens=tokens, identities=identities))
            for name in ("cell", "hub")
        )
        self.milo = Milo(MiloParts(clock, identities, tokens=tokens))
        self.projects = [f"project-{number}" for number in range(projects)]
        self.namespaces: list[str] = []  # of cell and hub, one for each project
        self._provider = Provider(
            Client(self.cell.connect(), manager="provider"),
            clock,
            ProviderOptions(AT_ONCE, AT_ONCE, AT_ONCE),
        )
        self._nso = NetworkServices(
            Client(self.cell.connect(), manager="nso"), clock, NsoOptions(context_delay=AT_ONCE)
        )
        self._external: list[asyncio.Task[None]] = []
        self._granted: dict[str, float] = {}
        self._opened: dict[str, float] = {}
        self._changed = asyncio.Event()
        self.cell.state.store.listen(self._see_cell)

    def routes(self) -> PrefixRoutes:
        routes = PrefixRoutes()
        routes.add("", self.milo.router)
        routes.add("/cell", self.cell)
        routes.add("/hub", self.hub)
        return routes

    async def fill(self) -> None:
        """Creates CRDs, a Location, and projects with a Namespace, a grant and a network each."""
        ours: list[JsonObject] = orjson.loads(orjson.dumps(derive_crds()))
        await apply_manifests(self.cell.connect(), [*ours, *load_crds("networking"), a_location()])
        await apply_manifests(self.cell.connect(), [a_namespace("compute-system")])
        await apply_manifests(self.hub.connect(), ours)
        await self.milo.start()
        for kind in PLENTY:
            await self.milo.client().create(REGISTRATIONS, a_registration(kind))
        for name in self.projects:
            await self._add_project(name)
        self._external = [
            asyncio.create_task(work) for work in (self._provider.run(), self._nso.run())
        ]

    async def _add_project(self, name: str) -> None:
        await self.milo.add_project(name)
        inside = self.milo.planes.client(name)
        await patiently(inside, GRANTS, a_grant(name, PLENTY, "plenty"))
        made = await inside.create(NAMESPACE, a_namespace("shop"))
        namespace = names.derive_hub_namespace(string_at(made, "metadata", "uid"))
        self.namespaces.append(namespace)
        identity = {
            "meta.datumapis.com/upstream-cluster-name": f"cluster-{name}",
            "meta.datumapis.com/upstream-namespace": "shop",
        }
        document = a_namespace(namespace, identity)
        await apply_manifests(self.hub.connect(), [document])
        await apply_manifests(self.cell.connect(), [document, a_network(namespace)])
        self.milo.planes.at(name).state.store.listen(self._see_claim)

    # commands of the benchmark -------------------------------------------------------------------

    async def deliver(self, prefix: str, deployments: int, replicas: int) -> JsonValue:
        """Creates deployments on the hub and, as Karmada does, in the cell."""
        for number in range(deployments):
            namespace = self.namespaces[number % len(self.namespaces)]
            await self._deliver_one(namespace, f"{prefix}-{number}", replicas)
            # In-process requests do not yield: let the server answer other requests.
            await asyncio.sleep(0)
        return deployments

    async def _deliver_one(self, namespace: str, name: str, replicas: int) -> None:
        hub, cell = (Client(plane.connect(), manager="people") for plane in (self.hub, self.cell))
        root = await hub.create(DEPLOYMENT, a_deployment(namespace, name, replicas))
        annotations: JsonObject = {
            "resourcetemplate.karmada.io/uid": string_at(root, "metadata", "uid"),
            "resourcetemplate.karmada.io/generation": "1",
        }
        document = a_deployment(namespace, name, replicas)
        object_at(document, "metadata")["annotations"] = annotations
        await cell.create(DEPLOYMENT, document)

    async def count(self) -> JsonValue:
        """Counts of the objects that show the operator's progress."""
        return {
            "ready": sum(
                1 for document in self._objects(self.cell, INSTANCES) if is_ready(document)
            ),
            "converged": sum(
                1 for document in self._objects(self.cell, DEPLOYMENTS) if is_ready(document)
            ),
            "copied": sum(
                1 for document in self._objects(self.hub, INSTANCES) if is_ready(document)
            ),
        }

    @staticmethod
    def _objects(plane: Plane, resource: GroupResource) -> Iterator[JsonObject]:
        for stored in plane.state.store.bucket(resource).listed():
            yield stored.decode()

    async def probe(self, prefix: str, times: int, every: float) -> JsonValue:
        """Seconds from the grant of a claim to its Instance without gate, one deployment at a
        time.
        """
        taken: list[JsonValue] = []
        for number in range(times):
            name = f"{prefix}-{number}"
            await self._deliver_one(self.namespaces[number % len(self.namespaces)], name, 1)
            async with asyncio.timeout(PROBE_TIMEOUT):
                while f"{name}-0" not in self._opened:
                    self._changed.clear()
                    await self._changed.wait()
            taken.append(self._opened[f"{name}-0"] - self._granted[f"{name}-0"])
            await asyncio.sleep(every)
        return taken

    async def gaps(self, prefix: str) -> JsonValue:
        """The same seconds for everything that was delivered under a prefix."""
        return [
            opened - self._granted[name]
            for name, opened in self._opened.items()
            if name.startswith(f"{prefix}-")
        ]

    def _see_claim(self, change: Change) -> None:
        if change.resource != CLAIMS:
            return
        name = change.after.name.removeprefix("instance-")
        if name not in self._granted and is_condition_true(change.after.decode(), "Granted"):
            self._granted[name] = time.monotonic()

    def _see_cell(self, change: Change) -> None:
        if change.resource != INSTANCES:
            return
        name = change.after.name
        if name not in self._granted or name in self._opened:
            return
        gates = objects_at(change.after.decode(), "spec", "controller", "schedulingGates")
        if all(gate.get("name") != "Quota" for gate in gates):
            self._opened[name] = time.monotonic()
            self._changed.set()

    async def close(self) -> None:
        for task in self._external:
            task.cancel()
        await asyncio.wait(self._external)
        await self.milo.close()
        for plane in (self.cell, self.hub):
            await plane.close()


# --- documents ------------------------------------------------------------------------------------


def a_namespace(name: str, identity: dict[str, str] | None = None) -> JsonObject:
    metadata: JsonObject = {"name": name, "labels": {**(identity or {})}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def a_location() -> JsonObject:
    spec: JsonObject = {
        "locationClassName": "datum-managed",
        "topology": {labels.TOPOLOGY_CITY_CODE: CITY},
        "provider": {"gcp": {"projectId": "p", "region": "r", "zone": "z"}},
    }
    metadata: JsonObject = {"name": "us-dallas-1"}
    return {"apiVersion": NETWORKING, "kind": "Location", "metadata": metadata, "spec": spec}


def a_network(namespace: str) -> JsonObject:
    metadata: JsonObject = {"name": "default", "namespace": namespace}
    spec: JsonObject = {"ipam": {"mode": "Auto"}}
    return {"apiVersion": NETWORKING, "kind": "Network", "metadata": metadata, "spec": spec}


def a_deployment(namespace: str, name: str, replicas: int) -> JsonObject:
    env: list[JsonValue] = [
        {"name": f"SETTING_{number}", "value": "x" * 32} for number in range(ENVIRONMENT)
    ]
    containers: list[JsonValue] = [
        {"name": one, "image": f"registry.example/{one}:1.27.3", "env": env}
        for one in ("web", "worker", "sidecar")
    ]
    template: JsonObject = {
        "spec": {
            "runtime": {
                "resources": {"instanceType": "datumcloud/d1-standard-2"},
                "sandbox": {"containers": containers},
            },
            "networkInterfaces": [{"network": {"name": "default"}}],
        }
    }
    scale: JsonObject = {"minReplicas": replicas, "instanceManagementPolicy": "OrderedReady"}
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "workloadRef": {"name": "shop", "uid": "5b7f3f0e-0000-4000-8000-00000000000a"},
            "placementName": "us",
            "cityCode": CITY,
            "template": template,
            "scaleSettings": scale,
        },
    }


def is_ready(document: JsonObject) -> bool:
    return is_condition_true(document, "Ready")


async def patiently(client: Client, resource: Resource, document: JsonObject) -> None:
    """Repeats a create until the plane accepts it: registrations become active with a delay."""
    async with asyncio.timeout(PROBE_TIMEOUT):
        while True:
            try:
                await client.create(resource, document)
            except ApiError:
                await asyncio.sleep(0.05)
            else:
                return


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    paths = {"cell": "/cell", "hub": "/hub", "quota": ""}
    uvloop.run(serve(CellPlanes(int(sys.argv[2])), Path(sys.argv[1]), paths))
