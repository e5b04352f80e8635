"""Operators as processes of a simulated world: started, stopped, killed, frozen, started again.

Each is wired by its own `wiring.py`; what a real process has around that (`kit.house`) is built
here from the same parts: the Lease, the recorder of events, the planes' clients. Only transports,
clock and chance are the world's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_operator_kit.apply.desk import Leadership, Recorder
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.connector import PatientLane
from compute_operator_kit.election import Timing
from compute_operator_kit.events import Events, Reporter
from compute_operator_kit.exchange import Connection
from compute_operator_kit.house import Wired
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.leader import LEASE, Candidacy, Election, LeaseLostError
from compute_operator_kit.planes import Plane
from compute_operator_kit.recorders import Recorders
from compute_operator_kit.testing import FakeMeasures
from compute_sim_planes.api_server.identity import User
from compute_sim_planes.api_server.transport import Transport
from compute_sim_planes.fault_links import Link
from compute_sim_planes.fault_plans import Action, Fault
from compute_sim_planes.faults import FaultyTransport, Injector, OperatorLife
from compute_sim_planes.passes import RecordedPasses
from e2e.backends.sim.canaries import CanaryCredentials
from e2e.backends.sim.freezing import Gate, GatedClock, GatedTransport
from e2e.backends.sim.planes import SimPlanes

NAMESPACE: Final = "compute-system"
KILL: Final = Fault("A5", Action.CRASH_BEFORE)
# A container that ends by itself comes again after the least of the kubelet's pauses here.
RESTART_AFTER: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the processes of a world share."""

    planes: SimPlanes
    injector: Injector
    links: dict[tuple[str, str], Link]
    # Who an operator is to a plane, by both names.
    user_of: Callable[[str, str], User]
    # Where a process of a component puts its numbers.
    make_measures: Callable[[str], FakeMeasures] = lambda _: FakeMeasures()

    def link(self, operator: str, plane: str) -> Link:
        return self.links.setdefault((operator, plane), Link())


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One operator: how it is called, where it lives, how it is wired."""

    operator: str  # in scenarios
    component: str  # in Leases, events and user agents
    home: PlaneName
    # The operator's name of a plane to that of the scenario.
    plane_of: Callable[[str], str]
    wire: Callable[[Fittings], Wired]
    voices: Mapping[Kind, str] = field(default_factory=dict[Kind, str])
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class Fittings:
    """What a blueprint's `wire` gives to `wiring.Ports`."""

    connect: Callable[[Plane, Lane], Kube]
    clock: Clock
    random: Random
    leadership: Leadership
    recorder: Recorder
    measures: FakeMeasures
    spans: RecordedPasses
    # The way to a plane by the scenario's name, for clients that are not the kit's.
    reach: Callable[[str], Transport]
    # What must be closed after the operator is.
    closing: list[Callable[[], Awaitable[None]]] = field(
        default_factory=list[Callable[[], Awaitable[None]]]
    )


class Process:
    """One process, from its start to its end; a restart is another one."""

    def __init__(self, blueprint: Blueprint, around: Surroundings, name: str) -> None:
        self.name = name
        self.blueprint = blueprint
        self.gate = Gate()
        self.life = OperatorLife(name)
        self.measures = around.make_measures(blueprint.component)
        self.spans = RecordedPasses(around.planes.history)
        self.has_ended = False
        self._around = around
        self._clock = GatedClock(around.planes.clock, self.gate)
        random = around.planes.clock.random(name)
        key = ObjectKey(blueprint.home, LEASE, NAMESPACE, blueprint.component)
        self.election = Election(
            self._connect_home("leader-election"),
            Candidacy(key, name, blueprint.timing),
            clock=self._clock,
            random=random,
            measures=self.measures,
        )
        self._recorders = Recorders.speaking_as(
            Reporter(blueprint.component, name), blueprint.voices, self._find_events, self._clock
        )
        self._fittings = Fittings(
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
        self._errands: list[asyncio.Task[None]] = []
        self._leading: asyncio.Task[None] | None = None

    # its life ------------------------------------------------------------------------------------

    def start(self) -> None:
        self.operator.start()
        self._errands = [
            asyncio.create_task(recorder.run(), name=f"{self.name}:events")
            for recorder in self._recorders
        ]
        self._leading = asyncio.create_task(self._lead(), name=f"{self.name}:leading")

    async def stop(self) -> None:
        """As on SIGTERM: what is in flight ends, the Lease is given back."""
        self.gate.thaw()
        self.operator.stop()
        if self._leading is not None:
            if not self._is_writing:
                self._leading.cancel()
            await asyncio.wait({self._leading})
        await self._end()

    async def kill(self) -> None:
        """Nothing more is sent; what was in memory is gone."""
        self.life.crash(KILL)
        self.gate.thaw()
        await self._end()

    async def _lead(self) -> None:
        try:
            await self.election.lead(self._write)
        except LeaseLostError:
            # The process ends with exit code 1; whoever keeps it starts another.
            return

    async def _write(self) -> None:
        self._is_writing = True
        await self.operator.lead()

    async def _end(self) -> None:
        self.has_ended = True
        tasks = [*self._errands, *([self._leading] if self._leading is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.operator.close()
        for close in self._fittings.closing:
            await close()

    @property
    def answers(self) -> bool:
        """Whether somebody who asks it for its numbers gets any."""
        return self.gate.is_open and not self.life.is_dead and not self.has_ended

    @property
    def has_lost_its_lease(self) -> bool:
        return self._leading is not None and self._leading.done() and not self.has_ended

    # its ways ------------------------------------------------------------------------------------

    def _connect(self, plane: Plane, lane: Lane) -> Kube:
        component = self.blueprint.component
        connection = Connection(
            plane.name,
            plane.role,
            self._transport(self.blueprint.plane_of(plane.name)),
            lane,
            credentials=CanaryCredentials(self.blueprint.operator, plane.name),
            measures=self.measures,
            user_agent=component,
        )
        return KubeHttp(connection, Writer("cache", component))

    def _connect_home(self, writer: str) -> Kube:
        home = self.blueprint.home
        lane = PatientLane(home, self._clock)
        kube = self._connect(Plane(home, Role.HOME), lane)
        return kube.acting_as(Writer(writer, self.blueprint.component))

    def _transport(self, plane: str) -> Transport:
        """A way to a plane, by the scenario's name, with the process's faults and links in it."""
        around = self._around
        user = around.user_of(self.blueprint.operator, plane)
        faulty = FaultyTransport(
            GatedTransport(around.planes.reach(plane, user), self.gate),
            around.injector,
            plane=plane,
            kinds=around.planes.kind_names(plane),
            life=self.life,
            link=around.link(self.blueprint.operator, plane),
        )
        return around.planes.record(faulty, plane, self.blueprint.operator)

    def _find_events(self, plane: PlaneName) -> Events | None:
        engaged = self.operator.planes.find(plane)
        if engaged is None:
            return None
        return engaged.kube.acting_as(Writer("events", self.blueprint.component))
