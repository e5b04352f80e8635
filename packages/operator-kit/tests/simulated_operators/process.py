"""One operator process in a simulated world: started, stopped, killed, and started again.

A subclass builds its operator; the ports of the process around it are here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig, Transport
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import Planes
from compute_operator_kit.telemetry.event_recorders import EventRecorders
from compute_operator_kit.telemetry.events import EventClient, EventSource
from compute_operator_kit.testing.fakes import FakeEventRecorder, FakeMetrics
from compute_sim_planes.faults.injection import CrashableProcess
from compute_sim_planes.history import History
from compute_sim_planes.reconcile_trace import ReconcileTrace
from compute_sim_planes.time.clock import VirtualClock


class StartableOperator(Protocol):
    """What a simulated process needs of an operator."""

    planes: Planes

    def start(self) -> None: ...

    async def lead(self) -> None: ...

    def stop(self) -> None: ...

    async def close(self) -> None: ...


class ProcessWorld(Protocol):
    """What a simulated process needs of the world."""

    clock: VirtualClock
    history: History

    def transport(self, name: str, *, life: CrashableProcess) -> Transport: ...


_OperatorT = TypeVar("_OperatorT", bound=StartableOperator)


class SimulatedProcess(Generic[_OperatorT]):
    """See the module's text. A subclass sets `operator`."""

    operator: _OperatorT

    def __init__(
        self,
        world: ProcessWorld,
        name: str,
        *,
        component: str,
        clock: Clock,
        event_sources: Mapping[Kind, str] | None = None,
        writes_events: bool = False,
    ) -> None:
        self.name = name
        self.life = CrashableProcess(name)
        self.measures = FakeMetrics()
        self.recorder = FakeEventRecorder()
        self.spans = ReconcileTrace(world.history)
        self._process_world = world
        # Most tests read events from the fake; written to a plane they would count as writes.
        self._recorders = EventRecorders.for_kinds(
            EventSource(component, name), event_sources or {}, self._find_events, clock
        )
        self._writes_events = writes_events
        self._recording: list[asyncio.Task[None]] = []
        self._leading: asyncio.Task[None] | None = None

    def start(self, *, leads: bool = True) -> None:
        self.operator.start()
        if self._writes_events:
            self._recording = [
                asyncio.create_task(recorder.run(), name=f"{self.name}:events")
                for recorder in self._recorders
            ]
        if leads:
            self.begin_leading()

    def begin_leading(self) -> None:
        self._leading = asyncio.create_task(self.operator.lead(), name=f"{self.name}:leading")

    async def stop(self) -> None:
        """As on SIGTERM."""
        self.operator.stop()
        if self._leading is not None:
            await asyncio.wait({self._leading})
        await self.close()

    async def kill(self) -> None:
        """As on SIGKILL: nothing more is sent."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.wait({self._leading})
        await self.close()

    async def close(self) -> None:
        """Ends what `start` began; a subclass ends its own tasks too."""
        for task in self._recording:
            task.cancel()
        if self._recording:
            await asyncio.wait(self._recording)
        self._recording.clear()
        await self.operator.close()

    def record(self, emit: RecordEvent) -> None:
        """The event recorder of the operator."""
        self.recorder.record(emit)
        if self._writes_events:
            self._recorders.record(emit)

    def reasons(self, *, kind: Kind | None = None) -> list[str]:
        """Reasons of the events emitted so far, in order."""
        return [
            emit.reason for emit in self.recorder.emitted if kind is None or emit.key.kind == kind
        ]

    # clients ---------------------------------------------------------------------------------

    def connect(self, plane: Plane, lane: FlowControl) -> KubeClient:
        transport = self._process_world.transport(plane.name, life=self.life)
        connection = RestConfig(
            plane.name, plane.role, transport, lane, measures=self.measures, user_agent=self.name
        )
        return HttpKubeClient(connection, FieldOwner(self.name, self.name))

    def reach(self, plane: PlaneName, role: Role) -> KubeClient:
        """A client of a plane outside of the operator, as for the Lease."""
        return self.connect(Plane(plane, role), FlowControl(plane, self._process_world.clock))

    def _find_events(self, plane: PlaneName) -> EventClient | None:
        engaged = self.operator.planes.find(plane)
        return None if engaged is None else engaged.kube
