from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from e2e.planes.ear import Ear
from e2e.planes.errors import PlanesError
from e2e.planes.gateway.planes_on_demand import PlaneRefusedError, Reply, Request, ask_for_plane
from e2e.planes.ports import LOOPBACK, Ports


async def _carry_out(request: Request) -> Reply:
    if request.project == "broken":
        raise PlanesError("beginning it: no memory", remedy="buy some")
    if request.project == "slow":
        await asyncio.sleep(600)
    return Reply(server=f"https://{request.project}", token=request.wish)


@pytest.fixture
def ear() -> Iterator[Ear]:
    with Ports() as ports:
        listening = Ear(LOOPBACK, ports.reserve(), _carry_out)
        listening.start()
        yield listening
        listening.stop()


async def ask(ear: Ear, project: str, secret: str = "") -> Reply:
    request = Request(secret=secret or ear.secret, wish="begin", project=project)
    return await ask_for_plane(ear.address, ear.port, request)


async def test_who_asks_is_told_where_the_plane_is(ear: Ear) -> None:
    reply = await ask(ear, "p3")
    assert (reply.server, reply.token) == ("https://p3", "begin")


async def test_refusal_carries_the_reason(ear: Ear) -> None:
    with pytest.raises(PlaneRefusedError, match="no memory; buy some"):
        await ask(ear, "broken")


async def test_stranger_is_refused(ear: Ear) -> None:
    with pytest.raises(PlaneRefusedError, match="not one of ours"):
        await ask(ear, "p3", "guessed")


async def test_nonsense_is_refused_and_the_next_is_heard(ear: Ear) -> None:
    reader, writer = await asyncio.open_connection(ear.address, ear.port)
    writer.write(b"[]\n")
    assert b"not understood" in await reader.readline()
    writer.close()
    assert await ask(ear, "p3")


async def test_end_does_not_wait_for_a_plane_that_is_beginning(ear: Ear) -> None:
    asking = asyncio.create_task(ask(ear, "slow"))
    await asyncio.sleep(0.05)
    await asyncio.to_thread(ear.stop)
    with pytest.raises((PlaneRefusedError, OSError)):
        await asking


def test_port_that_is_taken_is_told_at_the_start() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        ear = Ear(LOOPBACK, taken.getsockname()[1], _carry_out)
        with pytest.raises(PlanesError, match="listening for Milo's controllers"):
            ear.start()
        ear.stop()
