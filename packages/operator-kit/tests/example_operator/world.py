"""The example in a simulated world: planes, the operator, a user, faults, and a record of
everything.

Time is virtual and a run is a function of its seed. The operator is wired as in production, down to
the bytes of its requests; only what is below its transport is simulated.
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

from compute_operator_kit.apply.desk import AlwaysLeading, Leadership
from compute_operator_kit.clock import Clock
from compute_operator_kit.exchange import Connection, Transport
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, NotServed, Page, Preconditions, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane, Limits
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.wire import JsonObject, JsonValue, member_object
from compute_sim_planes.api_server.identity import authenticated
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.clock import LoopReport, VirtualClock, run
from compute_sim_planes.fault_plans import Fault
from compute_sim_planes.faults import OperatorLife
from compute_sim_planes.history import History
from example_operator.mirror.observe import copy_key
from example_operator.notes import DEFINITION, HUB, NOTE
from example_operator.wiring import Operator, Ports

PROJECTS: Final = ("alpha", "beta")
OPERATOR: Final = authenticated("operator", "system:masters")
LIMITS: Final = Limits(qps=200, burst=400)


class Process(SimulatedProcess[Operator]):
    """One process of the example, which is told its projects when it starts."""

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
    """Planes, and everybody who talks to them."""

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
        """Puts an empty plane with the kind alone, and versions that begin anew, in a
        plane's place.
        """
        old = self.planes[name]
        await self.add_plane(name)
        await old.close()

    async def install_notes(self, name: str) -> None:
        await apply_manifests(self.planes[name].connect(), [DEFINITION])

    async def serve_notes(self, name: str, *, is_served: bool) -> None:
        """Objects stay stored; the API server just does not show the kind."""
        patch = [{"op": "replace", "path": "/spec/versions/0/served", "value": is_served}]
        await self._on_definition("PATCH", name, orjson.dumps(patch))

    async def uninstall_notes(self, name: str) -> None:
        """As on a real server, the objects go with their definition."""
        await self._on_definition("DELETE", name, None)

    async def _on_definition(self, method: str, name: str, body: bytes | None) -> None:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/notes.example.datumapis.com"
        headers = {"Content-Type": "application/json-patch+json"}
        answer = await self.planes[name].connect().request(method, path, headers, body)
        assert answer.status in {200, 202}, answer.status
        await answer.close()

    def transport(self, name: str, *, life: OperatorLife) -> Transport:
        """The operator's way to a plane, with faults in it and everything written down."""
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
        """Stands for whatever acts on copies at the hub: it says Ready about every
        version it sees.
        """
        seen: tuple[SimulatedPlane, int] | None = None
        while True:
            hub = self.planes[HUB]
            now = (hub, hub.state.store.revision)
            # Looking is most of what a quiet hour costs: only after something happened.
            for copy in await self.notes(HUB) if now != seen else ():
                metadata = member_object(copy, "metadata")
                status = member_object(copy, "status")
                if status.get("observedGeneration") != metadata.get("generation"):
                    key = ObjectKey(HUB, NOTE, "default", str(metadata["name"]))
                    told = {"phase": "Ready", "observedGeneration": metadata["generation"]}
                    await self.kube(HUB).patch_merge(key, {"status": told}, subresource="status")
            seen = now
            await self.sleep(0.2)

    def start_acting(self) -> None:
        self._actor = asyncio.create_task(self.act_on_copies(), name="actor")

    # the user --------------------------------------------------------------------------------

    def kube(self, name: str) -> Kube:
        """The user's way to a plane: no faults, everything written down."""
        transport: Transport = self.recorded(self.way(name, USER), name, "user")
        role = Role.HUB if name == HUB else Role.PROJECT
        lane = Lane(PlaneName(name), self.clock)
        return KubeHttp(Connection(PlaneName(name), role, transport, lane), Writer("user", "user"))

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
        """What acts on copies at the hub."""
        await self.kube(key.plane).patch_merge(
            key, {"status": {"phase": phase}}, subresource="status"
        )

    async def delete(self, key: ObjectKey) -> None:
        found = await self.kube(key.plane).get(key)
        assert isinstance(found, Snapshot)
        await self.kube(key.plane).delete(key, preconditions=Preconditions(found.metadata.uid))

    async def find(self, key: ObjectKey) -> JsonObject | None:
        found = await self.kube(key.plane).get(key)
        return None if isinstance(found, Absent) else found.decode()

    async def notes(self, plane: str) -> list[JsonObject]:
        page = await self.kube(plane).list(NOTE)
        if isinstance(page, NotServed):
            return []
        assert isinstance(page, Page)
        return [item.snapshot.decode() for item in page.items]

    async def is_mirrored(self, key: ObjectKey) -> bool:
        """The copy says what the Note says, and the Note says what the copy's status says."""
        note, copy = await self.find(key), await self.find(copy_key(key))
        if note is None or copy is None or note.get("spec") != copy.get("spec"):
            return False
        told = member_object(note, "status").get("phase")
        return told == member_object(copy, "status").get("phase", "Pending")

    async def is_gone(self, key: ObjectKey) -> bool:
        return await self.find(key) is None and await self.find(copy_key(key)) is None


def a_note(name: str = "n1", plane: str = "alpha") -> ObjectKey:
    return ObjectKey(PlaneName(plane), NOTE, "default", name)


def _kind_names(group: str, version: str, resource: str) -> str:
    del group, version
    return {"notes": "Note", "leases": "Lease", "events": "Event"}.get(resource, "")


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind."""

    history: History
    report: LoopReport
    world: World


def play(
    scenario: Callable[[World], Awaitable[None]],
    *faults: Fault,
    seed: int = 1,
    projects: tuple[str, ...] = PROJECTS,
) -> Run:
    """Plays a scenario on a hub and projects; the processes it made are stopped at its end."""
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
