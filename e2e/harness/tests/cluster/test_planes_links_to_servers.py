from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest
import pytest_asyncio

from compute_sim_planes.json_types import string_at
from e2e.harness.access.client import Endpoint, PlaneClient
from e2e.harness.processes.links import Link
from e2e.harness.stack.stack import RealPlanes

PLANE = "p2"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture
async def link(real_planes: RealPlanes) -> AsyncIterator[Link]:
    async with real_planes.link(PLANE) as opened:
        yield opened


@pytest_asyncio.fixture
async def client(real_planes: RealPlanes, link: Link) -> AsyncIterator[PlaneClient]:
    straight = real_planes.plane(PLANE).endpoint()
    server = f"https://{link.address}:{link.port}"
    async with PlaneClient(Endpoint(server, straight.authority, straight.token)) as opened:
        yield opened


class Watch:
    """A watch of ConfigMaps through the link."""

    def __init__(self, lines: aiohttp.StreamReader) -> None:
        self._lines = lines

    async def next_line(self) -> bytes:
        return await asyncio.wait_for(self._lines.readline(), 10)

    async def read_on(self) -> None:
        """Reads until the stream ends or fails."""
        while await self.next_line():
            continue


@pytest_asyncio.fixture
async def watch(real_planes: RealPlanes, client: PlaneClient) -> AsyncIterator[Watch]:
    # From now on, without events of objects that other tests left.
    version = string_at(await client.get(CONFIG_MAPS), "metadata", "resourceVersion")
    async with client.watch(CONFIG_MAPS, version) as lines:
        opened = Watch(lines)
        await touch(real_planes)
        assert b"ADDED" in await opened.next_line()
        yield opened


async def touch(planes: RealPlanes) -> str:
    """Creates an object, not through the link, for watches to see; returns its name."""
    name = f"touched-{uuid.uuid4().hex[:8]}"
    async with planes.plane(PLANE).client() as straight:
        await straight.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"namespace": "default", "name": name},
            }
        )
    return name


async def test_client_speaks_to_the_server_through_the_link(
    client: PlaneClient, link: Link
) -> None:
    await client.get(CONFIG_MAPS)
    assert link.counters.to_client > 0


async def test_slow_link_is_slow(client: PlaneClient, link: Link) -> None:
    await client.get(CONFIG_MAPS)
    link.latency = timedelta(milliseconds=200)
    clock = asyncio.get_running_loop().time
    began = clock()
    await client.get(CONFIG_MAPS)
    assert clock() - began >= 0.4


async def test_cut_link_refuses_and_healed_link_serves(client: PlaneClient, link: Link) -> None:
    await client.get(CONFIG_MAPS)
    await link.cut()
    with pytest.raises(aiohttp.ClientError):
        await client.get(CONFIG_MAPS)
    await link.heal()
    await client.get(CONFIG_MAPS)


async def test_watch_on_a_half_open_link_hears_nothing_and_no_error(
    real_planes: RealPlanes, link: Link, watch: Watch
) -> None:
    await link.half_open()
    await touch(real_planes)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(watch.next_line(), 0.5)


async def test_watch_is_reset_in_the_middle_of_an_event(
    real_planes: RealPlanes, link: Link, watch: Watch
) -> None:
    link.reset_mid_stream()
    await touch(real_planes)
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await watch.read_on()


async def test_garbage_ends_the_watch_with_an_error(
    real_planes: RealPlanes, link: Link, watch: Watch
) -> None:
    link.garble()
    await touch(real_planes)
    with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
        await watch.read_on()


async def test_server_restarted_behind_the_link_has_kept_its_objects(
    real_planes: RealPlanes, client: PlaneClient, link: Link
) -> None:
    name = await touch(real_planes)
    before = await client.get(f"{CONFIG_MAPS}/{name}")
    await link.restart_server()
    after = await client.get(f"{CONFIG_MAPS}/{name}")
    assert after == before
