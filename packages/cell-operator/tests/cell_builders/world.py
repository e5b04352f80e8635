"""The cell operator in a simulated world: planes, processes, neighbours, people, and a record.

Time is virtual and a run is a function of its seed. On every plane the operator has the identity
that ships, with the rights of `deploy/` (`rights.py`). It is wired by `wiring.py`, down to
the bytes of its requests; only what is below its transports is simulated. Planes are called as the
operator calls them (`planes`), projects by their name. The provider, NSO and Milo are those of
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
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

import orjson
from simulated_operators.ground import START
from simulated_operators.people import PeopledGround, address, destination
from simulated_operators.process import SimulatedProcess
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
from compute_cell_operator import planes
from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE
from compute_cell_operator.process import EVENT_SOURCES
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import COMPONENT, CellOperator
from compute_operator_kit.apply.context import AlwaysLeading, Leadership
from compute_operator_kit.client.rest import Transport
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import (
    Json,
    JsonMapping,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import Kind, ObjectKey
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.planes.cache_compactor import stores_of
from compute_quota_client import QuotaClient, QuotaSettings, Surroundings
from compute_sim_planes.api_server.authz.identity import Tokens, User, authenticated
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.client.rest import Client
from compute_sim_planes.crds import load_crds
from compute_sim_planes.faults.injection import CrashableProcess
from compute_sim_planes.faults.plans import Fault
from compute_sim_planes.history import History, Request
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.json_types import object_at, objects_at
from compute_sim_planes.networking import NetworkServices
from compute_sim_planes.provider import Provider
from compute_sim_planes.time.clock import LoopReport, VirtualClock, run

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
HUB_SETTINGS: Final[JsonObject] = {
    "mode": "karmada",
    "kubeconfigPath": "/etc/compute/hub/kubeconfig",
}
# Without the heartbeat, the one write of a cell at rest: `test_cell_heartbeat.py` turns it on.
DEFAULTS: Final[JsonObject] = {
    "cell": {"name": CELL_NAME},
    "federation": {**HUB_SETTINGS, "heartbeat": "0s"},
    "quota": QUOTA_OFF,
}
KNOWN_KINDS: Final = (*(k for k in vars(planes).values() if isinstance(k, Kind)), NETWORK)
OTHER_KINDS: Final = {
    "leases": "Lease",
    "events": "Event",
    "customresourcedefinitions": "CustomResourceDefinition",
    "resourceclaims": "ResourceClaim",
}


def settings_of(**members: Json) -> CellSettings:
    """Settings as the file would give them; sections that are given replace the world's own."""
    head: JsonObject = {"apiVersion": API_VERSION, "kind": CellSettings.KIND}
    return validate_settings(CellSettings, {**head, **DEFAULTS, **members})


@cache
def _encoded_crds() -> tuple[bytes, ...]:
    """Derived once per process: that takes longer than many a test on a world."""
    return tuple(orjson.dumps(crd) for crd in derive_crds())


def our_crds() -> list[Manifest]:
    return [orjson.loads(encoded) for encoded in _encoded_crds()]


# --- processes ------------------------------------------------------------------------------------


class Process(SimulatedProcess[CellOperator]):
    """One process of the cell operator, with a quota client of its own where quota is on."""

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
        super().__init__(
            world,
            name,
            component=COMPONENT,
            clock=clock,
            event_sources=EVENT_SOURCES,
            writes_events=writes_events,
        )
        self._world = world
        self.quota = self._open_quota(clock) if settings.is_quota_enforced else None
        ports = OperatorPorts(
            connect=self.connect,
            clock=clock,
            random=world.clock.random(name),
            leadership=leadership,
            event_recorder=self,
            metrics=self.measures,
            spans=self.spans,
        )
        self.operator = CellOperator(settings, ports, self.quota)

    @override
    async def close(self) -> None:
        await super().close()
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


# --- the world ------------------------------------------------------------------------------------


