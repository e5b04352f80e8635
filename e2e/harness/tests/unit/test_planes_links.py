from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from e2e.harness.processes.links import Link, LinkState, garbled

SOON = 5.0
# Long enough for a byte on loopback to arrive.
SILENCE = 0.15


class Echo:
    """A server that returns everything it receives."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.restarts = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def restart(self) -> None:
        self.restarts += 1
        await self.stop()
        await self.start()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._echo(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65_536):
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


class Client:
    """One connection through the link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, what: bytes) -> None:
        self.writer.write(what)
        await self.writer.drain()

    async def hear(self, count: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(count), SOON)

    async def hears_nothing(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(1), SILENCE) == b"never"
        except TimeoutError:
            return True


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[Echo]:
    server = Echo()
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture
async def link(echo: Echo) -> AsyncIterator[Link]:
    async with Link("127.0.0.1", echo.port, restart=echo.restart) as opened:
        yield opened


class Clients:
    """Opens connections and closes them at the end."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._opened: list[Client] = []

    async def open(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self._link.port))
        self._opened.append(client)
        return client

    async def close(self) -> None:
        for client in self._opened:
            client.writer.transport.abort()
        await asyncio.sleep(0)


@pytest_asyncio.fixture
async def clients(link: Link) -> AsyncIterator[Clients]:
    opened = Clients(link)
    yield opened
    await opened.close()


async def test_bytes_pass_unchanged_and_are_counted(link: Link, clients: Clients) -> None:
    client = await clients.open()
    content = bytes(range(256)) * 4_000
    await client.say(content)
    assert await client.hear(len(content)) == content
    assert (link.counters.connections, link.counters.to_server, link.counters.to_client) == (
        1,
        len(content),
        len(content),
    )


async def test_orderly_end_passes_after_the_last_byte(clients: Clients) -> None:
    client = await clients.open()
    await client.say(b"last words")
    client.writer.write_eof()
    assert await asyncio.wait_for(client.reader.read(), SOON) == b"last words"


async def test_latency_holds_both_ways_and_does_not_add_up_over_messages(
    link: Link, clients: Clients
) -> None:
    clock = asyncio.get_running_loop().time
    client = await clients.open()
    await client.say(b"warm")
    await client.hear(4)
    link.latency = timedelta(milliseconds=500)
    began = clock()
    for _ in range(10):
        await client.say(b"x")
        await asyncio.sleep(0.005)
    await client.hear(10)
    took = clock() - began
    assert 1.0 <= took < 5.0  # ten messages one after the other would take 10 s
    link.latency = timedelta()
    began = clock()
    await client.say(b"y")
    assert await client.hear(1) == b"y"
    assert clock() - began < 0.5


async def test_cut_resets_what_is_open_and_refuses_what_is_new(
    link: Link, clients: Clients
) -> None:
    client = await clients.open()
    await client.say(b"a")
    await client.hear(1)
    await link.cut()
    with pytest.raises(ConnectionResetError):
        await client.hear(1)
    with pytest.raises(ConnectionRefusedError):
        await clients.open()
    assert (link.state, link.open_connections) == (LinkState.CUT, 0)


async def test_healed_link_is_found_at_the_same_port(link: Link, clients: Clients) -> None:
    port = link.port
    await link.cut()
    await link.heal()
    client = await clients.open()
    await client.say(b"back")
    assert await client.hear(4) == b"back"
    assert link.port == port


async def test_half_open_link_keeps_connections_and_carries_nothing(
    link: Link, clients: Clients
) -> None:
    client = await clients.open()
    await client.say(b"a")
    await client.hear(1)
    await link.half_open()
    await client.say(b"b")
    assert await client.hears_nothing()
    assert not client.reader.at_eof()


async def test_half_open_link_takes_new_connections_that_the_server_never_sees(
    echo: Echo, link: Link, clients: Clients
) -> None:
    await link.half_open()
    client = await clients.open()
    await client.say(b"hello?")
    assert await client.hears_nothing()
    assert echo.connections == 0


async def test_half_open_link_hides_that_the_server_has_gone(
    echo: Echo, link: Link, clients: Clients
) -> None:
    client = await clients.open()
    await client.say(b"a")
    await client.hear(1)
    await link.half_open()
    await echo.stop()
    assert await client.hears_nothing()
    await echo.start()


async def test_healed_silence_goes_on_where_it_stopped(link: Link, clients: Clients) -> None:
    client = await clients.open()
    await link.half_open()
    await client.say(b"patience")
    assert await client.hears_nothing()
    await link.heal()
    assert await client.hear(8) == b"patience"


async def test_reset_ends_open_connections_and_takes_new_ones(link: Link, clients: Clients) -> None:
    old = await clients.open()
    await old.say(b"a")
    await old.hear(1)
    await link.reset()
    with pytest.raises(ConnectionResetError):
        await old.hear(1)
    new = await clients.open()
    await new.say(b"b")
    assert await new.hear(1) == b"b"


async def test_reset_mid_stream_comes_after_half_of_the_bytes(link: Link, clients: Clients) -> None:
    client = await clients.open()
    link.reset_mid_stream()
    await client.say(b"0123456789")
    with pytest.raises(ConnectionResetError):
        await client.hear(10)
    assert link.counters.to_client == 5
    next_one = await clients.open()
    await next_one.say(b"whole")
    assert await next_one.hear(5) == b"whole"


async def test_garbage_replaces_bytes_of_the_server_once(link: Link, clients: Clients) -> None:
    client = await clients.open()
    link.garble()
    await client.say(b"sense")
    assert await client.hear(5) == garbled(b"sense")
    await client.say(b"sense")
    assert await client.hear(5) == b"sense"


@given(st.binary(min_size=1))
def test_garbage_has_the_same_length_and_no_byte_in_place(content: bytes) -> None:
    spoilt = garbled(content)
    assert len(spoilt) == len(content)
    assert all(a != b for a, b in zip(spoilt, content, strict=True))


async def test_server_that_is_away_resets_the_client(echo: Echo, clients: Clients) -> None:
    await echo.stop()
    client = await clients.open()
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await client.hear(1)
    await echo.start()


async def test_restart_of_the_server_leaves_the_link_in_place(
    echo: Echo, link: Link, clients: Clients
) -> None:
    before = await clients.open()
    await before.say(b"a")
    await before.hear(1)
    await link.restart_server()
    assert echo.restarts == 1
    after = await clients.open()
    await after.say(b"b")
    assert await after.hear(1) == b"b"


async def test_link_without_a_process_cannot_restart_it(echo: Echo) -> None:
    async with Link("127.0.0.1", echo.port) as link:
        with pytest.raises(RuntimeError, match="no process behind"):
            await link.restart_server()


async def test_closed_link_leaves_no_connection_and_gives_its_port_back(echo: Echo) -> None:
    async with Link("127.0.0.1", echo.port) as link:
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(b"a")
        await asyncio.wait_for(reader.readexactly(1), SOON)
    assert link.open_connections == 0
    writer.transport.abort()
    server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", link.port)
    server.close()
