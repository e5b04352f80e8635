"""The management operator in a simulated world: planes, processes, people, faults, and a record.

Time is virtual and a run is a function of its seed. The operator is wired by `wiring.py`, down to
the bytes of its requests; only what is below its transports is simulated. Planes are called as the
operator calls them (`plane_names`), projects by their name. Everything a scenario does goes through
the user's own client and is written down as such.

    def test_something() -> None:
        async def scenario(world: World) -> None:
            await world.add_project("acme", cities=("DFW",))
            world.process().start()
            await world.create("acme", a_workload_document("web"))
            await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "web-us-dfw"))

        done = play(scenario)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import orjson
from typing_extensions import override

from compute_management_operator.admission.review import Answer as Verdict
from compute_management_operator.front_door import PATH
from compute_management_operator.kinds import DEPLOYMENT, PROJECT
from compute_management_operator.plane_names import HOME, HUB, ROOT, SINGLE
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import COMPONENT, Operator, Places, Ports
from compute_operator_kit.apply.desk import AlwaysLeading, Leadership
from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import validate_settings
from compute_operator_kit.errors import ThrottledError
from compute_operator_kit.events import Events, Reporter
from compute_operator_kit.events import Recorder as EventWriter
from compute_operator_kit.exchange import Answer, Connection, Transport
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import AlreadyExists, Kube, Page, Preconditions, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.metrics_catalogue import EVERY_METRIC, MetricType
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.planes import Plane
from compute_operator_kit.reconcile import PassSpan
from compute_operator_kit.settings import API_VERSION
from compute_operator_kit.testing import FakeMeasures, FakeRecorder
from compute_operator_kit.wire import (
    Json,
    JsonMapping,
    JsonObject,
    decode_object,
    member_int,
    member_list,
    member_object,
)
from compute_sim_planes.api_server.identity import User, authenticated
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.api_server.webhook_callers import RegisteredWebhooks
from compute_sim_planes.clock import LoopReport, VirtualClock, run
from compute_sim_planes.fault_links import Link
from compute_sim_planes.fault_plans import Fault
from compute_sim_planes.faults import FaultyTransport, Injector, OperatorLife
from compute_sim_planes.history import History, RecordingTransport, Request
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from management_builders.definitions import definitions, kind_names, neighbours
from management_builders.documents import (
    a_condition_document,
    a_deployment_status,
    a_location_document,
    a_network_document,
    a_project_document,
)
from management_builders.found import (
    condition_of,
    key_of,
    key_to,
    member_of,
    name_of,
    placement_of,
    shown,
    spec_of,
    status_of,
    uid_of,
)
from management_builders.reviews import a_review, a_webhook_configuration, as_review
from management_builders.rights import OPERATOR, Witness, shipped_roles, side_of

# The one door of the harness: what it is made of may be asked for here.
__all__ = [
    "OPERATOR",
    "SINGLE_DEFAULTS",
    "START",
    "USER",
    "Process",
    "RecordedPasses",
    "Run",
    "Scenario",
    "World",
    "a_review",
    "as_review",
    "assert_clean",
    "condition_of",
    "definitions",
    "key_of",
    "key_to",
    "kind_names",
    "member_of",
    "misfits",
    "name_of",
    "neighbours",
    "placement_of",
    "play",
    "settings_of",
    "shown",
    "single_settings",
    "spec_of",
    "status_of",
    "uid_of",
]

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
USER: Final = authenticated("user", "system:masters")
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
DEFAULTS: Final[JsonObject] = {
    "federation": {"mode": "karmada", "kubeconfigPath": "/etc/compute/hub/kubeconfig"},
    "discovery": {"mode": "milo"},
}
SINGLE_DEFAULTS: Final[JsonObject] = {
    "federation": {"mode": "none"},
    "discovery": {"mode": "single"},
}


def settings_of(**members: Json) -> ManagementSettings:
    """Settings as the file would give them; sections that are given replace the world's own."""
    head: JsonObject = {"apiVersion": API_VERSION, "kind": ManagementSettings.KIND}
    return validate_settings(ManagementSettings, {**head, **DEFAULTS, **members})


def single_settings(**members: Json) -> ManagementSettings:
    return settings_of(**{**SINGLE_DEFAULTS, **members})


# --- processes ------------------------------------------------------------------------------------


