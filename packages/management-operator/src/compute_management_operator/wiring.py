"""Builds the operator from settings and ports; a simulation and a process differ only in the ports.

```
settings ─► Parts (one per controller folder) ─► caches ─► Planes
                     │                                       │
                     ├─ writers: Manager, under the Lease ◄──┤
                     └─ scouts:  Manager, on every replica ◄─┘     admission reads the same caches
```

A folder comes in by one line in `build_writers` or `build_scouts`. Nothing here opens a connection,
reads a file or looks at the machine: that is `serving.py`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_management_operator import hub_side
from compute_management_operator.admission.review import Admission
from compute_management_operator.assembly import Tools
from compute_management_operator.cache_limits import CacheLimits
from compute_management_operator.discovery import controller as discovery
from compute_management_operator.discovery.plan import derive_project_url
from compute_management_operator.kinds import PROJECT
from compute_management_operator.networking import Networking
from compute_management_operator.networking_switch import NetworkingSwitch
from compute_management_operator.plane_names import HOME, HUB, ROOT, SINGLE
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.workload import controller as workload
from compute_operator_kit.exchange import Credentials, NoCredentials
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.manager import Manager, Workers
from compute_operator_kit.parts import Part, controllers_of, merge_watched
from compute_operator_kit.planes import Plane, Planes
from compute_operator_kit.ports import Ports as OperatorPorts
from compute_operator_kit.reach import Reach
from compute_operator_kit.resting import Packing, stores_of

COMPONENT: Final = "compute-management-operator"
DEPLOYMENTS: Final = Kind("apps", "v1", "deployments", "Deployment")
REPORT_EVERY: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the planes are and who we are to each; a simulation needs none of it."""

    home: str = ""
    root: str = ""
    hub: str = ""
    projects: str = ""  # any URL of the server that has the project planes
    home_credentials: Credentials = field(default_factory=NoCredentials)
    root_credentials: Credentials = field(default_factory=NoCredentials)
    hub_credentials: Credentials = field(default_factory=NoCredentials)
    project_credentials: Credentials = field(default_factory=NoCredentials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports(OperatorPorts):
    """What the operator is given."""

    places: Places = field(default_factory=Places)


def build_writers(tools: Tools, networking: NetworkingSwitch) -> Iterator[Part]:
    """Controllers that write: they run on the leader alone."""
    if not tools.settings.is_federated:
        yield workload.build(tools, networking)
        return
    namespaces = hub_side.build_namespaces(tools)
    yield workload.build(tools, networking, namespaces.find_hub_namespace)
    yield from hub_side.build(tools, namespaces)


def build_scouts(tools: Tools, places: Places) -> Iterator[Part]:
    """Controllers that only look: they run on every replica."""
    if tools.settings.is_single:
        yield discovery.build_single(tools)
    else:
        yield discovery.build(tools, lambda name, uid: describe_project(places, name, uid))


def describe_project(places: Places, name: str, uid: str) -> Plane:
    return Plane(
        PlaneName(name),
        Role.PROJECT,
        base_url=derive_project_url(places.projects, name),
        credentials=places.project_credentials,
        uid=uid,
    )


class Operator:
    """The operator, wired: planes to engage, managers to run, admission to ask."""

    def __init__(self, settings: ManagementSettings, ports: Ports) -> None:
        self._settings = settings
        self._ports = ports
        self._reach = Reach()
        tools = Tools(
            settings=settings,
            clock=ports.clock,
            random=ports.random,
            operator=ObjectKey(HOME, DEPLOYMENTS, ports.namespace, COMPONENT),
            measures=ports.measures,
            reach=self._reach,
        )
        switch = Networking(settings.networking)
        networking = NetworkingSwitch(switch, self._reach, ports.clock)
        writers = tuple(build_writers(tools, networking))
        scouts = tuple(build_scouts(tools, ports.places))
        self._parts = (*writers, *scouts)
        self._limits = CacheLimits(settings.caches, is_single=settings.is_single)
        setting = ports.derive_setting(settings.clients, self._limits.find_meter)
        self.planes = Planes(ports.connect, merge_watched(self._parts), setting)
        workers = Workers(settings.workers.total, settings.workers.per_project)
        runtime = ports.derive_runtime(self.planes, settings.clients, workers)
        self.writers = Manager(controllers_of(writers), runtime)
        self.scouts = Manager(controllers_of(scouts), runtime)
        self._reach.bind(self.planes, self.writers)
        self._packing = Packing(
            lambda: stores_of(self.planes), ports.clock, lambda: self.is_pressed
        )
        for part in self._parts:
            for listener in part.listeners:
                self.planes.listen(listener)
        self.admission = Admission(tools, networking)
        self._tasks: list[asyncio.Task[None]] = []
        # Ready once is ready for good: a plane that goes away later is told by metrics.
        self._was_home_synced = False
        self._were_projects_listed = False

    # the life of a process -----------------------------------------------------------------------

    @property
    def is_pressed(self) -> bool:
        return self.writers.is_pressed

    def start(self) -> None:
        """What every replica does: engages the planes it was told of and looks for others."""
        for plane in self._known_planes():
            self.planes.engage(plane)
        self._tasks = [
            asyncio.create_task(self.scouts.run(), name="scouts"),
            asyncio.create_task(self._report(), name="report"),
        ]

    async def lead(self) -> None:
        """What the leader does, until `stop`; cancelled, it aborts what is in flight at once."""
        await self.writers.run()

    def stop(self) -> None:
        """Takes no more keys; what is in flight may end."""
        self.writers.stop()
        self.scouts.stop()

    async def close(self) -> None:
        """Ends everything that `start` began."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._reach.close()
        await self.planes.close()

    def _known_planes(self) -> Iterable[Plane]:
        places = self._ports.places
        yield Plane(HOME, Role.HOME, places.home, places.home_credentials)
        if self._settings.is_federated:
            yield Plane(HUB, Role.HUB, places.hub, places.hub_credentials)
        if self._settings.is_single:
            yield Plane(SINGLE, Role.PROJECT, places.home, places.home_credentials)
        else:
            yield Plane(ROOT, Role.ROOT, places.root, places.root_credentials)

    async def _report(self) -> None:
        while True:
            for part in self._parts:
                part.report()
            self._limits.report(self.planes, self._ports)
            await self._packing.go_on()
            await self._ports.clock.sleep(REPORT_EVERY)

    # readiness -----------------------------------------------------------------------------------

    def find_home_unsynced(self) -> str | None:
        """For `/readyz`: our own caches at home; none are kept there but those of mode `single`."""
        found = self.planes.find(SINGLE if self._settings.is_single else HOME)
        self._was_home_synced |= found is not None and found.is_synced
        return None if self._was_home_synced else "caches are not complete"

    def find_projects_unlisted(self) -> str | None:
        """For `/readyz`: the first list of Projects; whether one of them answers is not asked."""
        store = self.planes.find_store(ROOT, PROJECT)
        self._were_projects_listed |= store is not None and store.is_synced
        return None if self._were_projects_listed else "projects are not listed yet"
