"""One operator process in a simulated world: started, stopped, crashed, and made anew.

A world's own process says how its operator is wired; everything around the operator is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from compute_operator_kit.clock import Clock
from compute_operator_kit.events import Events, Reporter
from compute_operator_kit.exchange import Connection, Transport
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.planes import Plane, Planes
from compute_operator_kit.recorders import Recorders
from compute_operator_kit.testing import FakeMeasures, FakeRecorder
from compute_sim_planes.clock import VirtualClock
from compute_sim_planes.faults import OperatorLife
from compute_sim_planes.history import History
from compute_sim_planes.passes import RecordedPasses


class Wired(Protocol):
    """An operator, as its process knows it."""

    planes: Planes

    def start(self) -> None: ...

    async def lead(self) -> None: ...

    def stop(self) -> None: ...

    async def close(self) -> None: ...


class Around(Protocol):
    """The world, as a process knows it."""

    clock: VirtualClock
    history: History

    def transport(self, name: str, *, life: OperatorLife) -> Transport: ...


_OperatorT = TypeVar("_OperatorT", bound=Wired)


class SimulatedProcess(Generic[_OperatorT]):
    """See the module's text. Whoever derives from it sets `operator`."""

    operator: _OperatorT

    def __init__(
        self,
        around: Around,
        name: str,
        *,
        component: str,
        clock: Clock,
        voices: Mapping[Kind, str] | None = None,
        writes_events: bool = False,
    ) -> None:
        self.name = name
        self.life = OperatorLife(name)
        self.measures = FakeMeasures()
        self.recorder = FakeRecorder()
        self.spans = RecordedPasses(around.history)
        self._around = around
        # Most tests read events from the fake; in the world they would be writes like any other.
        self._tellers = Recorders.speaking_as(
            Reporter(component, name), voices or {}, self._find_events, clock
        )
        self._writes_events = writes_events
        self._telling: list[asyncio.Task[None]] = []
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

    def begin_leading(self) -> None:
        self._leading = asyncio.create_task(self.operator.lead(), name=f"{self.name}:leading")

    async def stop(self) -> None:
        """As on SIGTERM."""
        self.operator.stop()
        if self._leading is not None:
            await asyncio.wait({self._leading})
        await self.close()

    async def kill(self) -> None:
        """Nothing more is sent; what was in memory is gone."""
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.wait({self._leading})
        await self.close()

    async def close(self) -> None:
        """Ends what `start` began; a process that has more of its own adds to it."""
        for task in self._telling:
            task.cancel()
        if self._telling:
            await asyncio.wait(self._telling)
        self._telling.clear()
        await self.operator.close()

    def record(self, emit: Emit) -> None:
        """Where the operator tells its events."""
        self.recorder.record(emit)
        if self._writes_events:
            self._tellers.record(emit)

    def reasons(self, *, kind: Kind | None = None) -> list[str]:
        """Reasons of the events emitted so far, in order."""
        return [
            emit.reason for emit in self.recorder.emitted if kind is None or emit.key.kind == kind
        ]

    # its ways --------------------------------------------------------------------------------

    def connect(self, plane: Plane, lane: Lane) -> Kube:
        transport = self._around.transport(plane.name, life=self.life)
        connection = Connection(
            plane.name, plane.role, transport, lane, measures=self.measures, user_agent=self.name
        )
        return KubeHttp(connection, Writer(self.name, self.name))

    def reach(self, plane: PlaneName, role: Role) -> Kube:
        """The process's own way to a plane, for what stands around the operator in a process."""
        return self.connect(Plane(plane, role), Lane(plane, self._around.clock))

    def _find_events(self, plane: PlaneName) -> Events | None:
        engaged = self.operator.planes.find(plane)
        return None if engaged is None else engaged.kube
