from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from e2e.harness.errors import PlanesError
from e2e.harness.gateway.planes_on_demand import (
    PlaneLifecycleReply,
    PlaneLifecycleRequest,
    PlaneRefusedError,
    ask_for_plane,
)
from e2e.harness.processes.ports import LOOPBACK, Ports
from e2e.harness.stack.control_server import ControlServer


async def _carry_out(request: PlaneLifecycleRequest) -> PlaneLifecycleReply:
    if request.project == "broken":
        raise PlanesError("beginning it: no memory", remedy="buy some")
    if request.project == "slow":
        await asyncio.sleep(600)
    return PlaneLifecycleReply(server=f"https://{request.project}", token=request.wish)


@pytest.fixture
def control_server() -> Iterator[ControlServer]:
    with Ports() as ports:
        listening = ControlServer(LOOPBACK, ports.reserve(), _carry_out)
        listening.start()
        yield listening
        listening.stop()


async def ask(control_server: ControlServer, project: str, secret: str = "") -> PlaneLifecycleReply:
    request = PlaneLifecycleRequest(
        secret=secret or control_server.secret, wish="begin", project=project
    )
    return await ask_for_plane(control_server.address, control_server.port, request)


async def test_reply_contains_the_address_of_the_plane(control_server: ControlServer) -> None:
    reply = await ask(control_server, "p3")
    assert (reply.server, reply.token) == ("https://p3", "begin")


async def test_refusal_carries_the_reason(control_server: ControlServer) -> None:
    with pytest.raises(PlaneRefusedError, match="no memory; buy some"):
        await ask(control_server, "broken")


async def test_stranger_is_refused(control_server: ControlServer) -> None:
    with pytest.raises(PlaneRefusedError, match="not one of ours"):
        await ask(control_server, "p3", "guessed")


async def test_nonsense_is_refused_and_the_next_is_heard(control_server: ControlServer) -> None:
    reader, writer = await asyncio.open_connection(control_server.address, control_server.port)
    writer.write(b"[]\n")
    assert b"not understood" in await reader.readline()
    writer.close()
    assert await ask(control_server, "p3")


async def test_end_does_not_wait_for_a_plane_that_is_beginning(
    control_server: ControlServer,
) -> None:
    asking = asyncio.create_task(ask(control_server, "slow"))
    await asyncio.sleep(0.05)
    await asyncio.to_thread(control_server.stop)
    with pytest.raises((PlaneRefusedError, OSError)):
        await asking


def test_taken_port_fails_the_start() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        control_server = ControlServer(LOOPBACK, taken.getsockname()[1], _carry_out)
        with pytest.raises(PlanesError, match="listening for Milo's controllers"):
            control_server.start()
        control_server.stop()
