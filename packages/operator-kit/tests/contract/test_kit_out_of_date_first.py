"""After a start, out-of-date keys of all planes are reconciled before the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.controller.manager import NEXT_PAGE_WITHIN, Manager, ManagerDeps
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.planes.engaged_plane import CachedKind, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.time.clock import VirtualClock, run

THING: Final = Kind("", "v1", "configmaps", "ConfigMap")
NAMES: Final = tuple(f"rest-{number:02}" for number in range(30))
SILENT: Final = PlaneName("silent")
LONG: Final = timedelta(seconds=20)


class Silence:
    """A server that answers no request."""

    async def request(
        self,
        method: str,  # noqa: ARG002
        target: str,  # noqa: ARG002
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes | None,  # noqa: ARG002
    ) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError


def is_late(key: ObjectKey, _: Caches) -> bool:
    return key.name.startswith("late")


def enqueue_all(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:
    snapshots = caches.lister(plane, THING).snapshots()
    return () if isinstance(snapshots, Unreadable) else (one.key for one in snapshots)


def reconcile_all(*planes: str) -> list[tuple[str, timedelta]]:
    """Names in the order of their reconciles, with the time since the start."""
    reconciled: list[tuple[str, timedelta]] = []

    async def main(clock: VirtualClock) -> None:
        servers = {name: await a_server(name, clock) for name in planes if name != SILENT}

        def connect(plane: Plane, lane: FlowControl) -> KubeClient:
            server = servers.get(plane.name)
            transport = Silence() if server is None else server.connect()
            return HttpKubeClient(
                RestConfig(plane.name, plane.role, transport, lane), FieldOwner("x", "x")
            )

        async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
            reconciled.append((key.name, clock.monotonic() - began))
            return Result()

        random = clock.random("world")
        engaged = Planes(connect, [CachedKind(Role.PROJECT, THING)], RegistryDeps(clock, random))
        controller = Controller(
            name="things",
            owner=FieldOwner("things", "things"),
            watches=(Watch(Role.PROJECT, THING),),
            reconcile=reconcile,
            keys_on_engage=enqueue_all,
            is_out_of_date=is_late,
        )
        manager = Manager([controller], ManagerDeps(ApplyDeps(engaged, clock), random))
        began = clock.monotonic()
        for name in planes:
            engaged.engage(Plane(PlaneName(name), Role.PROJECT))
        running = asyncio.create_task(manager.run())
        await clock.sleep(LONG)
        manager.stop()
        await running
        await engaged.close()
        for server in servers.values():
            await server.close()

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
    return reconciled


async def a_server(name: str, clock: VirtualClock) -> SimulatedPlane:
    server = SimulatedPlane(name, PlaneParts(clock=clock, identities=clock.identities))
    things = (*NAMES, f"late-{name}")
    await apply_manifests(
        server.connect(),
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": one}} for one in things],
    )
    return server


def test_out_of_date_keys_of_any_plane_go_before_all_others() -> None:
    reconciled = [name for name, _ in reconcile_all("a", "b", "c")]
    assert sorted(reconciled[:3]) == ["late-a", "late-b", "late-c"]
    assert sorted(reconciled[3:]) == sorted(NAMES * 3)


def test_a_plane_that_never_answers_delays_other_keys_for_a_moment_only() -> None:
    reconciled = reconcile_all("a", SILENT)
    assert reconciled[0][0] == "late-a"
    assert reconciled[0][1] < timedelta(seconds=1)
    rest = [when for name, when in reconciled if name in NAMES]
    assert len(rest) == len(NAMES)
    assert max(rest) < 2 * NEXT_PAGE_WITHIN


def test_a_kind_that_is_served_again_enqueues_the_keys_of_its_plane_again() -> None:
    engaged_planes: list[PlaneName] = []

    def record(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:  # noqa: ARG001
        engaged_planes.append(plane)
        return ()

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:  # noqa: ARG001
        return Result()

    def connect(plane: Plane, lane: FlowControl) -> KubeClient:
        return HttpKubeClient(
            RestConfig(plane.name, plane.role, Silence(), lane), FieldOwner("x", "x")
        )

    async def main(clock: VirtualClock) -> None:
        random = clock.random("world")
        planes = Planes(connect, [CachedKind(Role.PROJECT, THING)], RegistryDeps(clock, random))
        controller = Controller(
            name="things",
            owner=FieldOwner("things", "things"),
            watches=(Watch(Role.PROJECT, THING),),
            reconcile=reconcile,
            keys_on_engage=record,
        )
        manager = Manager([controller], ManagerDeps(ApplyDeps(planes, clock), random))
        plane = Plane(PlaneName("a"), Role.PROJECT)
        store = planes.engage(plane).stores[THING]
        for expected in (1, 2):
            for _ in range(2):  # synced twice, it enqueues once
                store.replace([], version=1, at=clock.monotonic())
                manager.synced(plane, THING)
            assert len(engaged_planes) == expected
            store.mark_unserved()
            manager.synced(plane, THING)
            assert len(engaged_planes) == expected
        await planes.close()

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
