"""The cell operator in a simulated world: planes, processes, neighbours, people, and a record.

Time is virtual and a run is a function of its seed. On every plane the operator is nobody but the
identity that ships, with the rights of `deploy/` (`rights.py`). It is wired by `wiring.py`, down to
the bytes of its requests; only what is below its transports is simulated. Planes are called as the
operator calls them (`plane_names`), projects by their name. The provider, NSO and Milo are those of
sim-planes. What management and Karmada would put into hub and cell is put there by the scenario, as
`user`. Quota is off unless a scenario turns it on (`QUOTA_ON`) and adds a Milo.

    def test_something() -> None:
        async def scenario(world: World) -> None:
            world.start_neighbours()
            world.process().start()
            await world.create(CELL, a_deployment_document("web", 2))
            await world.eventually(world.is_converged)

        play(scenario)
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

from cell_builders.documents import (
    CELL_NAME,
    NS,
    PROJECT,
    a_deployment_document,
    a_location_document,
    a_namespace_document,
    a_network_document,
    a_template_document,
)
from cell_builders.milo import BUDGET, SERVER, Gateway, ProjectDoor, SimulatedMilo
from cell_builders.rights import Witness, operator_on, shipped, side_of
from compute_api_types import labels
from compute_api_types.crd import derive_crds
from compute_cell_operator import kinds
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE
from compute_cell_operator.plane_names import CELL, HUB
from compute_cell_operator.serving import VOICES
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import COMPONENT, Operator, Ports
from compute_operator_kit.apply.desk import AlwaysLeading, Leadership
from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import validate_settings
from compute_operator_kit.events import Events, Reporter
from compute_operator_kit.exchange import Answer, Connection, Transport
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import AlreadyExists, Kube, Page, Preconditions, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.planes import Plane
from compute_operator_kit.reconcile import PassSpan
from compute_operator_kit.recorders import Recorders
from compute_operator_kit.settings import API_VERSION
from compute_operator_kit.testing import FakeMeasures, FakeRecorder
from compute_operator_kit.wire import (
    Json,
    JsonMapping,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_quota_client import QuotaClient, QuotaSettings, Surroundings
from compute_sim_planes.api_server.identity import Tokens, User, authenticated
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.cell_policies import make_forms
from compute_sim_planes.client import Client
from compute_sim_planes.clock import LoopReport, VirtualClock, run
from compute_sim_planes.fault_links import Link
from compute_sim_planes.fault_plans import Fault
from compute_sim_planes.faults import FaultyTransport, Injector, OperatorLife
from compute_sim_planes.history import History, RecordingTransport, Request
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.json_types import object_at, objects_at
from compute_sim_planes.networking import NetworkServices, networking_crds
from compute_sim_planes.provider import Provider

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
USER: Final = authenticated("user", "system:masters")
PROVIDER: Final = authenticated("provider", "system:masters")
NSO: Final = authenticated("nso", "system:masters")
SCRAPER: Final = authenticated("scraper")  # reads metrics, by no more than its token
SCRAPER_TOKEN: Final = "scraper's"  # noqa: S105 - of a simulated server
NETWORK: Final = Kind("networking.datumapis.com", "v1alpha", "networks", "Network")
QUOTA_ON: Final[JsonObject] = {
    "mode": "enforce",
    "kubeconfigPath": "/etc/quota-credentials/kubeconfig",
}
QUOTA_OFF: Final[JsonObject] = {"mode": "disabled"}
DEFAULTS: Final[JsonObject] = {
    "cell": {"name": CELL_NAME},
    "federation": {"mode": "karmada", "kubeconfigPath": "/etc/compute/hub/kubeconfig"},
    "quota": QUOTA_OFF,
}
KNOWN_KINDS: Final = (*(k for k in vars(kinds).values() if isinstance(k, Kind)), NETWORK)
KIND_NAMES: Final = {kind.plural: kind.kind for kind in KNOWN_KINDS} | {
    "leases": "Lease",
    "events": "Event",
    "customresourcedefinitions": "CustomResourceDefinition",
    "resourceclaims": "ResourceClaim",
}


def kind_names(group: str, version: str, resource: str) -> str:
    del group, version
    return KIND_NAMES.get(resource, "")


def settings_of(**members: Json) -> CellSettings:
    """Settings as the file would give them; sections that are given replace the world's own."""
    head: JsonObject = {"apiVersion": API_VERSION, "kind": CellSettings.KIND}
    return validate_settings(CellSettings, {**head, **DEFAULTS, **members})


