from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from typing_extensions import override

from e2e.harness.gateway.fault_routes import (
    FaultRoutes,
    RouteCutError,
    RouteFault,
    write_route_faults,
)

USER = "compute:cell:dfw-1"


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.aborted = asyncio.Event()

    @override
    def abort(self) -> None:
        self.aborted.set()


async def test_every_way_is_open_where_nothing_is_spoilt(tmp_path: Path) -> None:
    await FaultRoutes(tmp_path / "ways.json").enter(USER, "p1")


async def test_a_cut_way_is_cut_for_one_user_to_one_plane(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    routes = FaultRoutes(path)
    write_route_faults(path, [RouteFault(user=USER, project="p1", is_cut=True)])
    with pytest.raises(RouteCutError):
        await routes.enter(USER, "p1")
    await routes.enter(USER, "p2")
    await routes.enter("somebody", "p1")


async def test_a_healed_way_is_open_again(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    routes = FaultRoutes(path)
    write_route_faults(path, [RouteFault(user=USER, project="", is_cut=True)])
    with pytest.raises(RouteCutError):
        await routes.enter(USER, "")
    write_route_faults(path, [])
    await routes.enter(USER, "")


async def test_a_slow_way_takes_its_time(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    write_route_faults(path, [RouteFault(user=USER, project="p1", delay_seconds=30)])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(FaultRoutes(path).enter(USER, "p1"), 0.05)


async def test_what_is_open_on_a_way_ends_when_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    routes = FaultRoutes(path)
    cut, kept = FakeTransport(), FakeTransport()
    watch = asyncio.create_task(routes.watch())
    with routes.holding(USER, "p1", cut), routes.holding(USER, "p2", kept):
        write_route_faults(path, [RouteFault(user=USER, project="p1", is_cut=True)])
        await asyncio.wait_for(cut.aborted.wait(), 10)
        assert not kept.aborted.is_set()
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch
