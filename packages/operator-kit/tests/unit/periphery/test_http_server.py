"""Connections of our servers have bounds, whatever strangers do with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web

from compute_operator_kit.config.settings import Bind
from compute_operator_kit.process.http_server import ConnectionLimits, HttpServer

GET = b"GET /up HTTP/1.1\r\nHost: localhost\r\n\r\n"
QUICK = ConnectionLimits(
    connections=8,
    first_request=timedelta(milliseconds=200),
    idle=timedelta(milliseconds=200),
)
PATIENT = ConnectionLimits(
    connections=8, first_request=timedelta(minutes=1), idle=timedelta(minutes=1)
)


async def answer(_: web.BaseRequest) -> web.Response:
    return web.Response(text="up")


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self) -> bytes:
        self._writer.write(GET)
        return await asyncio.wait_for(self._reader.readuntil(b"up"), 5)

    async def ask_status(self, request: bytes) -> bytes:
        self._writer.write(request + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return (await asyncio.wait_for(self._reader.readline(), 5)).split()[1]

    async def is_closed_within(self, seconds: float) -> bool:
        try:
            return await asyncio.wait_for(self._reader.read(1), seconds) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def serving(
    limits: ConnectionLimits,
) -> AsyncGenerator[Callable[[], asyncio.Task[Client]], None]:
    server = HttpServer(Bind("127.0.0.1", 0), {"/up": answer}, limits=limits)
    await server.start()
    clients: list[Client] = []

    async def connect() -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", server.port))
        clients.append(client)
        return client

    yield lambda: asyncio.create_task(connect())
    for client in clients:
        client.close()
    await server.stop()


@pytest.mark.spec("AT-16")
async def test_a_connection_that_never_asks_is_closed() -> None:
    async with serving(QUICK) as connect:
        silent = await connect()
        assert await silent.is_closed_within(5)


@pytest.mark.spec("AT-16")
async def test_a_connection_that_asked_and_fell_silent_is_closed() -> None:
    async with serving(QUICK) as connect:
        client = await connect()
        await client.ask()
        assert await client.is_closed_within(5)


@pytest.mark.spec("AT-16")
async def test_a_crowd_of_idle_connections_does_not_keep_an_honest_client_out() -> None:
    async with serving(PATIENT) as connect:
        crowd = [await connect() for _ in range(300)]
        honest = await connect()
        assert b"200 OK" in await honest.ask()
        closed = await asyncio.gather(*(one.is_closed_within(0.5) for one in crowd))
        assert sum(closed) >= 300 - PATIENT.connections
        assert b"200 OK" in await honest.ask()


async def test_other_paths_and_methods_are_refused() -> None:
    async with serving(PATIENT) as connect:
        for request, status in ((b"GET /other", b"404"), (b"POST /up", b"405")):
            client = await connect()
            assert await client.ask_status(request) == status
