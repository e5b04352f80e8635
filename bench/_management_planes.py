"""The planes that `bench.management` measures the operator on, and whoever else writes there.

Milo's root, its projects and the hub are simulated behind one TLS server in a process of their own,
so that the operator's process is the operator's alone. Users, cells and Karmada's aggregation are
played by this process, in-process, at the word of the benchmark: one JSON command per line of
standard input, one JSON answer per line of output. What the operator does is timed here, by the
commit of what it wrote, so that nobody polls while it is measured.
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
from compute_sim_planes.api_server.http_server import PrefixRoutes
from compute_sim_planes.api_server.identity import ADMIN, Tokens
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.api_server.storage.records import Change, ChangeType, Stored
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.api_server.transport import Answer, Transport
from compute_sim_planes.client import Client
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject, JsonValue

CONTROL_PLANE: Final = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/{}/control-plane"
DEPLOYMENTS: Final = GroupResource("compute.datumapis.com", "workloaddeployments")
INSTANCES: Final = GroupResource("compute.datumapis.com", "instances")
PROBE_TIMEOUT: Final = 30.0


class Counting:
    """A plane's way in for the operator; mutating requests are written down."""

    def __init__(self, plane: Plane, written: Counter[str]) -> None:
        self._plane = plane
        self._written = written

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        if method != "GET":
            self._written[family_in(method, target.partition("?")[0])] += 1
        return await self._plane.request(method, target, headers, body)


def family_in(method: str, path: str) -> str:
    """Which Workload a request is about; of a create, whose name is in its body, what it makes."""
    resource, *name = path.rpartition("/namespaces/")[2].split("/")[1:] or [path]
    return objects.family_of(name[0]) if name else f"{method} {resource}"


