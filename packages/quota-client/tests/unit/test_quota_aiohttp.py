"""What the transport on aiohttp owes to httpx: its errors, its limits, and bodies as they come."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from compute_quota_client import QuotaClient, QuotaSettings, QuotaUsageError
from compute_quota_client._aiohttp import AiohttpTransport
from compute_quota_client.testing import SERVER, FakeQuota

pytestmark = pytest.mark.usefixtures("real_time")

KEPT = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30.0)
PATIENT = {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": 5.0}


def a_request(url: str, method: str = "GET", **timeouts: float) -> httpx.Request:
    extensions = {"timeout": {**PATIENT, **timeouts}}
    return httpx.Request(method, url, extensions=extensions, content=b"{}")


@asynccontextmanager
async def a_transport(
    ca: bytes, limits: httpx.Limits = KEPT
) -> AsyncGenerator[httpx.AsyncBaseTransport]:
    transport = AiohttpTransport(ssl.create_default_context(cadata=ca.decode()), limits)
    try:
        yield transport
    finally:
        await transport.aclose()


@asynccontextmanager
async def a_server(
    tls: ssl.SSLContext, answer: Callable[[asyncio.StreamWriter], None]
) -> AsyncGenerator[str]:
    """Reads requests, answers each in its own way, and hangs up when the test ends."""
    ends: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        ends.add(task)
        try:
            while await reader.readuntil(b"\r\n\r\n{}"):
                answer(writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
    finally:
        server.close()
        for task in ends:
            task.cancel()
        if ends:
            await asyncio.wait(ends)


async def test_an_answer_is_what_httpx_makes_of_it(ca: bytes, server_tls: ssl.SSLContext) -> None:
    head = b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}"
    async with a_server(server_tls, lambda w: w.write(head)) as url, a_transport(ca) as transport:
        response = await transport.handle_async_request(a_request(url, "POST"))
        assert await response.aread() == b"{}"
        await response.aclose()
    assert response.status_code == 429
    assert response.headers["retry-after"] == "7"


async def test_a_silent_server_is_a_read_timeout(ca: bytes, server_tls: ssl.SSLContext) -> None:
    async with a_server(server_tls, lambda _: None) as url, a_transport(ca) as transport:
        with pytest.raises(httpx.ReadTimeout):
            await transport.handle_async_request(a_request(url, read=0.1))


async def test_a_body_that_stops_is_a_read_timeout(ca: bytes, server_tls: ssl.SSLContext) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"
    async with a_server(server_tls, lambda w: w.write(head)) as url, a_transport(ca) as transport:
        response = await transport.handle_async_request(a_request(url, read=0.1))
        with pytest.raises(httpx.ReadTimeout):
            await response.aread()
        await response.aclose()


async def test_a_server_that_hangs_up_is_a_transport_error(
    ca: bytes, server_tls: ssl.SSLContext
) -> None:
    async with (
        a_server(server_tls, lambda w: w.transport.abort()) as url,
        a_transport(ca) as transport,
    ):
        with pytest.raises(httpx.TransportError):
            await transport.handle_async_request(a_request(url, "POST"))


async def test_a_closed_port_is_a_connect_error(ca: bytes, server_tls: ssl.SSLContext) -> None:
    async with a_server(server_tls, lambda _: None) as url:
        pass
    async with a_transport(ca) as transport:
        with pytest.raises(httpx.ConnectError):
            await transport.handle_async_request(a_request(url))


async def test_a_server_that_is_not_trusted_is_a_connect_error(
    another_ca: bytes, server_tls: ssl.SSLContext
) -> None:
    async with (
        a_server(server_tls, lambda _: None) as url,
        a_transport(another_ca) as transport,
    ):
        with pytest.raises(httpx.ConnectError):
            await transport.handle_async_request(a_request(url))


@pytest.mark.spec("Q-15")
async def test_a_long_wait_for_a_connection_is_a_pool_timeout_and_frees_its_place(
    ca: bytes, server_tls: ssl.SSLContext
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    async with a_server(server_tls, lambda w: w.write(head)) as url, a_transport(ca) as transport:
        first = await transport.handle_async_request(a_request(url))
        with pytest.raises(httpx.PoolTimeout):
            await transport.handle_async_request(a_request(url, pool=0.05))
        await first.aclose()
        await (
            first.aclose()
        )  # twice is once: the second would free the connection of another request
        second = await transport.handle_async_request(a_request(url, pool=0.05, read=1.0))
        await second.aclose()


async def test_a_client_that_is_given_up_gives_its_place_back(
    ca: bytes, server_tls: ssl.SSLContext
) -> None:
    async with a_server(server_tls, lambda _: None) as url, a_transport(ca) as transport:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await transport.handle_async_request(a_request(url, pool=0.05))


async def test_without_aiohttp_the_error_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "compute_quota_client._aiohttp", raising=False)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(QuotaUsageError, match=r"datum-compute-quota-client\[aiohttp\]"):
        QuotaClient(SERVER, settings=QuotaSettings(http="aiohttp"))


async def test_a_given_transport_is_used_with_any_settings(fake: FakeQuota) -> None:
    settings = QuotaSettings(http="aiohttp")
    async with QuotaClient(SERVER, transport=fake.transport, settings=settings) as client:
        assert await client.project("acme").list() == []
