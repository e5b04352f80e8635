"""Operators as processes of the simulation, which can be stopped, killed, frozen and restarted.

Each operator is built by its own `wiring.py`. Lease election, event recorder and clients, which
`operator_process` sets up in a real process, are set up here from the same parts; only transports,
clock and random source are simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_operator_kit.apply.context import EventRecorder, Leadership
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.planes.client_factory import FlowControlWithoutBreaker
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.process.election import Timing
from compute_operator_kit.process.leader import LEASE, Candidacy, Election, LeaseLostError
from compute_operator_kit.process.operator_process import RunnableOperator
from compute_operator_kit.telemetry.event_recorders import EventRecorders
from compute_operator_kit.telemetry.events import EventClient, EventSource
from compute_operator_kit.testing.fakes import FakeMetrics
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.http.transport import Transport
from compute_sim_planes.faults.injection import CrashableProcess, FaultyTransport, Injector
from compute_sim_planes.faults.links import Link
from compute_sim_planes.faults.plans import Action, Fault
from compute_sim_planes.history import History
from compute_sim_planes.reconcile_trace import ReconcileTrace
from e2e.backends.sim.canaries import CanaryCredentials
from e2e.backends.sim.freezing import ElectionClock, FreezeGate, GatedClock, GatedTransport
from e2e.backends.sim.planes import SimPlanes

NAMESPACE: Final = "compute-system"
KILL: Final = Fault("A5", Action.CRASH_BEFORE)
# Wait before an ended process is started again; shorter than a kubelet's back-off.
RESTART_AFTER: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """What all processes of a run share."""

    planes: SimPlanes
    injector: Injector
    links: dict[tuple[str, str], Link]
    # The identity of an operator (first argument) on a plane (second argument).
    user_of: Callable[[str, str], User]
    # Creates the metrics of a process, by component.
    make_measures: Callable[[str], FakeMetrics] = lambda _: FakeMetrics()
    make_spans: Callable[[History], ReconcileTrace] = ReconcileTrace

    def link(self, operator: str, plane: str) -> Link:
        return self.links.setdefault((operator, plane), Link())


@dataclass(frozen=True, slots=True)
class Blueprint:
    """How to build one operator, and its names."""

    operator: str  # in scenarios
    component: str  # in Leases, events and user agents
    home: PlaneName
    # Translates the operator's name of a plane into that of the scenario.
    plane_of: Callable[[str], str]
    wire: Callable[[ProcessPorts], RunnableOperator]
    event_sources: Mapping[Kind, str] = field(default_factory=dict[Kind, str])
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class ProcessPorts:
    """The simulated ports that `Blueprint.wire` passes to `wiring.Ports`."""

    connect: Callable[[Plane, FlowControl], KubeClient]
    clock: Clock
    random: Random
    leadership: Leadership
    recorder: EventRecorder
    measures: FakeMetrics
    spans: ReconcileTrace
    # Transport to a plane by the scenario's name, for clients that are not the kit's.
    reach: Callable[[str], Transport]
    # Called after the operator is closed.
    closing: list[Callable[[], Awaitable[None]]] = field(
        default_factory=list[Callable[[], Awaitable[None]]]
    )


class Process:
    """One process from start to end; a restart is a new `Process`."""

    def __init__(self, blueprint: Blueprint, context: ProcessContext, name: str) -> None:
        self.name = name
        self.blueprint = blueprint
        self.gate = FreezeGate()
        self.life = CrashableProcess(name)
        self.measures = context.make_measures(blueprint.component)
        self.spans = context.make_spans(context.planes.history)
        self.has_ended = False
        self._context = context
        self._clock = GatedClock(context.planes.clock, self.gate)
        self._election_clock = ElectionClock(context.planes.clock, self.gate)
        random = context.planes.clock.random(name)
        key = ObjectKey(blueprint.home, LEASE, NAMESPACE, blueprint.component)
        self.election = Election(
            self._connect_home("leader-election"),
            Candidacy(key, name, blueprint.timing),
            clock=self._election_clock,
            random=random,
            measures=self.measures,
        )
        self._recorders = EventRecorders.for_kinds(
            EventSource(blueprint.component, name),
            blueprint.event_sources,
            self._find_events,
            self._clock,
        )
        self._fittings = ProcessPorts(
            connect=self._connect,
            clock=self._clock,
            random=random,
            leadership=self.election,
            recorder=self._recorders,
            measures=self.measures,
            spans=self.spans,
            reach=self._transport,
        )
        self.operator = blueprint.wire(self._fittings)
        self._is_writing = False
        self._background_tasks: list[asyncio.Task[None]] = []
        self._leading: asyncio.Task[None] | None = None

    # life cycle ----------------------------------------------------------------------------------

    def start(self) -> None:
        self.operator.start()
        self._background_tasks = [
            asyncio.create_task(recorder.run(), name=f"{self.name}:events")
            for recorder in self._recorders
        ]
        self._leading = asyncio.create_task(self._lead(), name=f"{self.name}:leading")

    async def stop(self) -> None:
        """As on SIGTERM: requests in flight finish and the Lease is released."""
        self.gate.thaw()
        self.operator.stop()
        if self._leading is not None:
            if not self._is_writing:
                self._leading.cancel()
            await asyncio.wait({self._leading})
        await self._end()

    async def kill(self) -> None:
        """As on SIGKILL: no further request is sent."""
        self.life.crash(KILL)
        self.gate.thaw()
        await self._end()

    def calm(self) -> None:
        """From now on the Lease is renewed at a third of the pace."""
        self._election_clock.stretch = 3

    async def _lead(self) -> None:
        try:
            await self.election.lead(self._write)
        except LeaseLostError:
            # As exit code 1 of a real process: `SimReplicas` starts another one.
            return

    async def _write(self) -> None:
        self._is_writing = True
        await self.operator.lead()

    async def _end(self) -> None:
        self.has_ended = True
        tasks = [*self._background_tasks, *([self._leading] if self._leading is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.operator.close()
        for close in self._fittings.closing:
            await close()

    @property
    def answers(self) -> bool:
        """Whether a scrape of its metrics would succeed."""
        return self.gate.is_open and not self.life.is_dead and not self.has_ended

    @property
    def has_lost_its_lease(self) -> bool:
        return self._leading is not None and self._leading.done() and not self.has_ended

    # connections ---------------------------------------------------------------------------------

    def _connect(self, plane: Plane, lane: FlowControl) -> KubeClient:
        component = self.blueprint.component
        connection = RestConfig(
            plane.name,
            plane.role,
            self._transport(self.blueprint.plane_of(plane.name)),
            lane,
            credentials=CanaryCredentials(self.blueprint.operator, plane.name),
            measures=self.measures,
            user_agent=component,
        )
        return HttpKubeClient(connection, FieldOwner("cache", component))

    def _connect_home(self, writer: str) -> KubeClient:
        home = self.blueprint.home
        lane = FlowControlWithoutBreaker(home, self._clock)
        kube = self._connect(Plane(home, Role.HOME), lane)
        return kube.as_owner(FieldOwner(writer, self.blueprint.component))

    def _transport(self, plane: str) -> Transport:
        """A transport to a plane, by the scenario's name, with the faults and links of this
        process.
        """
        context = self._context
        user = context.user_of(self.blueprint.operator, plane)
        faulty = FaultyTransport(
            GatedTransport(context.planes.reach(plane, user), self.gate),
            context.injector,
            plane=plane,
            kinds=context.planes.kind_names(plane),
            process=self.life,
            link=context.link(self.blueprint.operator, plane),
        )
        return context.planes.record(faulty, plane, self.blueprint.operator)

    def _find_events(self, plane: PlaneName) -> EventClient | None:
        engaged = self.operator.planes.find(plane)
        if engaged is None:
            return None
        return engaged.kube.as_owner(FieldOwner("events", self.blueprint.component))
