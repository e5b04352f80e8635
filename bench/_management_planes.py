"""Simulated planes for `bench.management`: Milo's root, its projects and the hub.

They run behind one TLS server in their own process, so that the operator's process does only its
own work. This process also writes as users, cells and Karmada, controlled by one JSON command per
line. Times are taken here from the commits of the operator's writes; polling would disturb the
measurement.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson
import uvloop

from bench import _management_objects as objects
from bench._commanded import serve
from bench._management_objects import DEPLOYMENT, INSTANCE, PROJECT, WORKLOAD
from compute_api_types.crd import derive_crds
from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.http.server import PrefixRoutes
from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.storage.records import Change, ChangeType, StoredObject
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.client.rest import Client
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue

CONTROL_PLANE: Final = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/{}/control-plane"
DEPLOYMENTS: Final = GroupResource("compute.datumapis.com", "workloaddeployments")
INSTANCES: Final = GroupResource("compute.datumapis.com", "instances")
PROBE_TIMEOUT: Final = 30.0


class Counting:
    """Wraps a plane for the operator and counts mutating requests."""

    def __init__(self, plane: Plane, written: Counter[str]) -> None:
        self._plane = plane
        self._written = written

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method != "GET":
            self._written[family_in(method, target.partition("?")[0])] += 1
        return await self._plane.request(method, target, headers, body)


def family_in(method: str, path: str) -> str:
    """The Workload that a request is about; for a create, which has no name in its path, the
    kind.
    """
    resource, *name = path.rpartition("/namespaces/")[2].split("/")[1:] or [path]
    return objects.family_of(name[0]) if name else f"{method} {resource}"


class ManagementPlanes:
    """The planes and users."""

    def __init__(self, projects: int) -> None:
        self.token = secrets.token_urlsafe(16)
        self.written: Counter[str] = Counter()
        tokens, revisions = Tokens({self.token: ADMIN}), Revisions()
        self.root = Plane("root", PlaneParts(tokens=tokens, revisions=revisions))
        self.hub = Plane("hub", PlaneParts(tokens=tokens))
        self.names = [f"project-{number}" for number in range(projects)]
        parts = PlaneParts(tokens=tokens, revisions=revisions, definitions=self.root.definitions)
        # The last one has no Project, so the operator never watches it.
        self.projects = {name: Plane(name, parts) for name in (*self.names, objects.UNSERVED)}
        self._noise: asyncio.Task[int] | None = None
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._wanted: dict[str, objects.ExpectedRepair] = {}
        self.hub.state.store.listen(self._see_hub)

    def routes(self) -> PrefixRoutes:
        routes = PrefixRoutes()
        routes.add("", Counting(self.root, self.written))
        routes.add("/hub", Counting(self.hub, self.written))
        for name, plane in self.projects.items():
            routes.add(CONTROL_PLANE.format(name), Counting(plane, self.written))
        return routes

    async def fill(self) -> None:
        """Creates CRDs, projects, Locations, networks and one cell."""
        ours: list[JsonObject] = orjson.loads(orjson.dumps(derive_crds()))
        await apply_manifests(
            self.root.connect(), [*ours, *load_crds("milo"), *load_crds("networking")]
        )
        await apply_manifests(self.hub.connect(), [*ours, *load_crds("karmada")])
        await apply_manifests(self.root.connect(), [objects.a_namespace("compute-system")])
        await apply_manifests(self.hub.connect(), [objects.a_cluster()])
        for name in self.names:
            await apply_manifests(self.at(name), [objects.a_location(), objects.a_network()])
            made = await self.client(self.root.connect()).create(PROJECT, objects.a_project(name))
            made["status"] = {"conditions": [objects.a_condition("Ready", "Ready")]}
            await self.client(self.root.connect()).update_status(PROJECT, made)

    def at(self, project: str) -> Transport:
        return self.projects[project].connect()

    @staticmethod
    def client(transport: Transport) -> Client:
        return Client(transport, manager="people")

    def hub_client(self) -> Client:
        return self.client(self.hub.connect())

    # commands of the benchmark -------------------------------------------------------------------

    async def create(self, prefix: str, each: int) -> JsonValue:
        """Creates `each` Workloads in every project, in turn."""
        for number in range(each):
            for index, name in enumerate(self.names):
                await self.add_workload(name, f"{prefix}-{index}-{number}")
        return each * len(self.names)

    async def add_workload(self, project: str, name: str) -> None:
        await self.client(self.at(project)).create(WORKLOAD, objects.a_workload(name))
        # In-process requests do not yield: let the server answer other requests.
        await asyncio.sleep(0)

    async def count(self) -> JsonValue:
        """Counts of the objects that show the operator's progress."""
        return {
            "copies": len(self.hub.state.store.bucket(DEPLOYMENTS)),
            "projections": sum(
                len(plane.state.store.bucket(INSTANCES)) for plane in self.projects.values()
            ),
            "reported": sum(1 for workload in self._workloads() if objects.is_available(workload)),
        }

    async def streams(self) -> JsonValue:
        """Open watches of the operator on all project planes."""
        return sum(len(plane.watched_kinds()) for plane in self.projects.values())

    def _workloads(self) -> Iterator[JsonObject]:
        for plane in self.projects.values():
            bucket = plane.state.store.bucket(GroupResource(WORKLOAD.group, WORKLOAD.plural))
            yield from (stored.decode() for stored in bucket.listed())

    async def run_cells(self) -> JsonValue:
        """Reports each copy Ready, with one Ready Instance on the hub."""
        hub = self.hub_client()
        copies = list(self.hub.state.store.bucket(DEPLOYMENTS).listed())
        for stored in copies:
            copy = stored.decode()
            copy["status"] = objects.a_report(copy)
            await hub.update_status(DEPLOYMENT, copy)
            made = await hub.create(INSTANCE, objects.an_instance(copy))
            made["status"] = objects.a_ready_status()
            await hub.update_status(INSTANCE, made)
            await asyncio.sleep(0)  # as in `add_workload`
        return len(copies)

    async def writes(self) -> JsonValue:
        """Mutating requests of the operator since the last call."""
        written: JsonObject = {**self.written}
        self.written.clear()
        return written

    # a restart -----------------------------------------------------------------------------------

    async def disturb(self, every: int) -> JsonValue:
        """Changes one in `every` deployments while the operator is down; returns what it may
        repair.

        In turn: the Workload is edited, the copy on the hub is changed, the status of the Instance
        changes.
        """
        copies = list(self.hub.state.store.bucket(DEPLOYMENTS).listed())[::every]
        for number, stored in enumerate(copies):
            await self._disturb(number % 3, stored)
        return [objects.family_of(stored.name) for stored in copies]

    async def _disturb(self, change: int, stored: StoredObject) -> None:
        expected = self._wanted[stored.name] = objects.ExpectedRepair.of(change, stored.decode())
        if change == 0:
            client = self.client(self.at(expected.project))
            await client.patch(WORKLOAD, expected.workload, objects.EDIT, namespace="default")
        elif change == 1:
            await self.hub_client().patch(
                DEPLOYMENT, stored.name, objects.DRIFT, namespace=stored.namespace
            )
        else:
            client = self.hub_client()
            existing = await client.get(INSTANCE, f"{stored.name}-0", stored.namespace)
            instance: JsonObject = {**(existing or {}), "status": objects.a_new_status()}
            await client.update_status(INSTANCE, instance)

    async def unfixed(self) -> JsonValue:
        """How many of the changed deployments are not repaired yet."""
        for name in [name for name, expected in self._wanted.items() if self._is_fixed(expected)]:
            del self._wanted[name]
        return len(self._wanted)

    def _is_fixed(self, expected: objects.ExpectedRepair) -> bool:
        if expected.change == 2:
            store = self.projects[expected.project].state.store
            stored = store.get(INSTANCES, "default", f"{expected.name}-0")
        else:
            stored = self.hub.state.store.get(DEPLOYMENTS, expected.namespace, expected.name)
        return stored is not None and expected.is_met_by(stored.decode())

    # noise ---------------------------------------------------------------------------------------

    async def add_heavy_workloads(self, project: str, prefix: str, each: int) -> JsonValue:
        """Creates Workloads in one project that are as large as admission accepts."""
        index = [*self.projects].index(project)
        for number in range(each):
            workload = objects.a_heavy_workload(f"{prefix}-{index}-{number}")
            await self.client(self.at(project)).create(WORKLOAD, workload)
            await asyncio.sleep(0)  # as in `add_workload`
        return each

    async def probe(self, project: str, prefix: str, times: int, every: float) -> JsonValue:
        """Seconds from a new Workload to its copy on the hub, one at a time."""
        taken: list[JsonValue] = []
        for number in range(times):
            name = f"{prefix}-{number}"
            arrived = asyncio.get_running_loop().create_future()
            self._waiting[f"{name}-us-dfw"] = arrived
            began = time.monotonic()
            await self.add_workload(project, name)
            taken.append(await asyncio.wait_for(arrived, PROBE_TIMEOUT) - began)
            await asyncio.sleep(every)
        return taken

    def _see_hub(self, change: Change) -> None:
        if change.type is ChangeType.ADDED and change.resource == DEPLOYMENTS:
            waiting = self._waiting.pop(change.after.name, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(time.monotonic())

    async def make_noise(self, project: str, prefix: str, each: int, rate: float) -> JsonValue:
        """Edits Workloads of one project in turn at this rate until `be_quiet`."""
        index = [*self.projects].index(project)
        names = [f"{prefix}-{index}-{number}" for number in range(each)]
        self._noise = asyncio.create_task(self._edit(project, names, 1 / rate))
        return None

    async def _edit(self, project: str, names: list[str], pause: float) -> int:
        client = self.client(self.at(project))
        loop = asyncio.get_running_loop()
        began, edits = loop.time(), 0
        # Cancelled by `be_quiet`, which then reads the count.
        with suppress(asyncio.CancelledError):
            while True:
                name = names[edits % len(names)]
                edits += 1
                await client.patch(WORKLOAD, name, objects.an_edit(edits), namespace="default")
                await asyncio.sleep(max(0.0, began + edits * pause - loop.time()))
        return edits

    async def be_quiet(self) -> JsonValue:
        """Stops the edits; returns their number."""
        if self._noise is None:
            return 0
        self._noise.cancel()
        return await self._noise

    async def close(self) -> None:
        for plane in (self.root, self.hub, *self.projects.values()):
            await plane.close()


if __name__ == "__main__":
    paths = {"root": "", "hub": "/hub"}
    uvloop.run(serve(ManagementPlanes(int(sys.argv[2])), Path(sys.argv[1]), paths))
