"""Requests for single objects on real sockets: loopback only, real time, fractions of a second."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from compute_operator_kit.client.transport.aiohttp import Tls
from compute_operator_kit.client.transport.connection import (
    INBOX_BYTES,
    StaleConnectionError,
    render_request,
)
from compute_operator_kit.client.transport.pool import Pool, PooledTransport
from compute_operator_kit.testing.certificates import Authority

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Seen: Yes\r\n\r\nok"


class Server:
    """Answers with prepared bytes and records the requests."""

    def __init__(self) -> None:
        self.answers: list[bytes | None] = []  # None: the connection is closed instead
        self.requests: list[bytes] = []
        self.connections = 0
        self.breaks_off = False
        self.port = 0
        self.open: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, _, length = head.lower().partition(b"content-length: ")
                body = await reader.readexactly(int(length.split(b"\r\n")[0]) if length else 0)
                self.requests.append(head + body)
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if self.breaks_off:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = int(listening.sockets[0].getsockname()[1])
    yield server
    listening.close()
    for writer in server.open:
        writer.close()
    await asyncio.sleep(0.01)


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[Pool]:
    opened = Pool(kept_for=timedelta(milliseconds=200))
    yield opened
    opened.close()
    await asyncio.sleep(0.01)


@pytest.fixture
def transport(server: Server, pool: Pool) -> PooledTransport:
    return PooledTransport(pool, f"http://127.0.0.1:{server.port}")


async def read(transport: PooledTransport, method: str = "GET", body: bytes | None = None) -> bytes:
    answer = await transport.request(method, "/a%2Fb?c=d", {"Accept": "x"}, body)
    return b"".join([chunk async for chunk in answer.chunks()])


async def test_a_request_and_its_answer(transport: PooledTransport, server: Server) -> None:
    answer = await transport.request("POST", "/a%2Fb?c=d", {"Accept": "x"}, b"hello")
    assert (answer.status, answer.body, answer.headers["x-seen"]) == (200, b"ok", "Yes")
    await answer.close()
    first, *rest = server.requests[0].split(b"\r\n")
    assert first == b"POST /a%2Fb?c=d HTTP/1.1"
    assert f"Host: 127.0.0.1:{server.port}".encode() in rest
    assert rest[-1] == b"hello"


async def test_a_connection_is_used_again(transport: PooledTransport, server: Server) -> None:
    for _ in range(5):
        assert await read(transport) == b"ok"
    assert server.connections == 1


async def test_as_many_connections_as_requests_at_once(
    transport: PooledTransport, server: Server, pool: Pool
) -> None:
    await asyncio.gather(*(read(transport) for _ in range(3)))
    assert server.connections == 3
    assert len(pool) == 3


async def test_answers_larger_than_the_inbox_arrive_whole_and_apart(
    transport: PooledTransport, server: Server
) -> None:
    """All connections of a pool read into the same bytes."""
    bodies = [letter * (3 * INBOX_BYTES + 7) for letter in (b"a", b"b", b"c")]
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(bodies[0])}\r\n\r\n".encode()
    server.answers = [head + body for body in bodies]
    arrived = await asyncio.gather(*(read(transport) for _ in bodies))
    assert sorted(arrived) == bodies


async def test_a_connection_is_not_kept_for_ever(transport: PooledTransport, pool: Pool) -> None:
    await read(transport)
    assert len(pool) == 1
    await asyncio.sleep(0.5)
    assert len(pool) == 0


async def test_a_connection_that_is_to_be_closed_is_not_kept(
    transport: PooledTransport, server: Server, pool: Pool
) -> None:
    server.answers = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"]
    await read(transport)
    assert len(pool) == 0
    await read(transport)
    assert server.connections == 2


@pytest.mark.fault("C4")
async def test_a_read_on_a_connection_that_was_closed_is_sent_again(
    transport: PooledTransport, server: Server
) -> None:
    await read(transport)
    server.answers = [None]
    assert await read(transport) == b"ok"
    assert server.connections == 2


@pytest.mark.fault("C5")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_is_never_sent_twice(
    transport: PooledTransport, server: Server, method: str
) -> None:
    await read(transport)
    server.answers = [None]
    with pytest.raises(ConnectionResetError):
        await read(transport, method, b"x")
    assert len(server.requests) == 2


@pytest.mark.fault("C5")
@pytest.mark.parametrize("cut", [b"", b"HTTP/1.1 200", OK[:-1]])
async def test_an_answer_that_breaks_off_is_not_known(
    transport: PooledTransport, server: Server, cut: bytes
) -> None:
    server.answers = [cut]
    server.breaks_off = True
    with pytest.raises(ConnectionResetError) as caught:
        await read(transport)
    assert not isinstance(caught.value, StaleConnectionError)


@pytest.mark.fault("C5")
async def test_an_answer_that_is_none_is_not_known(
    transport: PooledTransport, server: Server, pool: Pool
) -> None:
    server.answers = [b"SSH-2.0-OpenSSH\r\n\r\n"]
    with pytest.raises(ConnectionResetError):
        await read(transport, "POST", b"x")
    assert len(pool) == 0


@pytest.mark.fault("C4")
async def test_a_request_that_is_given_up_takes_its_connection_along(
    transport: PooledTransport, server: Server, pool: Pool
) -> None:
    server.answers = [b""]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await read(transport)
    assert len(pool) == 0
    assert await read(transport) == b"ok"
    assert server.connections == 2


@pytest.mark.fault("C4")
async def test_a_server_that_is_not_there_was_sent_nothing(pool: Pool) -> None:
    with pytest.raises(ConnectionRefusedError):
        await read(PooledTransport(pool, "http://127.0.0.1:1"), "POST", b"x")


@pytest.mark.fault("C4")
async def test_a_server_that_does_not_speak_tls_was_sent_nothing(pool: Pool) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        writer.close()

    listening = await asyncio.start_server(greet, "127.0.0.1", 0)
    origin = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    context = ssl.create_default_context()
    with pytest.raises(ConnectionRefusedError):
        await read(PooledTransport(pool, origin, Tls(lambda: context)), "POST", b"x")
    listening.close()


@pytest.mark.fault("G6")
@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\nb", "a\rb"])
def test_no_header_can_begin_another(value: str) -> None:
    with pytest.raises(ValueError, match="line end"):
        render_request("GET", "/", "h", {"Authorization": value}, None)


@pytest.mark.parametrize("origin", ["https://h", "http://"])
def test_a_server_without_trust_or_name_is_refused(origin: str) -> None:
    with pytest.raises(ValueError, match="reaching"):
        PooledTransport(Pool(), origin)


class Trust:
    """A server with a certificate of its own, and what a client trusts."""

    def __init__(self, folder: Path, name: str) -> None:
        authority = Authority()
        self.serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.serving.load_cert_chain(*authority.issue([name]).write(folder))
        self.client = ssl.create_default_context(cadata=authority.certificate.decode())


@pytest.mark.spec("S10")
async def test_tls_is_verified_and_a_new_context_gets_a_new_connection(
    pool: Pool, tmp_path: Path
) -> None:
    trust, server = Trust(tmp_path, "hub.example"), Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=trust.serving)
    origin = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    trusted = [trust.client]
    named = PooledTransport(pool, origin, Tls(lambda: trusted[0], "hub.example"))
    assert [await read(named), await read(named)] == [b"ok", b"ok"]
    assert server.connections == 1

    trusted[0] = ssl.create_default_context()
    with pytest.raises(ConnectionRefusedError, match="the certificate is not trusted"):
        await read(named, "POST", b"x")
    unnamed = PooledTransport(pool, origin, Tls(lambda: trust.client))
    with pytest.raises(ConnectionRefusedError, match="the certificate is not trusted"):
        await read(unnamed, "POST", b"x")
    listening.close()
    pool.close()
    await asyncio.sleep(0.05)
