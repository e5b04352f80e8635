from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from typing_extensions import override

from e2e.planes.gateway.ways import Spoilt, WayCutError, Ways, write_spoilt

USER = "compute:cell:dfw-1"


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.aborted = asyncio.Event()

    @override
    def abort(self) -> None:
        self.aborted.set()


async def test_every_way_is_open_where_nothing_is_spoilt(tmp_path: Path) -> None:
    await Ways(tmp_path / "ways.json").enter(USER, "p1")


async def test_a_cut_way_is_cut_for_one_user_to_one_plane(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    ways = Ways(path)
    write_spoilt(path, [Spoilt(user=USER, project="p1", is_cut=True)])
    with pytest.raises(WayCutError):
        await ways.enter(USER, "p1")
    await ways.enter(USER, "p2")
    await ways.enter("somebody", "p1")


async def test_a_healed_way_is_open_again(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    ways = Ways(path)
    write_spoilt(path, [Spoilt(user=USER, project="", is_cut=True)])
    with pytest.raises(WayCutError):
        await ways.enter(USER, "")
    write_spoilt(path, [])
    await ways.enter(USER, "")


async def test_a_slow_way_takes_its_time(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    write_spoilt(path, [Spoilt(user=USER, project="p1", delay_seconds=30)])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Ways(path).enter(USER, "p1"), 0.05)


async def test_what_is_open_on_a_way_ends_when_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "ways.json"
    ways = Ways(path)
    cut, kept = FakeTransport(), FakeTransport()
    watch = asyncio.create_task(ways.watch())
    with ways.holding(USER, "p1", cut), ways.holding(USER, "p2", kept):
        write_spoilt(path, [Spoilt(user=USER, project="p1", is_cut=True)])
        await asyncio.wait_for(cut.aborted.wait(), 10)
        assert not kept.aborted.is_set()
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch
