"""The example operator in a simulated world: planes, processes, a user, faults and a history.

Time is virtual, and a run depends only on its seed. The operator is wired as in production; only
the server behind its transport is simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import orjson
from simulated_operators.ground import START, USER, Ground
from simulated_operators.process import SimulatedProcess
from typing_extensions import override

from compute_operator_kit.apply.context import AlwaysLeading, Leadership
from compute_operator_kit.client.flow_control import FlowControl, Limits
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import (
    FieldOwner,
    KubeClient,
    NotServed,
    Page,
    Preconditions,
)
from compute_operator_kit.client.rest import RestConfig, Transport
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import JsonObject, JsonValue, member_object
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_sim_planes.api_server.authz.identity import authenticated
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.faults.injection import CrashableProcess
from compute_sim_planes.faults.plans import Fault
from compute_sim_planes.history import History
from compute_sim_planes.time.clock import LoopReport, VirtualClock, run
from example_operator.mirror.observe import copy_key
from example_operator.notes import DEFINITION, HUB, NOTE
from example_operator.wiring import Operator, Ports

PROJECTS: Final = ("alpha", "beta")
OPERATOR: Final = authenticated("operator", "system:masters")
LIMITS: Final = Limits(qps=200, burst=400)


class Process(SimulatedProcess[Operator]):
    """One process of the example, started with its projects."""

    def __init__(self, world: World, name: str, leadership: Leadership, clock: Clock) -> None:
        super().__init__(world, name, component="example", clock=clock)
        self.operator = Operator(
            Ports(
                connect=self.connect,
                clock=clock,
                random=world.clock.random(name),
                leadership=leadership,
                recorder=self,
                measures=self.measures,
                spans=self.spans,
                limits=LIMITS,
            )
        )

    @override
    def start(self, *projects: str, leads: bool = True) -> None:
        super().start(leads=leads)
        for project in projects:
            self.operator.engage_project(project)


class World(Ground):
    """Planes with the clients of operator and user."""

    def __init__(self, clock: VirtualClock, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(clock, _kind_names, faults)
        self.processes: list[Process] = []
        self._actor: asyncio.Task[None] | None = None

    async def add_plane(self, name: str, *, with_notes: bool = True) -> SimulatedPlane:
        parts = PlaneParts(clock=self.clock, identities=self.clock.identities)
        plane = SimulatedPlane(name, parts)
        self.adopt(plane)
        if with_notes:
            await self.install_notes(name)
        return plane

    async def restore_from_nothing(self, name: str) -> None:
        """Replaces a plane by an empty one with the kind, and with versions that start again."""
        old = self.planes[name]
        await self.add_plane(name)
        await old.close()

    async def install_notes(self, name: str) -> None:
        await apply_manifests(self.planes[name].connect(), [DEFINITION])

    async def serve_notes(self, name: str, *, is_served: bool) -> None:
        """Serves the kind or not; its objects stay stored."""
        patch = [{"op": "replace", "path": "/spec/versions/0/served", "value": is_served}]
        await self._on_definition("PATCH", name, orjson.dumps(patch))

    async def uninstall_notes(self, name: str) -> None:
        """Deletes the definition, and with it the objects, as on a real server."""
        await self._on_definition("DELETE", name, None)

    async def _on_definition(self, method: str, name: str, body: bytes | None) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/notes.example.datumapis.com"
        headers = {"Content-Type": "application/json-patch+json"}
        answer = await self.planes[name].connect().request(method, path, headers, body)
        assert answer.status in {200, 202}, answer.status
        await answer.close()

    def transport(self, name: str, *, life: CrashableProcess) -> Transport:
        """The operator's transport to a plane, with faults and recording."""
        return self.faulty(self.way(name, OPERATOR), name, life)

    def process(
        self,
        name: str = "operator",
        leadership: Leadership | None = None,
        clock: Clock | None = None,
    ) -> Process:
        made = Process(self, name, leadership or AlwaysLeading(), clock or self.clock)
        self.processes.append(made)
        return made

    async def close(self) -> None:
        if self._actor is not None:
            self._actor.cancel()
            await asyncio.wait({self._actor})
        for process in self.processes:
            await process.stop()
        for plane in self.planes.values():
            await plane.close()

    async def act_on_copies(self) -> None:
        """A controller on the hub that sets each copy to Ready."""
        seen: tuple[SimulatedPlane, int] | None = None
        while True:
            hub = self.planes[HUB]
            now = (hub, hub.state.store.revision)
            # Only after a change: listing is most of the cost of a run at rest.
            for copy in await self.notes(HUB) if now != seen else ():
                metadata = member_object(copy, "metadata")
                status = member_object(copy, "status")
                if status.get("observedGeneration") != metadata.get("generation"):
                    key = ObjectKey(HUB, NOTE, "default", str(metadata["name"]))
                    ready = {"phase": "Ready", "observedGeneration": metadata["generation"]}
                    await self.kube(HUB).patch_merge(key, {"status": ready}, subresource="status")
            seen = now
            await self.sleep(0.2)

    def start_acting(self) -> None:
        self._actor = asyncio.create_task(self.act_on_copies(), name="actor")

    # the user --------------------------------------------------------------------------------

    def kube(self, name: str) -> KubeClient:
        """The user's client of a plane: recorded, without faults."""
        transport: Transport = self.recorded(self.way(name, USER), name, "user")
        role = Role.HUB if name == HUB else Role.PROJECT
        lane = FlowControl(PlaneName(name), self.clock)
        return HttpKubeClient(
            RestConfig(PlaneName(name), role, transport, lane), FieldOwner("user", "user")
        )

    async def create(self, key: ObjectKey, text: str = "hello") -> None:
        metadata: dict[str, JsonValue] = {"name": key.name, "namespace": key.namespace}
        body: dict[str, JsonValue] = {
            "apiVersion": NOTE.api_version,
            "kind": NOTE.kind,
            "metadata": metadata,
            "spec": {"text": text},
        }
        await self.kube(key.plane).create(key, body)

    async def edit(self, key: ObjectKey, text: str) -> None:
        await self.kube(key.plane).patch_merge(key, {"spec": {"text": text}})

    async def set_phase(self, key: ObjectKey, phase: str) -> None:
        """Sets the phase of a copy, as a controller on the hub."""
        await self.kube(key.plane).patch_merge(
            key, {"status": {"phase": phase}}, subresource="status"
        )

    async def delete(self, key: ObjectKey) -> None:
        snapshot = await self.kube(key.plane).get(key)
        assert isinstance(snapshot, Snapshot)
        await self.kube(key.plane).delete(key, preconditions=Preconditions(snapshot.metadata.uid))

    async def find(self, key: ObjectKey) -> JsonObject | None:
        snapshot = await self.kube(key.plane).get(key)
        return None if isinstance(snapshot, Absent) else snapshot.decode()

    async def notes(self, plane: str) -> list[JsonObject]:
        page = await self.kube(plane).list(NOTE)
        if isinstance(page, NotServed):
            return []
        assert isinstance(page, Page)
        return [item.snapshot.decode() for item in page.items]

    async def is_mirrored(self, key: ObjectKey) -> bool:
        """Whether the copy has the spec of the Note, and the Note the phase of the copy."""
        note, copy = await self.find(key), await self.find(copy_key(key))
        if note is None or copy is None or note.get("spec") != copy.get("spec"):
            return False
        phase = member_object(note, "status").get("phase")
        return phase == member_object(copy, "status").get("phase", "Pending")

    async def is_gone(self, key: ObjectKey) -> bool:
        return await self.find(key) is None and await self.find(copy_key(key)) is None


def a_note(name: str = "n1", plane: str = "alpha") -> ObjectKey:
    return ObjectKey(PlaneName(plane), NOTE, "default", name)


def _kind_names(group: str, version: str, resource: str) -> str:
    del group, version
    return {"notes": "Note", "leases": "Lease", "events": "Event"}.get(resource, "")


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run."""

    history: History
    report: LoopReport
    world: World


def play(
    scenario: Callable[[World], Awaitable[None]],
    *faults: Fault,
    seed: int = 1,
    projects: tuple[str, ...] = PROJECTS,
) -> Run:
    """Runs a scenario on a hub and projects, and stops its processes at the end."""
    worlds: list[World] = []
    report = LoopReport()

    async def main(clock: VirtualClock) -> None:
        world = World(clock, faults)
        worlds.append(world)
        for name in (HUB, *projects):
            await world.add_plane(name)
        with world.heard("compute_operator_kit"):
            await scenario(world)
            await world.close()

    run(main, seed=seed, start=START, report=report)
    return Run(worlds[0].history, report, worlds[0])
