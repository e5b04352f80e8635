"""Builds the operator from settings and ports; a simulation and a process differ only in the ports.

```
settings ─► Parts (one per folder) ─► caches ─► Planes: the cell, and the hub
                  │                               │
                  └── Manager, under the Lease ◄──┘
```

A folder comes in by one line in `build_parts`. Nothing here opens a connection, reads a file or
looks at the machine: that is `serving.py`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_cell_operator.assembly import Tools
from compute_cell_operator.deployment import controller as deployment
from compute_cell_operator.instance.controller import Instances
from compute_cell_operator.network.state import Networking
from compute_cell_operator.network.switch import Switch
from compute_cell_operator.plane_names import CELL, HUB
from compute_cell_operator.quota_gate import worker
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.write_back import controller as write_back
from compute_operator_kit.crew import Crew
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.exchange import Credentials, NoCredentials
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, ObjectKey, Role, Uid
from compute_operator_kit.manager import Manager, Workers
from compute_operator_kit.parts import Part, controllers_of, merge_watched
from compute_operator_kit.planes import Plane, Planes
from compute_operator_kit.ports import Ports as OperatorPorts
from compute_operator_kit.reach import Reach
from compute_operator_kit.resting import Packing, stores_of
from compute_quota_client import QuotaClient

COMPONENT: Final = "compute-cell-operator"
DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment")
REPORT_EVERY: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the planes are and who we are to each; a simulation needs none of it."""

    cell: str = ""
    hub: str = ""
    cell_credentials: Credentials = field(default_factory=NoCredentials)
    hub_credentials: Credentials = field(default_factory=NoCredentials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports(OperatorPorts):
    """What the operator is given."""

    places: Places = field(default_factory=Places)
    quota: QuotaClient | None = None  # needed where quota is enforced


def build_parts(tools: Tools, quota: QuotaClient | None) -> Iterator[Part]:
    """Every folder of this operator."""
    yield deployment.build(tools)
    instances = Instances(tools)
    if tools.settings.is_quota_enforced:
        yield _build_quota(tools, quota, instances)
    yield instances.build()
    # Without a hub there is no copy of anything.
    if tools.settings.is_federated:
        yield write_back.build(tools)


def _build_quota(tools: Tools, quota: QuotaClient | None, instances: Instances) -> Part:
    """The worker that asks project planes, and the instance pass as its reader."""
    if quota is None:
        raise InvariantError("wiring the quota gate: quota is enforced, and there is no client")
    part, gate = worker.build(tools, quota, instances.told)
    instances.bind(gate)
    return part


class Operator:
    """The operator, wired: planes to engage, and a manager to run."""

    def __init__(self, settings: CellSettings, ports: Ports) -> None:
        self._settings = settings
        self._ports = ports
        self._reach = Reach()
        self._operator = ObjectKey(CELL, DEPLOYMENTS, ports.namespace, COMPONENT)
        switch = Switch(Networking(settings.networking), self._reach, ports.clock)
        tools = Tools(
            settings=settings,
            clock=ports.clock,
            random=ports.random,
            operator=self._operator,
            networking=switch,
            measures=ports.measures,
            recorder=ports.recorder,
            reach=self._reach,
        )
        self._parts = tuple(build_parts(tools, ports.quota))
        setting = ports.derive_setting(settings.clients)
        self.planes = Planes(ports.connect, merge_watched(self._parts), setting)
        # One cell is one plane: namespaces take turns, and each may use every worker that is free.
        workers = Workers(settings.workers.total, settings.workers.total)
        runtime = ports.derive_runtime(self.planes, settings.clients, workers)
        self.manager = Manager(controllers_of(self._parts), runtime)
        self._reach.bind(self.planes, self.manager)
        self._packing = Packing(
            lambda: stores_of(self.planes), ports.clock, lambda: self.is_pressed
        )
        self.planes.listen(switch)
        for part in self._parts:
            for listener in part.listeners:
                self.planes.listen(listener)
        self._reporting: asyncio.Task[None] | None = None
        # Ready once is ready for good: a plane that goes away later is told by metrics.
        self._was_synced = False

    # the life of a process -----------------------------------------------------------------------

    @property
    def is_pressed(self) -> bool:
        return self.manager.is_pressed

    def start(self) -> None:
        """What every replica does: engages its planes, so that caches are warm."""
        for plane in self._known_planes():
            self.planes.engage(plane)
        self._reporting = asyncio.create_task(self._report(), name="report")

    async def lead(self) -> None:
        """What the leader does, until `stop`; cancelled, it aborts what is in flight at once."""
        self._tell_of_quota()
        beside = Crew("leader")
        for place, part in enumerate(self._parts):
            beside.start(part.attend(), f"part-{place}")
        try:
            await self.manager.run()
        finally:
            await beside.stop()

    def _tell_of_quota(self) -> None:
        """Switched off is never a fallback, so it is said aloud (operations.md 7)."""
        if self._settings.is_quota_enforced:
            return
        message = "Quota is disabled by configuration: Instances start without a claim"
        reason, action = reasons.QUOTA_ENFORCEMENT_DISABLED, "Starting"
        told = Emit(self._operator, Uid(""), reason, message, action, type="Warning")
        self._ports.recorder.record(told)

    def stop(self) -> None:
        """Takes no more keys; what is in flight may end."""
        self.manager.stop()

    async def close(self) -> None:
        """Ends everything that `start` began."""
        self.stop()
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.wait({self._reporting})
        await self._reach.close()
        await self.planes.close()

    def _known_planes(self) -> Iterable[Plane]:
        places = self._ports.places
        yield Plane(CELL, Role.HOME, places.cell, places.cell_credentials)
        if self._settings.is_federated:
            yield Plane(HUB, Role.HUB, places.hub, places.hub_credentials)

    async def _report(self) -> None:
        while True:
            for part in self._parts:
                part.report()
            await self._packing.go_on()
            await self._ports.clock.sleep(REPORT_EVERY)

    # readiness -----------------------------------------------------------------------------------

    def find_unsynced(self) -> str | None:
        """For `/readyz`: the cell's own caches; no far plane is asked."""
        found = self.planes.find(CELL)
        self._was_synced |= found is not None and found.is_synced
        return None if self._was_synced else "caches are not complete"
