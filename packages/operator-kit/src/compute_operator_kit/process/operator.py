"""The planes, caches and controllers of one operator, started on every replica and led under the
Lease.

```
settings ─► ControllerSetups (one per controller folder) ─► caches ─► Planes
                 │                                                     │
                 ├─ leader:    Managers, under the Lease ◄─────────────┤
                 └─ read_only: Manager, on every replica ◄─────────────┘
```

Caches are kept by every replica, so that a new leader starts with complete ones and an outage of
the leader lasts as long as the Lease. No connection is opened, no file is read here: a process and
a simulation differ only in the ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from compute_operator_kit.config.settings import ClientsSettings
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.manager import Manager, Workers
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.controller.registration import (
    ControllerSetup,
    controllers_of,
    merge_cached_kinds,
    run_nothing,
)
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.core.tasks import SupervisedTasks
from compute_operator_kit.planes.cache_compactor import CacheCompactor, stores_of
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import FindMeter, PlaneListener, Planes, measure_nothing

DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment")
REPORT_EVERY: Final = timedelta(seconds=5)


def own_deployment(home: PlaneName, namespace: str, component: str) -> ObjectKey:
    """The Deployment that this process is a pod of: events about the operator itself regard it."""
    return ObjectKey(home, DEPLOYMENTS, namespace, component)


def set_no_gauges(_: Planes) -> None:
    """For an operator without gauges over all planes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSetup:
    """The controllers of one operator, and the planes that are known from its settings."""

    context: OperatorContext  # the one that the controllers were built with
    planes: tuple[Plane, ...]  # engaged by `start`
    ready_plane: PlaneName  # readiness waits for its caches and for no other plane's
    leader_controllers: tuple[ControllerSetup, ...]
    read_only_controllers: tuple[ControllerSetup, ...] = ()
    workers: Workers
    listeners: tuple[PlaneListener, ...] = ()  # beside those of the controllers
    find_meter: FindMeter = measure_nothing
    update_gauges: Callable[[Planes], None] = set_no_gauges  # every few seconds


class Operator:
    """See the module's text; `RunnableOperator` for its process."""

    def __init__(
        self, setup: OperatorSetup, ports: OperatorPorts, clients: ClientsSettings
    ) -> None:
        self._setup = setup
        self._clock = ports.clock
        self._controllers = (*setup.leader_controllers, *setup.read_only_controllers)
        self.planes = Planes(
            ports.connect,
            merge_cached_kinds(self._controllers),
            ports.registry_deps(clients, setup.find_meter),
        )
        deps = ports.manager_deps(self.planes, clients, setup.workers)
        shared = (each for each in setup.leader_controllers if each.workers is None)
        self.leader_manager = Manager(controllers_of(shared), deps)
        self.leader_managers = (
            self.leader_manager,
            *(
                Manager(controllers_of((each,)), replace(deps, workers=each.workers))
                for each in setup.leader_controllers
                if each.workers is not None
            ),
        )
        self.read_only_manager = (
            Manager(controllers_of(setup.read_only_controllers), deps)
            if setup.read_only_controllers
            else None
        )
        setup.context.bind(self.planes, *self.leader_managers)
        self._compactor = CacheCompactor(
            lambda: stores_of(self.planes), ports.clock, lambda: self.is_busy
        )
        for listener in setup.listeners:
            self.planes.listen(listener)
        for controller in self._controllers:
            for listener in controller.listeners:
                self.planes.listen(listener)
        self._tasks: list[asyncio.Task[None]] = []
        self._was_synced = False

    @property
    def is_busy(self) -> bool:
        return self.leader_manager.is_busy

    def start(self) -> None:
        """On every replica: engages the planes of the settings and runs read-only controllers."""
        for plane in self._setup.planes:
            self.planes.engage(plane)
        if self.read_only_manager is not None:
            self._start_task(self.read_only_manager.run(), "read-only controllers")
        self._start_task(self._report(), "report")

    async def lead(self) -> None:
        """On the leader, until `stop`; when it is cancelled, reconciles in flight are aborted."""
        beside = SupervisedTasks("leader")
        for place, controller in enumerate(self._setup.leader_controllers):
            if controller.run_as_leader is not run_nothing:
                beside.start(controller.run_as_leader(), f"part-{place}")
        try:
            async with asyncio.TaskGroup() as group:
                for manager in self.leader_managers:
                    group.create_task(manager.run())
        finally:
            await beside.stop()

    def stop(self) -> None:
        """No more keys are started; reconciles in flight may end."""
        for manager in self.leader_managers:
            manager.stop()
        if self.read_only_manager is not None:
            self.read_only_manager.stop()

    async def close(self) -> None:
        """Ends all that `start` began."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._setup.context.close()
        await self.planes.close()

    def find_unsynced(self) -> str | None:
        """For `/readyz`: what is missing, or None.

        Ready once is ready for good: a plane that is away later is reported by metrics, and must
        not take the replica out of its Service.
        """
        plane = self.planes.find(self._setup.ready_plane)
        self._was_synced |= plane is not None and plane.is_synced
        return None if self._was_synced else "caches are not complete"

    def _start_task(self, work: Coroutine[object, object, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _report(self) -> None:
        while True:
            for controller in self._controllers:
                controller.update_gauges()
            self._setup.update_gauges(self.planes)
            await self._compactor.run_once()
            await self._clock.sleep(REPORT_EVERY)
