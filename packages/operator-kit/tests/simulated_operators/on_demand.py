"""A controller on one simulated project plane with kinds on demand, for tests of the runtime.

ConfigMaps trigger two kinds: Secrets, which a reconcile needs, and ServiceAccounts, which it can do
without. Secrets keep their own watch open as long as one exists.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.cache.lister import Caches, Change
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient, Page, Preconditions
from compute_operator_kit.client.rest import RestConfig, Transport
from compute_operator_kit.controller.manager import Manager, ManagerDeps
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.json_patch import PatchOp, PatchStep
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Snapshot, Unreadable
from compute_operator_kit.planes.engaged_plane import CachedKind, OnDemand, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.time.clock import VirtualClock

PROJECT: Final = PlaneName("acme")
TRIGGER: Final = Kind("", "v1", "configmaps", "ConfigMap")
NEEDED: Final = Kind("", "v1", "secrets", "Secret")
OTHER: Final = Kind("", "v1", "serviceaccounts", "ServiceAccount")
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
IN_USE: Final = OnDemand((TRIGGER,))
CACHED: Final = (
    CachedKind(Role.PROJECT, TRIGGER),
    CachedKind(Role.PROJECT, NEEDED, on_demand=OnDemand((TRIGGER,), while_present=True)),
    CachedKind(Role.PROJECT, OTHER, on_demand=IN_USE),
)


def a_key(kind: Kind, name: str) -> ObjectKey:
    return ObjectKey(PROJECT, kind, "default", name)


def enqueue_trigger(change: Change, _: Caches) -> Iterable[ObjectKey]:
    """Of a Secret or a ServiceAccount: the ConfigMap of its name."""
    return (a_key(TRIGGER, change.key.name),)


@dataclass
class Reconciled:
    """What reconciles saw, by name: whether the Secret and the ServiceAccount of the name exist."""

    seen: dict[str, tuple[str, str]] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        assert work.caches.lister(PROJECT, NEEDED).is_synced, "reconciled without what it needs"
        self.seen[key.name] = (look(work.caches, NEEDED, key), look(work.caches, OTHER, key))
        self.times[key.name] += 1
        return Result()


def look(caches: Caches, kind: Kind, key: ObjectKey) -> str:
    match caches.lister(PROJECT, kind).get(key.namespace, key.name):
        case Absent():
            return "absent"
        case Unreadable(reason):
            return reason
        case _:
            return "there"


@dataclass(frozen=True)
class OnDemandFixture:
    """The manager and its planes, the server, and the client of a user."""

    planes: Planes
    manager: Manager
    server: SimulatedPlane
    user: KubeClient
    reconciled: Reconciled
    clock: VirtualClock

    async def make(self, kind: Kind, name: str) -> None:
        key = a_key(kind, name)
        metadata = {"name": key.name, "namespace": key.namespace}
        body: JsonMapping = {"apiVersion": "v1", "kind": kind.kind, "metadata": metadata}
        await self.user.create(key, body)

    async def annotate(self, kind: Kind, name: str, annotations: JsonMapping) -> None:
        step = PatchStep(PatchOp.ADD, "/metadata/annotations", annotations)
        await self.user.patch_json(a_key(kind, name), [step])

    async def remove(self, kind: Kind, name: str) -> None:
        key = a_key(kind, name)
        existing = await self.user.get(key)
        assert isinstance(existing, Snapshot)
        await self.user.delete(key, preconditions=Preconditions(existing.metadata.uid))

    async def names(self, kind: Kind) -> set[str]:
        """The names of the objects on the server."""
        page = await self.user.list(kind)
        assert isinstance(page, Page)
        return {item.snapshot.key.name for item in page.items}

    def streams(self) -> list[str]:
        """The kinds that the operator watches on the server."""
        return sorted(kind.kind for kind in self.server.watched_kinds())

    async def sleep(self, length: timedelta) -> None:
        await self.clock.sleep(length)


@asynccontextmanager
async def on_demand(
    clock: VirtualClock,
    *objects: tuple[Kind, str],
    wrap: Callable[[Transport], Transport] = lambda transport: transport,
    cached: tuple[CachedKind, ...] = CACHED,
) -> AsyncGenerator[OnDemandFixture]:
    """Runs the controller on a plane with these objects."""
    server = SimulatedPlane("acme", PlaneParts(clock=clock, identities=clock.identities))
    reconciled = Reconciled()
    config = RestConfig(PROJECT, Role.PROJECT, server.connect(), FlowControl(PROJECT, clock))
    user = HttpKubeClient(config, FieldOwner("user", "user"))

    def connect(plane: Plane, lane: FlowControl) -> KubeClient:
        transport = wrap(server.connect())
        return HttpKubeClient(
            RestConfig(plane.name, plane.role, transport, lane), FieldOwner("x", "x")
        )

    planes = Planes(connect, cached, RegistryDeps(clock, clock.random("planes")))
    controller = Controller(
        name="things",
        owner=FieldOwner("things", "things"),
        watches=(
            Watch(Role.PROJECT, TRIGGER),
            Watch(Role.PROJECT, NEEDED, enqueue_trigger),
            Watch(Role.PROJECT, OTHER, enqueue_trigger, is_needed=False),
        ),
        reconcile=reconciled.reconcile,
    )
    manager = Manager([controller], ManagerDeps(ApplyDeps(planes, clock), clock.random("manager")))
    fixture = OnDemandFixture(planes, manager, server, user, reconciled, clock)
    for kind, name in objects:
        await fixture.make(kind, name)
    planes.engage(Plane(PROJECT, Role.PROJECT))
    running = asyncio.create_task(manager.run())
    yield fixture
    manager.stop()
    await running
    await planes.close()
    await server.close()
