"""The management operator in a simulated world: planes, processes, people, faults, and a record.

Time is virtual and a run is a function of its seed. The operator is wired by `wiring.py`, down to
the bytes of its requests; only what is below its transports is simulated. Planes are called as the
operator calls them (`planes`), projects by their name. Everything a scenario does goes through
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

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson
from simulated_operators.ground import START, USER
from simulated_operators.people import PeopledGround
from simulated_operators.process import SimulatedProcess
from typing_extensions import override

from compute_management_operator.admission.review import AdmissionResult as Verdict
from compute_management_operator.admission.webhook import PATH
from compute_management_operator.planes import DEPLOYMENT, HOME, HUB, PROJECT, ROOT, SINGLE
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import COMPONENT, ManagementOperator
from compute_operator_kit.apply.context import AlwaysLeading, Leadership
from compute_operator_kit.client.rest import StreamingResponse, Transport
from compute_operator_kit.config.loader import validate_settings
from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.json import (
    Json,
    JsonMapping,
    JsonObject,
    decode_json_object,
    member_int,
    member_list,
    member_object,
)
from compute_operator_kit.core.keys import Kind, ObjectKey, Role
from compute_operator_kit.planes.endpoints import PlaneEndpoint, PlaneEndpoints
from compute_operator_kit.telemetry.metrics_catalogue import EVERY_METRIC, MetricType
from compute_operator_kit.testing.fakes import FakeMetrics
from compute_sim_planes.api_server.admission.webhook_clients import RegisteredWebhooks
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.faults.injection import CrashableProcess
from compute_sim_planes.faults.plans import Fault
from compute_sim_planes.history import History, Request
from compute_sim_planes.json_types import JsonObject as Manifest
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.time.clock import LoopReport, VirtualClock, run
from management_builders.definitions import KNOWN_KINDS, OTHER_KINDS, definitions, neighbours
from management_builders.documents import (
    a_condition_document,
    a_deployment_status,
    a_location_document,
    a_network_document,
    a_project_document,
)
from management_builders.object_readers import (
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


class Process(SimulatedProcess[ManagementOperator]):
    """One process of the management operator."""

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
        super().__init__(world, name, component=COMPONENT, clock=clock, writes_events=writes_events)
        ports = OperatorPorts(
            connect=self.connect,
            clock=clock,
            random=world.clock.random(name),
            endpoints=PlaneEndpoints({Role.PROJECT: PlaneEndpoint("https://milo.example")}),
            leadership=leadership,
            event_recorder=self,
            metrics=self.measures,
            spans=self.spans,
        )
        self.operator = ManagementOperator(settings, ports)

    async def admit(self, review: JsonObject) -> Verdict:
        return await self.operator.admission.review(review)


class _MiloDoor:
    """Milo's root or one of its projects, by the name that the operator has for it."""

    def __init__(self, milo: Milo, name: str, user: User) -> None:
        self._milo = milo.connect(user)
        self._place = "" if name == ROOT else project_path(name)

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> StreamingResponse:
        return await self._milo.request(method, self._place + target, headers, body)


# --- the world ------------------------------------------------------------------------------------


class World(PeopledGround):
    """Planes, and all clients of them."""

    def __init__(self, clock: VirtualClock, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(clock, KNOWN_KINDS, others=OTHER_KINDS, faults=faults)
        self.processes: list[Process] = []
        self.operator_user = OPERATOR
        self.witness = Witness()
        # What stands between a process and a plane, besides faults; for tests that hold requests.
        self.between: Callable[[str, Transport], Transport] = lambda _, transport: transport
        self.webhooks = RegisteredWebhooks()
        self.milo: Milo | None = None  # in its place stands a plain plane with Projects

    # planes ----------------------------------------------------------------------------------

    async def add_plane(self, name: str, *crds: Manifest) -> SimulatedPlane:
        parts = PlaneParts(
            clock=self.clock, identities=self.clock.identities, webhooks=self.webhooks
        )
        plane = SimulatedPlane(name, parts)
        self.adopt(plane)
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
            await self.create(name, a_location_document(city))
        await self.create(name, a_network_document())

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
        """A plane with our kinds and no Project: that of mode `single`, or an unknown one."""
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
        """Registers this process as the webhook of a plane for every Workload."""

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
        existing = await self._definition(plane, "GET", target)
        versions = spec_of(existing)["versions"]
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
        return decode_json_object(raw)

    def transport(self, name: str, *, life: CrashableProcess) -> Transport:
        """The operator's way to a plane, with faults in it and everything written down."""
        way = self.between(name, self.way(name, self.operator_user))
        return self.faulty(way, name, life)

    @override
    def way(self, name: str, user: User) -> Transport:
        """Where no plane bears the name, Milo has it."""
        if name in self.planes:
            return super().way(name, user)
        assert self.milo is not None, f"no plane {name!r}"
        return _MiloDoor(self.milo, name, user)

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

    # cells -----------------------------------------------------------------------------------

    async def run_deployment(
        self, plane: str, name: str, namespace: str = "default", *, replicas: int = 1
    ) -> None:
        """What a cell would say about a deployment that runs, at its present generation."""
        existing = await self.get(plane, DEPLOYMENT, name, namespace)
        status = a_deployment_status(
            a_condition_document("Available", "True", "StableInstanceFound"),
            a_condition_document("ReplicasReady", "True", "ReplicasAvailable"),
            a_condition_document("Ready", "True", "ReplicasAvailable"),
            observed=member_int(member_object(existing, "metadata"), "generation"),
            replicas=replicas,
            desired=replicas,
            ready=replicas,
        )
        await self.set_status(plane, DEPLOYMENT, name, status, namespace)

    async def add_network(self, plane: str, name: str, namespace: str = "default") -> None:
        await self.create(plane, a_network_document(name, namespace))

    @staticmethod
    def key_of(plane: str, document: JsonMapping) -> ObjectKey:
        return key_of(plane, document)

    # what happened ---------------------------------------------------------------------------

    @override
    async def rests(self, minutes: float = 310, identity: str = "operator") -> list[Request]:
        """310 minutes hold ten resyncs."""
        return await super().rests(minutes, identity)


# --- playing --------------------------------------------------------------------------------------

Scenario: TypeAlias = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind."""

    history: History
    report: LoopReport
    world: World


def play(scenario: Scenario, *faults: Fault, seed: int = 1, is_clean: bool = True) -> Run:
    """Plays a scenario; the processes it made are stopped at its end.

    A clean run leaves nothing behind: no task, no open response, no exception that was not
    retrieved, and no log line above a warning.
    """
    worlds: list[World] = []
    report = LoopReport()

    async def main(clock: VirtualClock) -> None:
        world = World(clock, faults)
        worlds.append(world)
        await world.add_fixed_planes()
        with world.heard("compute_management_operator", "compute_operator_kit"):
            await scenario(world)
            await world.close()

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
    assert done.history.open_responses == {}
    assert done.world.error_lines == []
    for process in done.world.processes:
        assert process.spans.open == []
        assert misfits(process.measures) == []


def misfits(measures: FakeMetrics) -> list[str]:
    """Measurements the catalogue does not have, or with other labels: they would be dropped."""
    by_type = {
        MetricType.COUNTER: [*measures.counts],
        MetricType.GAUGE: [*measures.gauges],
        MetricType.HISTOGRAM: [*measures.values],
    }
    known = {metric.name: (metric.type, set(metric.labels)) for metric in EVERY_METRIC}
    return [
        f"{kind} {name} {dict(labels)}"
        for kind, existing in by_type.items()
        for name, labels in existing
        if known.get(name) != (kind, {label for label, _ in labels})
    ]
