"""After a start, whatever is behind on any plane is looked at before all that is at rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn

from compute_operator_kit.apply.desk import Means
from compute_operator_kit.cache import Caches
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.exchange import Connection
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.manager import NEXT_PAGE_WITHIN, Manager, Runtime
from compute_operator_kit.objects import Unreadable
from compute_operator_kit.planes import Plane, Planes, Setting, Watched
from compute_operator_kit.reconcile import Pass, Result
from compute_sim_planes.api_server.plane import Plane as SimulatedPlane
from compute_sim_planes.api_server.plane import PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.clock import VirtualClock, run

THING: Final = Kind("", "v1", "configmaps", "ConfigMap")
NAMES: Final = tuple(f"rest-{number:02}" for number in range(30))
SILENT: Final = PlaneName("silent")
LONG: Final = timedelta(seconds=20)


class Silence:
    """A server that takes every request and answers none."""

    async def request(
        self,
        method: str,  # noqa: ARG002
        target: str,  # noqa: ARG002
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes | None,  # noqa: ARG002
    ) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError


def is_behind(key: ObjectKey, _: Caches) -> bool:
    return key.name.startswith("behind")


def wake_all(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:
    found = caches.view(plane, THING).snapshots()
    return () if isinstance(found, Unreadable) else (one.key for one in found)


def look(*planes: str) -> list[tuple[str, timedelta]]:
    """Names in the order of their passes, with when each was, since the start."""
    looked_at: list[tuple[str, timedelta]] = []

    async def main(clock: VirtualClock) -> None:
        servers = {name: await a_server(name, clock) for name in planes if name != SILENT}

        def connect(plane: Plane, lane: Lane) -> Kube:
            found = servers.get(plane.name)
            transport = Silence() if found is None else found.connect()
            return KubeHttp(Connection(plane.name, plane.role, transport, lane), Writer("x", "x"))

        async def reconcile(key: ObjectKey, work: Pass) -> Result:  # noqa: ARG001
            looked_at.append((key.name, clock.monotonic() - began))
            return Result()

        random = clock.random("world")
        engaged = Planes(connect, [Watched(Role.PROJECT, THING)], Setting(clock, random))
        controller = Controller(
            name="looker",
            writer=Writer("looker", "looker"),
            watches=(Watch(Role.PROJECT, THING),),
            reconcile=reconcile,
            on_engaged=wake_all,
            is_behind=is_behind,
        )
        manager = Manager([controller], Runtime(Means(engaged, clock), random))
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
    return looked_at


async def a_server(name: str, clock: VirtualClock) -> SimulatedPlane:
    server = SimulatedPlane(name, PlaneParts(clock=clock, identities=clock.identities))
    things = (*NAMES, f"behind-{name}")
    await apply_manifests(
        server.connect(),
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": one}} for one in things],
    )
    return server


def test_what_is_behind_on_any_plane_goes_before_all_that_is_at_rest() -> None:
    looked_at = [name for name, _ in look("a", "b", "c")]
    assert sorted(looked_at[:3]) == ["behind-a", "behind-b", "behind-c"]
    assert sorted(looked_at[3:]) == sorted(NAMES * 3)


def test_a_plane_that_never_answers_keeps_what_is_at_rest_waiting_for_a_moment_only() -> None:
    looked_at = look("a", SILENT)
    assert looked_at[0][0] == "behind-a"
    assert looked_at[0][1] < timedelta(seconds=1)
    rest = [when for name, when in looked_at if name in NAMES]
    assert len(rest) == len(NAMES)
    assert max(rest) < 2 * NEXT_PAGE_WITHIN


def test_a_kind_that_is_served_again_makes_its_plane_whole_again() -> None:
    woken: list[PlaneName] = []

    def note(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:  # noqa: ARG001
        woken.append(plane)
        return ()

    async def reconcile(key: ObjectKey, work: Pass) -> Result:  # noqa: ARG001
        return Result()

    def connect(plane: Plane, lane: Lane) -> Kube:
        return KubeHttp(Connection(plane.name, plane.role, Silence(), lane), Writer("x", "x"))

    async def main(clock: VirtualClock) -> None:
        random = clock.random("world")
        planes = Planes(connect, [Watched(Role.PROJECT, THING)], Setting(clock, random))
        controller = Controller(
            name="looker",
            writer=Writer("looker", "looker"),
            watches=(Watch(Role.PROJECT, THING),),
            reconcile=reconcile,
            on_engaged=note,
        )
        manager = Manager([controller], Runtime(Means(planes, clock), random))
        plane = Plane(PlaneName("a"), Role.PROJECT)
        store = planes.engage(plane).stores[THING]
        for expected in (1, 2):
            for _ in range(2):  # told twice of one whole view, it wakes once
                store.complete([], version=1, at=clock.monotonic())
                manager.synced(plane, THING)
            assert len(woken) == expected
            store.withdraw()
            manager.synced(plane, THING)
            assert len(woken) == expected
        await planes.close()

    run(main, seed=1, start=datetime(2026, 1, 1, tzinfo=UTC))