class World:
    """The planes, and the people on them."""

    def __init__(self, projects: int) -> None:
        self.token = secrets.token_urlsafe(16)
        self.written: Counter[str] = Counter()
        tokens, revisions = Tokens({self.token: ADMIN}), Revisions()
        self.root = Plane("root", PlaneParts(tokens=tokens, revisions=revisions))
        self.hub = Plane("hub", PlaneParts(tokens=tokens))
        self.names = [f"project-{number}" for number in range(projects)]
        parts = PlaneParts(tokens=tokens, revisions=revisions, definitions=self.root.definitions)
        self.projects = {name: Plane(name, parts) for name in self.names}
        self._noise: asyncio.Task[int] | None = None
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._wanted: dict[str, objects.Wanted] = {}
        self.hub.state.store.listen(self._see_hub)

    def routes(self) -> PrefixRoutes:
        found = PrefixRoutes()
        found.add("", Counting(self.root, self.written))
        found.add("/hub", Counting(self.hub, self.written))
        for name, plane in self.projects.items():
            found.add(CONTROL_PLANE.format(name), Counting(plane, self.written))
        return found

    async def fill(self) -> None:
        """Kinds, projects, Locations, networks and one cell."""
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

    # what a benchmark asks for -------------------------------------------------------------------

    async def create(self, prefix: str, each: int) -> JsonValue:
        """So many Workloads in every project, one project after the other in turn."""
        for number in range(each):
            for index, name in enumerate(self.names):
                await self.add_workload(name, f"{prefix}-{index}-{number}")
        return each * len(self.names)

    async def add_workload(self, project: str, name: str) -> None:
        await self.client(self.at(project)).create(WORKLOAD, objects.a_workload(name))
        await asyncio.sleep(0)  # in-process requests never wait: let the server answer others too

    async def count(self) -> JsonValue:
        """How much of the operator's work is there."""
        return {
            "copies": len(self.hub.state.store.bucket(DEPLOYMENTS)),
            "projections": sum(
                len(plane.state.store.bucket(INSTANCES)) for plane in self.projects.values()
            ),
            "reported": sum(1 for found in self._workloads() if objects.is_available(found)),
        }

    def _workloads(self) -> Iterator[JsonObject]:
        for plane in self.projects.values():
            bucket = plane.state.store.bucket(GroupResource(WORKLOAD.group, WORKLOAD.plural))
            yield from (stored.decode() for stored in bucket.listed())

    async def run_cells(self) -> JsonValue:
        """Each copy is reported Ready and has one Instance on the hub, Ready too."""
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
        """Mutating requests of the operator since they were last asked for."""
        found: JsonObject = {**self.written}
        self.written.clear()
        return found

    # a restart -----------------------------------------------------------------------------------

    async def disturb(self, every: int) -> JsonValue:
        """Every so-manyth deployment changes while nobody looks; gives what a repair may touch.

        In turn: a user edits the Workload, somebody spoils the copy on the hub, a cell says
        something new about the Instance.
        """
        copies = list(self.hub.state.store.bucket(DEPLOYMENTS).listed())[::every]
        for number, stored in enumerate(copies):
            await self._disturb(number % 3, stored)
        return [objects.family_of(stored.name) for stored in copies]

    async def _disturb(self, way: int, stored: Stored) -> None:
        wanted = self._wanted[stored.name] = objects.Wanted.of(way, stored.decode())
        if way == 0:
            client = self.client(self.at(wanted.project))
            await client.patch(WORKLOAD, wanted.workload, objects.EDIT, namespace="default")
        elif way == 1:
            await self.hub_client().patch(
                DEPLOYMENT, stored.name, objects.DRIFT, namespace=stored.namespace
            )
        else:
            client = self.hub_client()
            found = await client.get(INSTANCE, f"{stored.name}-0", stored.namespace)
            instance: JsonObject = {**(found or {}), "status": objects.a_new_status()}
            await client.update_status(INSTANCE, instance)

    async def unfixed(self) -> JsonValue:
        """How many of the disturbed are not yet as they should be."""
        for name in [name for name, wanted in self._wanted.items() if self._is_fixed(wanted)]:
            del self._wanted[name]
        return len(self._wanted)

    def _is_fixed(self, wanted: objects.Wanted) -> bool:
        if wanted.way == 2:
            store = self.projects[wanted.project].state.store
            found = store.get(INSTANCES, "default", f"{wanted.name}-0")
        else:
            found = self.hub.state.store.get(DEPLOYMENTS, wanted.namespace, wanted.name)
        return found is not None and wanted.is_met_by(found.decode())

    # noise ---------------------------------------------------------------------------------------

    async def probe(self, project: str, prefix: str, times: int, every: float) -> JsonValue:
        """Seconds from a new Workload of a project to its copy on the hub, one by one."""
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
        """Edits Workloads of one project, in turn, so many times a second, until `be_quiet`."""
        index = self.names.index(project)
        names = [f"{prefix}-{index}-{number}" for number in range(each)]
        self._noise = asyncio.create_task(self._edit(project, names, 1 / rate))
        return None

    async def _edit(self, project: str, names: list[str], pause: float) -> int:
        client = self.client(self.at(project))
        loop = asyncio.get_running_loop()
        began, edits = loop.time(), 0
        # Ended from outside, which is how the count is asked for.
        with suppress(asyncio.CancelledError):
            while True:
                name = names[edits % len(names)]
                edits += 1
                await client.patch(WORKLOAD, name, objects.an_edit(edits), namespace="default")
                await asyncio.sleep(max(0.0, began + edits * pause - loop.time()))
        return edits

    async def be_quiet(self) -> JsonValue:
        """Ends the noise; how many edits there were."""
        if self._noise is None:
            return 0
        self._noise.cancel()
        return await self._noise

    async def close(self) -> None:
        for plane in (self.root, self.hub, *self.projects.values()):
            await plane.close()


if __name__ == "__main__":
    paths = {"root": "", "hub": "/hub"}
    uvloop.run(serve(World(int(sys.argv[2])), Path(sys.argv[1]), paths))