def our_crds() -> list[Manifest]:
    return [orjson.loads(orjson.dumps(crd)) for crd in derive_crds()]


# --- processes ------------------------------------------------------------------------------------


@dataclass(slots=True)
class RecordedPasses:
    """Traces of passes, written into the history."""

    history: History
    open: list[str] = field(default_factory=list[str])

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
        settings: CellSettings,
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
        self._tellers = Recorders.speaking_as(
            Reporter(COMPONENT, name), VOICES, self._find_events, clock
        )
        self._writes_events = writes_events
        self._telling: list[asyncio.Task[None]] = []
        self.quota = self._open_quota(clock) if settings.is_quota_enforced else None
        ports = Ports(
            connect=self._connect,
            clock=clock,
            random=world.clock.random(name),
            quota=self.quota,
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
            self._telling = [
                asyncio.create_task(teller.run(), name=f"{self.name}:events")
                for teller in self._tellers
            ]
        if leads:
            self.begin_leading()

    def record(self, emit: Emit) -> None:
        """Where the operator tells its events."""
        self.recorder.record(emit)
        if self._writes_events:
            self._tellers.record(emit)

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
        await self._close()

    async def kill(self) -> None:
        """Nothing more is sent; what was in memory is gone."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.wait({self._leading})
        await self._close()

    async def _close(self) -> None:
        for task in self._telling:
            task.cancel()
        if self._telling:
            await asyncio.wait(self._telling)
        self._telling.clear()
        await self.operator.close()
        if self.quota is not None:
            await self.quota.aclose()

    def _open_quota(self, clock: Clock) -> QuotaClient:
        return QuotaClient(
            SERVER,
            transport=Gateway(lambda project: self._world.project(project, life=self.life)),
            settings=QuotaSettings(user_agent=self.name, field_manager=labels.QUOTA_MANAGER),
            surroundings=Surroundings(
                chance=self._world.clock.random(f"{self.name}:quota").random, wall_clock=clock.now
            ),
        )

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
        plane = self._world.planes[self._name]
        return await plane.connect(self._user).request(method, target, headers, body)


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
        self.witness = Witness()
        # Who the operator is where it is not who it should be: credentials can be mixed up.
        self.mistaken: dict[str, User] = {}
        self.provider = Provider(self.client(PROVIDER), clock)
        self.nso = NetworkServices(self.client(NSO), clock)
        self.milo: SimulatedMilo | None = None
        self._lanes: dict[str, Lane] = {}
        self._neighbours: list[asyncio.Task[None]] = []

    # planes ----------------------------------------------------------------------------------

    async def add_plane(self, name: str, *crds: Manifest) -> SimulatedPlane:
        parts = PlaneParts(
            clock=self.clock,
            identities=self.clock.identities,
            tokens=Tokens({SCRAPER_TOKEN: SCRAPER}),
            policies=make_forms(),
        )
        plane = self.planes[name] = SimulatedPlane(name, parts)
        self.links.setdefault(name, Link())
        self.history.listen(name, plane.state.store)
        await apply_manifests(plane.connect(), crds)
        await self.grant(plane, side_of(name))
        return plane

    async def grant(self, plane: SimulatedPlane, side: str) -> None:
        """What `deploy/` lets the operator do there, and nothing else."""
        await apply_manifests(plane.connect(), shipped(side))
        plane.state.authorizer = self.witness.beside(side, plane.state.authorizer)

    def operator_on(self, plane: str) -> User:
        return self.mistaken.get(plane) or operator_on(plane)

    async def add_fixed_planes(self, *, has_networking: bool = True) -> None:
        """The cell and the hub, a namespace, and, with networking, a Location and a Network."""
        await self.add_plane(CELL, *our_crds())
        await self.add_plane(HUB, *our_crds())
        await self.create(CELL, a_namespace_document())
        if has_networking:
            await self.install_networking()
            await self.create(CELL, a_location_document())
            await self.create(CELL, a_network_document())

    async def add_milo(self, budget: Mapping[str, int] = BUDGET) -> SimulatedMilo:
        """A Milo with the project of the usual namespace; for processes with quota on."""
        self.milo = SimulatedMilo(self.clock)
        await self.milo.open()
        # Projects take their rights from the root that they are made beside.
        await self.grant(self.milo.milo.planes.root, side_of(PROJECT))
        await self.milo.fill(budget)
        self.history.listen(PROJECT, self.milo.milo.planes.at(PROJECT).state.store)
        return self.milo

    async def install_networking(self, *, is_name_only: bool = False) -> None:
        crds = networking_crds(is_name_only=is_name_only)
        await apply_manifests(self.planes[CELL].connect(), crds)

    async def install_older_hub(self) -> None:
        """The hub's Instances of a release without interfaces in their status: it prunes them."""
        await self.uninstall(HUB, INSTANCE)
        await self.sleep(1)
        older = next(crd for crd in our_crds() if name_of(crd).startswith(INSTANCE.plural))
        for version in objects_at(older, "spec", "versions"):
            status = object_at(version, "schema", "openAPIV3Schema", "properties", "status")
            del object_at(status, "properties")["networkInterfaces"]
        await apply_manifests(self.planes[HUB].connect(), [older])

    async def uninstall(self, plane: str, kind: Kind) -> None:
        """As on a real server, the objects go with their definition."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
        target = f"{path}{kind.plural}.{kind.group}"
        answer = await self.planes[plane].connect().request("DELETE", target, {}, None)
        await answer.close()
        assert answer.status in {200, 202}, answer.status

    def transport(self, name: str, *, life: OperatorLife) -> Transport:
        """The operator's way to a plane, with faults in it and everything written down."""
        faulty = FaultyTransport(
            _Current(self, name, self.operator_on(name)),
            self.injector,
            plane=name,
            kinds=kind_names,
            life=life,
            link=self.links.setdefault(name, Link()),
        )
        return RecordingTransport(
            faulty, self.history, plane=name, identity=life.name, kinds=kind_names
        )

    def project(self, name: str, *, life: OperatorLife) -> Transport:
        """The quota client's way to a project's plane, through Milo's front door."""
        assert self.milo is not None, "a process with quota on needs a Milo"
        faulty = FaultyTransport(
            ProjectDoor(self.milo.milo, name, self.operator_on(name)),
            self.injector,
            plane=name,
            kinds=kind_names,
            life=life,
            link=self.links.setdefault(name, Link()),
        )
        return RecordingTransport(
            faulty, self.history, plane=name, identity=life.name, kinds=kind_names
        )

    # neighbours ------------------------------------------------------------------------------

    def client(self, user: User) -> Client:
        """A neighbour's way to the cell."""
        transport = RecordingTransport(
            _Current(self, CELL, user),
            self.history,
            plane=CELL,
            identity=user.name,
            kinds=kind_names,
        )
        return Client(transport, manager=user.name)

    def start_neighbours(self, *, has_nso: bool = True) -> None:
        """The provider, and NSO."""
        works = [("provider", self.provider.run())]
        if has_nso:
            works.append(("nso", self.nso.run()))
        self._neighbours += [asyncio.create_task(work, name=name) for name, work in works]

    async def stop_neighbours(self) -> None:
        for task in self._neighbours:
            task.cancel()
        if self._neighbours:
            await asyncio.wait(self._neighbours)
        self._neighbours.clear()

    # processes -------------------------------------------------------------------------------

    def process(
        self,
        name: str = "operator",
        settings: CellSettings | None = None,
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
        await self.stop_neighbours()
        if self.milo is not None:
            await self.milo.close()
        for plane in self.planes.values():
            await plane.close()

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

    def kube(self, name: str) -> Kube:
        """The user's way to a plane: no faults, everything written down."""
        transport = RecordingTransport(
            _Current(self, name, USER), self.history, plane=name, identity="user", kinds=kind_names
        )
        lane = self._lanes.setdefault(name, Lane(PlaneName(name), self.clock))
        connection = Connection(PlaneName(name), Role.HOME, transport, lane)
        return KubeHttp(connection, Writer("user", "user"))

    async def create(self, plane: str, document: JsonMapping) -> JsonObject:
        key = key_of(plane, document)
        made = await self.kube(plane).create(key, document)
        assert not isinstance(made, AlreadyExists), f"{key} exists"
        return made.decode()

    async def find(
        self, plane: str, kind: Kind, name: str, namespace: str = NS
    ) -> JsonObject | None:
        found = await self.kube(plane).get(key_to(plane, kind, name, namespace))
        return None if isinstance(found, Absent) else found.decode()

    async def get(self, plane: str, kind: Kind, name: str, namespace: str = NS) -> JsonObject:
        found = await self.find(plane, kind, name, namespace)
        assert found is not None, f"no {kind.kind} {namespace}/{name} on {plane}"
        return found

    async def exists(self, plane: str, kind: Kind, name: str, namespace: str = NS) -> bool:
        return await self.find(plane, kind, name, namespace) is not None

    async def listed(self, plane: str, kind: Kind, namespace: str = "") -> list[JsonObject]:
        page = await self.kube(plane).list(kind, namespace=namespace)
        assert isinstance(page, Page), page
        return [item.snapshot.decode() for item in page.items]

    async def names(self, plane: str, kind: Kind, namespace: str = "") -> list[str]:
        return sorted(name_of(found) for found in await self.listed(plane, kind, namespace))

    async def patch(
        self, plane: str, kind: Kind, name: str, body: JsonMapping, namespace: str = NS
    ) -> JsonObject:
        """A merge patch."""
        answer = await self.kube(plane).patch_merge(key_to(plane, kind, name, namespace), body)
        assert isinstance(answer, Snapshot), f"no {kind.kind} {namespace}/{name} on {plane}"
        return answer.decode()

    async def set_status(
        self, plane: str, kind: Kind, name: str, status: JsonMapping, namespace: str = NS
    ) -> None:
        key = key_to(plane, kind, name, namespace)
        answer = await self.kube(plane).patch_merge(key, {"status": status}, subresource="status")
        assert isinstance(answer, Snapshot), f"no {key}"

    async def delete(self, plane: str, kind: Kind, name: str, namespace: str = NS) -> None:
        key = key_to(plane, kind, name, namespace)
        found = await self.kube(plane).get(key)
        assert isinstance(found, Snapshot), f"no {key}"
        await self.kube(plane).delete(key, preconditions=Preconditions(found.metadata.uid))

    # management and Karmada ------------------------------------------------------------------

    async def federate(self, namespace: str = NS) -> None:
        """The hub's Namespace, as management makes it."""
        await self.create(HUB, a_namespace_document(namespace))

    async def deliver(self, name: str = "web", replicas: int = 1, *, tag: str = "1.0") -> None:
        """A deployment on the hub and, as Karmada brings it, in the cell; the Namespaces exist."""
        root = await self.create(HUB, a_deployment_document(name, replicas, tag=tag))
        await self.create(
            CELL, a_deployment_document(name, replicas, tag=tag, hub_uid=uid_of(root))
        )

    async def withdraw(self, name: str = "web") -> None:
        """The deployment is deleted on the hub and, with it, in the cell."""
        await self.delete(HUB, DEPLOYMENT, name)
        await self.delete(CELL, DEPLOYMENT, name)

    async def copies(self) -> list[str]:
        return await self.names(HUB, INSTANCE)

    async def copy(self, name: str) -> JsonObject:
        return await self.get(HUB, INSTANCE, name)

    async def is_copied(self, name: str) -> bool:
        """The hub has the Instance as the cell has it, spec and status."""
        found = await self.find(HUB, INSTANCE, name)
        here = await self.find(CELL, INSTANCE, name)
        if found is None or here is None:
            return found is here
        return spec_of(found) == spec_of(here) and status_of(found) == status_of(here)

    async def has_no_copies(self) -> bool:
        return await self.copies() == []

    async def has_copies(self, *wanted: str) -> bool:
        """Exactly these, each as it is in the cell."""
        if await self.copies() != sorted(wanted):
            return False
        return all([await self.is_copied(name) for name in wanted])

    # the cell --------------------------------------------------------------------------------

    async def scale(self, name: str, replicas: int) -> None:
        patch: JsonObject = {"spec": {"scaleSettings": {"minReplicas": replicas}}}
        await self.patch(CELL, DEPLOYMENT, name, patch)

    async def set_image(self, name: str, tag: str) -> None:
        template = a_template_document(tag)
        await self.patch(CELL, DEPLOYMENT, name, {"spec": {"template": template}})

    async def deployment(self, name: str = "web") -> JsonObject:
        return await self.get(CELL, DEPLOYMENT, name)

    async def instances(self) -> list[str]:
        return await self.names(CELL, INSTANCE)

    async def instance(self, name: str) -> JsonObject:
        return await self.get(CELL, INSTANCE, name)

    async def has_instances(self, *wanted: str) -> bool:
        return await self.instances() == sorted(wanted)

    async def says(self, reason: str, name: str = "web", kind: str = "Available") -> bool:
        return condition_of(await self.deployment(name), kind)[1] == reason

    async def is_converged(self, name: str = "web") -> bool:
        """Everything the deployment asks for runs, and it says so of its present generation."""
        found = await self.deployment(name)
        is_current = status_of(found).get("observedGeneration") == generation_of(found)
        return is_current and condition_of(found, "Ready")[0] == "True"

    # what happened ---------------------------------------------------------------------------

    def requests(self, identity: str = "operator") -> list[Request]:
        return [one for one in self.history.of(Request) if one.caller.identity == identity]

    def writes(
        self, identity: str = "operator", *, plane: str = "", kind: str = "", verb: str = ""
    ) -> list[Request]:
        """Mutating requests a process has sent so far."""
        return [
            request
            for request in self.requests(identity)
            if request.address.is_write
            and plane in {"", request.address.plane}
            and kind in {"", request.address.kind}
            and verb in {"", request.address.verb}
        ]

    async def rests(self, minutes: float = 30, identity: str = "operator") -> list[Request]:
        """What a process writes while nobody does anything; 30 minutes hold two resyncs."""
        before = len(self.writes(identity))
        await self.sleep(minutes * 60)
        return self.writes(identity)[before:]


def key_to(plane: str, kind: Kind, name: str, namespace: str = NS) -> ObjectKey:
    return ObjectKey(PlaneName(plane), kind, namespace if kind.namespaced else "", name)


def key_of(plane: str, document: JsonMapping) -> ObjectKey:
    """Where a document goes; its kind must be one that is known here."""
    metadata = document["metadata"]
    assert isinstance(metadata, Mapping)
    found = next(
        kind
        for kind in KNOWN_KINDS
        if kind.kind == document["kind"] and kind.api_version == document["apiVersion"]
    )
    return key_to(plane, found, str(metadata["name"]), str(metadata.get("namespace", NS)))


def name_of(found: JsonObject) -> str:
    return member_text(member_object(found, "metadata"), "name")


def uid_of(found: JsonObject) -> str:
    return member_text(member_object(found, "metadata"), "uid")


def generation_of(found: JsonObject) -> int:
    return member_int(member_object(found, "metadata"), "generation")


def labels_of(found: JsonObject) -> JsonObject:
    return member_object(member_object(found, "metadata"), "labels")


def spec_of(found: JsonObject) -> JsonObject:
    return member_object(found, "spec")


def status_of(found: JsonObject) -> JsonObject:
    return member_object(found, "status")


def gates_of(instance: JsonObject) -> list[str]:
    entries = member_list(member_object(spec_of(instance), "controller"), "schedulingGates")
    return [member_text(entry, "name") for entry in entries if isinstance(entry, dict)]


def condition_of(found: JsonObject, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of an object."""
    for one in member_list(status_of(found), "conditions"):
        if isinstance(one, dict) and one.get("type") == kind:
            return (
                member_text(one, "status"),
                member_text(one, "reason"),
                member_text(one, "message"),
            )
    return "", "", ""


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


def play(
    scenario: Scenario,
    *faults: Fault,
    seed: int = 1,
    is_clean: bool = True,
    has_networking: bool = True,
) -> Run:
    """Plays a scenario; the processes it made are stopped at its end.

    A clean run leaves nothing behind: no task, no open answer, no exception nobody took, and no
    line above a warning.
    """
    worlds: list[World] = []
    report = LoopReport()

    async def main(clock: VirtualClock) -> None:
        world = World(clock, faults)
        worlds.append(world)
        await world.add_fixed_planes(has_networking=has_networking)
        handler = _ErrorLines(world.error_lines)
        loggers = [
            logging.getLogger(f"compute_{name}") for name in ("cell_operator", "operator_kit")
        ]
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
    assert [name for process in done.world.processes for name in process.spans.open] == []