class World(PeopledGround):
    """Planes, and all their clients."""

    def __init__(self, clock: VirtualClock, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(clock, KNOWN_KINDS, namespace=NS, others=OTHER_KINDS, faults=faults)
        self.processes: list[Process] = []
        self.witness = Witness()
        # Planes on which the operator has another identity: credentials can be mixed up.
        self.mistaken: dict[str, User] = {}
        self.provider = Provider(self.client(PROVIDER), clock)
        self.nso = NetworkServices(self.client(NSO), clock)
        self.milo: SimulatedMilo | None = None
        self._neighbours: list[asyncio.Task[None]] = []

    # planes ----------------------------------------------------------------------------------

    async def add_plane(self, name: str, *crds: Manifest) -> SimulatedPlane:
        parts = PlaneParts(
            clock=self.clock,
            identities=self.clock.identities,
            tokens=Tokens({SCRAPER_TOKEN: SCRAPER}),
        )
        plane = SimulatedPlane(name, parts)
        self.adopt(plane)
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

    async def install_networking(self) -> None:
        await apply_manifests(self.planes[CELL].connect(), load_crds("networking"))

    async def install_older_networking(self) -> None:
        """Network services before v0.26: a reference to a Location keeps a namespace."""
        crds = load_crds("networking")
        for crd in crds:
            for version in objects_at(crd, "spec", "versions"):
                spec = object_at(version, "schema", "openAPIV3Schema", "properties", "spec")
                location = object_at(spec, "properties", "location", "properties")
                if location:
                    location["namespace"] = {"type": "string"}
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

    def transport(self, name: str, *, life: CrashableProcess) -> Transport:
        """The operator's way to a plane, with faults in it and everything written down."""
        return self.faulty(self.way(name, self.operator_on(name)), name, life)

    def project(self, name: str, *, life: CrashableProcess) -> Transport:
        """The quota client's way to a project's plane, through Milo's front door."""
        assert self.milo is not None, "a process with quota on needs a Milo"
        door = ProjectDoor(self.milo.milo, name, self.operator_on(name))
        return self.faulty(door, name, life)

    # neighbours ------------------------------------------------------------------------------

    def client(self, user: User) -> Client:
        """A neighbour's way to the cell."""
        transport = self.recorded(self.way(CELL, user), CELL, user.name)
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
        """All desired Instances run, and the status shows it for the current generation."""
        found = await self.deployment(name)
        is_current = status_of(found).get("observedGeneration") == generation_of(found)
        return is_current and condition_of(found, "Ready")[0] == "True"

    # what happened ---------------------------------------------------------------------------

    @override
    async def rests(self, minutes: float = 30, identity: str = "operator") -> list[Request]:
        """30 minutes hold two resyncs."""
        return await super().rests(minutes, identity)


def key_to(plane: str, kind: Kind, name: str, namespace: str = NS) -> ObjectKey:
    return address(plane, kind, name, namespace)


def key_of(plane: str, document: JsonMapping) -> ObjectKey:
    """Where a document goes; its kind must be one that is known here."""
    return destination(plane, document, KNOWN_KINDS, NS)


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


def play(
    scenario: Scenario,
    *faults: Fault,
    seed: int = 1,
    is_clean: bool = True,
    has_networking: bool = True,
) -> Run:
    """Plays a scenario; the processes it made are stopped at its end.

    A clean run leaves nothing behind: no task, no open response, no unretrieved exception, and no
    log line above a warning.
    """
    worlds: list[World] = []
    report = LoopReport()

    async def main(clock: VirtualClock) -> None:
        world = World(clock, faults)
        worlds.append(world)
        await world.add_fixed_planes(has_networking=has_networking)
        with world.heard("compute_cell_operator", "compute_operator_kit"):
            await scenario(world)
            assert_caches_unchanged(world)
            await world.close()

    run(main, seed=seed, start=START, report=report)
    refused = worlds[0].witness.refused
    assert not refused, f"deploy/ does not grant {refused}"
    done = Run(worlds[0].history, report, worlds[0])
    if is_clean:
        assert_clean(done)
    return done


def assert_caches_unchanged(world: World) -> None:
    """Decoded objects that readers share are as they were served: no reader changed them."""
    for process in world.processes:
        for store in stores_of(process.operator.planes):
            found = store.snapshots()
            for snapshot in () if isinstance(found, Unreadable) else found:
                assert snapshot.read() == snapshot.decode()


def assert_clean(done: Run) -> None:
    assert done.report.unhandled == []
    assert done.report.pending == []
    assert done.history.open_responses == {}
    assert done.world.error_lines == []
    assert [name for process in done.world.processes for name in process.spans.open] == []