@dataclass(slots=True)
class RecordedPasses:
    """Traces of passes, written into the history."""

    history: History
    open: list[str] = field(default_factory=list[str])
    steps: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    @contextmanager
    def reconcile(self, controller: str, key: ObjectKey) -> Generator[PassSpan]:
        name = f"{controller} {key}"
        self.open.append(name)
        try:
            yield _PassRecord(self.history, controller, key)
        finally:
            self.open.remove(name)

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        self.open.append(name)
        try:
            yield
        finally:
            self.open.remove(name)


@dataclass(frozen=True, slots=True)
class _PassRecord:
    history: History
    controller: str
    key: ObjectKey

    def set_outcome(self, outcome: str) -> None:
        self.history.add_pass(self.controller, str(self.key), outcome)


class Process:
    """One operator process: started, stopped, crashed and started again as a new one."""

    def __init__(
        self,
        world: World,
        name: str,
        settings: ManagementSettings,
        leadership: Leadership,
        clock: Clock,
        *,
        writes_events: bool = False,
    ) -> None:
        self.name = name
        self.life = OperatorLife(name)
        self.measures = FakeMeasures()
        self.recorder = FakeRecorder()
        self.spans = RecordedPasses(world.history)
        self._world = world
        # Most tests read events from the fake; in the world they would be writes like any other.
        self._teller = EventWriter(self._find_events, Reporter(COMPONENT, name), clock)
        self._writes_events = writes_events
        self._telling: asyncio.Task[None] | None = None
        ports = Ports(
            connect=self._connect,
            clock=clock,
            random=world.clock.random(name),
            places=Places(projects="https://milo.example"),
            leadership=leadership,
            recorder=self,
            measures=self.measures,
            spans=self.spans,
        )
        self.operator = Operator(settings, ports)
        self._leading: asyncio.Task[None] | None = None

    def start(self, *, leads: bool = True) -> None:
        self.operator.start()
        if self._writes_events:
            self._telling = asyncio.create_task(self._teller.run(), name=f"{self.name}:events")
        if leads:
            self.begin_leading()

    def record(self, emit: Emit) -> None:
        """Where the operator tells its events."""
        self.recorder.record(emit)
        if self._writes_events:
            self._teller.record(emit)

    def _find_events(self, plane: PlaneName) -> Events | None:
        engaged = self.operator.planes.find(plane)
        return None if engaged is None else engaged.kube

    def reach(self, plane: PlaneName, role: Role) -> Kube:
        """The process's own way to a plane, for what stands around the operator in a process."""
        return self._connect(Plane(plane, role), Lane(plane, self._world.clock))

    def begin_leading(self) -> None:
        self._leading = asyncio.create_task(self.operator.lead(), name=f"{self.name}:leading")

    async def stop(self) -> None:
        """As on SIGTERM."""
        self.operator.stop()
        if self._leading is not None:
            await asyncio.wait({self._leading})
        await self._fall_silent()
        await self.operator.close()

    async def _fall_silent(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait({self._telling})

    async def kill(self) -> None:
        """Nothing more is sent; what was in memory is gone."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.wait({self._leading})
        await self._fall_silent()
        await self.operator.close()

    async def admit(self, review: JsonObject) -> Verdict:
        return await self.operator.admission.review(review)

    def _connect(self, plane: Plane, lane: Lane) -> Kube:
        transport = self._world.transport(plane.name, life=self.life)
        connection = Connection(
            plane.name, plane.role, transport, lane, measures=self.measures, user_agent=self.name
        )
        return KubeHttp(connection, Writer(self.name, self.name))

    def reasons(self, *, kind: Kind | None = None) -> list[str]:
        """Reasons of the events emitted so far, in order."""
        return [
            emit.reason for emit in self.recorder.emitted if kind is None or emit.key.kind == kind
        ]


class _Current:
    """Whichever plane bears a name now: a restored one answers where the old one did."""

    def __init__(self, world: World, name: str, user: User) -> None:
        self._world = world
        self._name = name
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        plane = self._world.planes.get(self._name)
        if plane is not None:
            return await plane.connect(self._user).request(method, target, headers, body)
        assert self._world.milo is not None, f"no plane {self._name!r}"
        place = "" if self._name == ROOT else project_path(self._name)
        milo = self._world.milo.connect(self._user)
        return await milo.request(method, place + target, headers, body)


# --- the world ------------------------------------------------------------------------------------


class World:
    """Planes, and everybody who talks to them."""

    def __init__(self, clock: VirtualClock, faults: tuple[Fault, ...] = ()) -> None:
        self.clock = clock
        self.history = History(clock)
        self.injector = Injector(faults, clock, self.history)
        self.planes: dict[str, SimulatedPlane] = {}
        self.links: dict[str, Link] = {}
        self.processes: list[Process] = []
        self.error_lines: list[str] = []
        self.operator_user = OPERATOR
        self.witness = Witness()
        # What stands between a process and a plane, besides faults; for tests that hold requests.
        self.between: Callable[[str, Transport], Transport] = lambda _, transport: transport
        self.webhooks = RegisteredWebhooks()
        self.milo: Milo | None = None  # in its place stands a plain plane with Projects
        self._lanes: dict[str, Lane] = {}

    # planes ----------------------------------------------------------------------------------

    async def add_plane(self, name: str, *crds: Manifest) -> SimulatedPlane:
        parts = PlaneParts(
            clock=self.clock, identities=self.clock.identities, webhooks=self.webhooks
        )
        plane = self.planes[name] = SimulatedPlane(name, parts)
        self.links.setdefault(name, Link())
        self.history.listen(name, plane.state.store)
        await apply_manifests(plane.connect(), crds)
        await self._grant(plane, side_of(name))
        return plane

    async def _grant(self, plane: SimulatedPlane, side: str) -> None:
        """What `deploy/` lets the operator do there, and nothing else."""
        await apply_manifests(plane.connect(), shipped_roles(side))
        plane.state.authorizer = self.witness.beside(side, plane.state.authorizer)

    async def add_fixed_planes(self) -> None:
        """Home, Milo's root and the hub, with the kinds each of them has."""
        await self.add_plane(HOME)
        await self.add_plane(ROOT, *neighbours("miloapis.com"))
        await self.add_plane(HUB, *definitions("karmada.io"))

    async def start_milo(self) -> Milo:
        """Puts a simulated Milo in the place of the plain root: its projects are planes of its own,
        with kinds, rights and webhooks of the root.
        """
        await self.planes.pop(ROOT).close()
        parts = MiloParts(self.clock, self.clock.identities, webhooks=self.webhooks)
        self.milo = Milo(parts)
        await self.milo.start()
        await self._grant(self.milo.planes.root, side_of(ROOT))
        crds = definitions("networking.datumapis.com")
        await apply_manifests(self.milo.planes.root.connect(), crds)
        return self.milo

    async def add_milo_project(self, name: str, *cities: str) -> None:
        """A project of the simulated Milo, Ready, with Locations and the network `default`."""
        assert self.milo is not None
        await self.milo.add_project(name)
        for city in cities:
            await self.create_patiently(name, a_location_document(city))
        await self.create_patiently(name, a_network_document())

    async def create_patiently(self, plane: str, document: JsonMapping) -> JsonObject:
        """As `create`; who touches a kind of a fresh project first is asked to come again."""
        while True:
            try:
                return await self.create(plane, document)
            except ThrottledError as pause:
                await self.clock.sleep(pause.retry_after)

    async def add_project(
        self,
        name: str,
        *,
        cities: tuple[str, ...] = (),
        networks: tuple[str, ...] = ("default",),
        has_networking: bool = True,
        is_ready: bool = True,
    ) -> None:
        """A project with its plane; without networking that plane serves neither of its kinds."""
        await self.add_project_plane(
            name, cities=cities, networks=networks, has_networking=has_networking
        )
        await self.create(ROOT, a_project_document(name))
        if is_ready:
            await self.set_project_ready(name)

    async def add_project_plane(
        self,
        name: str = SINGLE,
        *,
        cities: tuple[str, ...] = (),
        networks: tuple[str, ...] = ("default",),
        has_networking: bool = True,
    ) -> None:
        """A plane with our kinds and no Project behind it: that of mode `single`, or of nobody."""
        crds = definitions("networking.datumapis.com") if has_networking else definitions()
        await self.add_plane(name, *crds)
        if has_networking:
            for city in cities:
                await self.create(name, a_location_document(city))
            for network in networks:
                await self.create(name, a_network_document(network))

    async def set_project_ready(self, name: str, *, is_ready: bool = True) -> None:
        condition: JsonObject = {
            "type": "Ready",
            "status": "True" if is_ready else "False",
            "reason": "Ready" if is_ready else "Provisioning",
            "message": "",
            "lastTransitionTime": "2026-03-01T00:00:00Z",
        }
        await self.set_status(ROOT, PROJECT, name, {"conditions": [condition]}, namespace="")

    async def install(self, plane: str, group: str) -> None:
        await apply_manifests(self.planes[plane].connect(), neighbours(group))

    async def uninstall(self, plane: str, kind: Kind) -> None:
        """As on a real server, the objects go with their definition."""
        await self._definition(plane, "DELETE", f"{DEFINITIONS}{kind.plural}.{kind.group}")

    async def ask_for_admission(self, plane: str, process: Process) -> None:
        """Has a plane ask this process about every Workload, as the webhook configuration says."""

        async def answer(review: Manifest) -> Manifest:
            verdict = await process.admit(orjson.loads(orjson.dumps(review)))
            answered: Manifest = orjson.loads(orjson.dumps(as_review(review, verdict)))
            return answered

        url = f"https://{process.name}.example/{PATH}"
        self.webhooks.webhooks[url] = answer
        at = self.milo.planes.root if self.milo is not None else self.planes[plane]
        await apply_manifests(at.connect(), [a_webhook_configuration(url)])

    async def forget_member(self, plane: str, kind: Kind, *path: str) -> None:
        """Makes the plane one that has an older definition: it prunes a member we write."""
        target = f"{DEFINITIONS}{kind.plural}.{kind.group}"
        schema = "/spec/versions/0/schema/openAPIV3Schema"
        place = "".join(f"/properties/{name}" for name in path[:-1])
        found = await self._definition(plane, "GET", target)
        versions = spec_of(found)["versions"]
        parent: Json = versions[0] if isinstance(versions, list) else None
        for name in (
            "schema",
            "openAPIV3Schema",
            *(p for n in path[:-1] for p in ("properties", n)),
        ):
            parent = parent[name] if isinstance(parent, dict) else None
        assert isinstance(parent, dict)
        required = [name for name in member_list(parent, "required") if name != path[-1]]
        steps: list[Json] = [{"op": "remove", "path": f"{schema}{place}/properties/{path[-1]}"}]
        if required:
            steps.append({"op": "add", "path": f"{schema}{place}/required", "value": required})
        elif "required" in parent:
            steps.append({"op": "remove", "path": f"{schema}{place}/required"})
        await self._definition(plane, "PATCH", target, orjson.dumps(steps))

    async def accept_anything(self, plane: str, kind: Kind) -> None:
        """Makes the plane one that checks no shape: what admission lets through is stored."""
        target = f"{DEFINITIONS}{kind.plural}.{kind.group}"
        anything: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        place = "/spec/versions/0/schema/openAPIV3Schema"
        steps: list[Json] = [{"op": "replace", "path": place, "value": anything}]
        await self._definition(plane, "PATCH", target, orjson.dumps(steps))
        await self.sleep(1)  # served a moment later, as on a real server

    async def forbid_long_values(self, plane: str, kind: Kind, path: tuple[str, ...]) -> None:
        """Makes the plane one that takes a text of three characters at most; `[]` is an element."""
        target = f"{DEFINITIONS}{kind.plural}.{kind.group}"
        place = "".join("/items" if name == "[]" else f"/properties/{name}" for name in path)
        schema = "/spec/versions/0/schema/openAPIV3Schema"
        steps: list[Json] = [{"op": "add", "path": f"{schema}{place}/maxLength", "value": 3}]
        await self._definition(plane, "PATCH", target, orjson.dumps(steps))
        await self.sleep(1)

    async def _definition(
        self, plane: str, method: str, target: str, body: bytes | None = None
    ) -> JsonObject:
        headers = {"Content-Type": "application/json-patch+json"} if body else {}
        answer = await self.planes[plane].connect().request(method, target, headers, body)
        raw = b"".join([chunk async for chunk in answer.chunks()])
        await answer.close()
        assert answer.status in {200, 202}, raw
        return decode_object(raw)

    def transport(self, name: str, *, life: OperatorLife) -> Transport:
        """The operator's way to a plane, with faults in it and everything written down."""
        faulty = FaultyTransport(
            self.between(name, _Current(self, name, self.operator_user)),
            self.injector,
            plane=name,
            kinds=kind_names,
            life=life,
            link=self.links.setdefault(name, Link()),
        )
        return RecordingTransport(
            faulty, self.history, plane=name, identity=life.name, kinds=kind_names
        )

    # processes -------------------------------------------------------------------------------

    def process(
        self,
        name: str = "operator",
        settings: ManagementSettings | None = None,
        leadership: Leadership | None = None,
        clock: Clock | None = None,
        *,
        writes_events: bool = False,
    ) -> Process:
        made = Process(
            self,
            name,
            settings or settings_of(),
            leadership or AlwaysLeading(),
            clock or self.clock,
            writes_events=writes_events,
        )
        self.processes.append(made)
        return made

    async def close(self) -> None:
        for process in self.processes:
            await process.stop()
        for plane in self.planes.values():
            await plane.close()
        if self.milo is not None:
            await self.milo.close()

    # time ------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(timedelta(seconds=seconds))

    async def eventually(self, is_so: Callable[[], Awaitable[bool]], within: float = 60) -> float:
        """Waits until something is so; how long that took."""
        begun = self.clock.monotonic()
        while not await is_so():
            taken = (self.clock.monotonic() - begun).total_seconds()
            assert taken < within, f"not so after {within} s"
            await self.sleep(0.05)
        return (self.clock.monotonic() - begun).total_seconds()

    # people ----------------------------------------------------------------------------------

    def kube(self, name: str, user: User = USER) -> Kube:
        """A person's way to a plane: no faults, everything written down."""
        transport = RecordingTransport(
            _Current(self, name, user), self.history, plane=name, identity="user", kinds=kind_names
        )
        lane = self._lanes.setdefault(name, Lane(PlaneName(name), self.clock))
        connection = Connection(PlaneName(name), Role.PROJECT, transport, lane)
        return KubeHttp(connection, Writer("user", "user"))

    async def create(self, plane: str, document: JsonMapping) -> JsonObject:
        key = key_of(plane, document)
        made = await self.kube(plane).create(key, document)
        assert not isinstance(made, AlreadyExists), f"{key} exists"
        return made.decode()

    async def find(
        self, plane: str, kind: Kind, name: str, namespace: str = "default"
    ) -> JsonObject | None:
        found = await self.kube(plane).get(key_to(plane, kind, name, namespace))
        return None if isinstance(found, Absent) else found.decode()

    async def get(
        self, plane: str, kind: Kind, name: str, namespace: str = "default"
    ) -> JsonObject:
        found = await self.find(plane, kind, name, namespace)
        assert found is not None, f"no {kind.kind} {namespace}/{name} on {plane}"
        return found

    async def exists(self, plane: str, kind: Kind, name: str, namespace: str = "default") -> bool:
        return await self.find(plane, kind, name, namespace) is not None

    async def is_gone(self, plane: str, kind: Kind, name: str, namespace: str = "default") -> bool:
        return not await self.exists(plane, kind, name, namespace)

    async def listed(self, plane: str, kind: Kind, namespace: str = "") -> list[JsonObject]:
        page = await self.kube(plane).list(kind, namespace=namespace)
        assert isinstance(page, Page), page
        return [item.snapshot.decode() for item in page.items]

    async def names(self, plane: str, kind: Kind, namespace: str = "") -> list[str]:
        return sorted(name_of(found) for found in await self.listed(plane, kind, namespace))

    async def patch(
        self, plane: str, kind: Kind, name: str, body: JsonMapping, namespace: str = "default"
    ) -> JsonObject:
        """A merge patch."""
        answer = await self.kube(plane).patch_merge(key_to(plane, kind, name, namespace), body)
        assert isinstance(answer, Snapshot), f"no {kind.kind} {namespace}/{name} on {plane}"
        return answer.decode()

    async def set_status(
        self, plane: str, kind: Kind, name: str, status: JsonMapping, namespace: str = "default"
    ) -> None:
        key = key_to(plane, kind, name, namespace)
        answer = await self.kube(plane).patch_merge(key, {"status": status}, subresource="status")
        assert isinstance(answer, Snapshot), f"no {key}"

    async def run_deployment(
        self, plane: str, name: str, namespace: str = "default", *, replicas: int = 1
    ) -> None:
        """What a cell would say about a deployment that runs, at its present generation."""
        found = await self.get(plane, DEPLOYMENT, name, namespace)
        status = a_deployment_status(
            a_condition_document("Available", "True", "StableInstanceFound"),
            a_condition_document("ReplicasReady", "True", "ReplicasAvailable"),
            a_condition_document("Ready", "True", "ReplicasAvailable"),
            observed=member_int(member_object(found, "metadata"), "generation"),
            replicas=replicas,
            desired=replicas,
            ready=replicas,
        )
        await self.set_status(plane, DEPLOYMENT, name, status, namespace)

    async def add_network(self, plane: str, name: str, namespace: str = "default") -> None:
        await self.create(plane, a_network_document(name, namespace))

    async def delete(self, plane: str, kind: Kind, name: str, namespace: str = "default") -> None:
        key = key_to(plane, kind, name, namespace)
        found = await self.kube(plane).get(key)
        assert isinstance(found, Snapshot), f"no {key}"
        await self.kube(plane).delete(key, preconditions=Preconditions(found.metadata.uid))

    @staticmethod
    def key_of(plane: str, document: JsonMapping) -> ObjectKey:
        return key_of(plane, document)

    # what happened ---------------------------------------------------------------------------

    def requests(self, identity: str = "operator") -> list[Request]:
        return [one for one in self.history.of(Request) if one.caller.identity == identity]

    def writes(
        self,
        identity: str = "operator",
        *,
        plane: str = "",
        kind: str = "",
        controller: str = "",
        verb: str = "",
    ) -> list[Request]:
        """Mutating requests a process has sent so far."""
        return [
            request
            for request in self.requests(identity)
            if request.address.is_write
            and plane in {"", request.address.plane}
            and kind in {"", request.address.kind}
            and verb in {"", request.address.verb}
            and request.caller.user_agent.endswith(f"({controller})" if controller else "")
        ]

    async def rests(self, minutes: float = 310, identity: str = "operator") -> list[Request]:
        """What a process writes while nobody does anything; 310 minutes hold ten resyncs."""
        before = len(self.writes(identity))
        await self.sleep(minutes * 60)
        return self.writes(identity)[before:]


# --- playing --------------------------------------------------------------------------------------

Scenario: TypeAlias = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind."""

    history: History
    report: LoopReport
    world: World


class _ErrorLines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._lines = lines

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


def play(scenario: Scenario, *faults: Fault, seed: int = 1, is_clean: bool = True) -> Run:
    """Plays a scenario; the processes it made are stopped at its end.

    A clean run leaves nothing behind: no task, no open answer, no exception nobody took, and no
    line above a warning.
    """
    worlds: list[World] = []
    report = LoopReport()

    async def main(clock: VirtualClock) -> None:
        world = World(clock, faults)
        worlds.append(world)
        await world.add_fixed_planes()
        handler = _ErrorLines(world.error_lines)
        loggers = [logging.getLogger(f"compute_{name}_operator") for name in ("management",)]
        loggers.append(logging.getLogger("compute_operator_kit"))
        for logger in loggers:
            logger.addHandler(handler)
        try:
            await scenario(world)
            await world.close()
        finally:
            for logger in loggers:
                logger.removeHandler(handler)

    run(main, seed=seed, start=START, report=report)
    refused = worlds[0].witness.refused
    assert not refused, f"deploy/ does not grant {refused}"
    done = Run(worlds[0].history, report, worlds[0])
    if is_clean:
        assert_clean(done)
    return done


def assert_clean(done: Run) -> None:
    assert done.report.unhandled == []
    assert done.report.pending == []
    assert done.history.open_answers == {}
    assert done.world.error_lines == []
    for process in done.world.processes:
        assert process.spans.open == []
        assert misfits(process.measures) == []


def misfits(measures: FakeMeasures) -> list[str]:
    """Measurements the catalogue does not have, or with other labels: they would be dropped."""
    by_type = {
        MetricType.COUNTER: [*measures.counts],
        MetricType.GAUGE: [*measures.gauges],
        MetricType.HISTOGRAM: [*measures.values],
    }
    known = {metric.name: (metric.type, set(metric.labels)) for metric in EVERY_METRIC}
    return [
        f"{kind} {name} {dict(labels)}"
        for kind, found in by_type.items()
        for name, labels in found
        if known.get(name) != (kind, {label for label, _ in labels})
    ]
