"""Watches over TLS share one inbox: what arrives on one of them must not show on another."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import uvloop
from aiohttp import web

from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session
from compute_operator_kit.client.transport.connection import INBOX_BYTES
from compute_operator_kit.testing.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

LINES: Final = 5
LINE_BYTES: Final = 3 * INBOX_BYTES  # more than fits into the inbox at once

pytestmark = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
Run = Callable[[Coroutine[object, object, None]], None]


async def stream(request: web.Request) -> web.StreamResponse:
    """Lines of one letter, in pieces that are as large as it comes."""
    response = web.StreamResponse()
    await response.prepare(request)
    letter = request.path[-1].encode()
    for _ in range(LINES):
        await response.write(letter * LINE_BYTES + b"\n")
        await asyncio.sleep(0)
    if request.path.startswith("/torn") and request.transport is not None:
        request.transport.abort()
    return response


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[AiohttpTransport]:
    authority = Authority()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*authority.issue().write(folder))
    application = web.Application()
    application.router.add_route("GET", "/{anything:.*}", stream)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=served).start()
    trusted = ssl.create_default_context(cadata=authority.certificate.decode())
    try:
        async with open_session() as session:
            origin = f"https://127.0.0.1:{runner.addresses[0][1]}"
            yield AiohttpTransport(session, origin, Tls(lambda: trusted))
    finally:
        await runner.cleanup()


async def watch(transport: AiohttpTransport, path: str) -> bytes:
    answer = await transport.request("GET", f"{path}?watch=1", {}, None)
    try:
        return b"".join([chunk async for chunk in answer.chunks()])
    finally:
        await answer.close()


def lines_of(letter: bytes) -> bytes:
    return (letter * LINE_BYTES + b"\n") * LINES


def test_events_larger_than_the_inbox_arrive_whole_and_apart(run: Run, tmp_path: Path) -> None:
    async def act() -> None:
        async with serving(tmp_path) as transport:
            received = await asyncio.gather(*(watch(transport, f"/{one}") for one in "abcd"))
            assert received == [lines_of(letter) for letter in (b"a", b"b", b"c", b"d")]

    run(act())


@pytest.mark.parametrize(("query", "readers"), [("watch=1", 1), ("limit=1", 0)])
def test_a_watch_reads_into_the_inbox_and_a_list_does_not(
    run: Run, tmp_path: Path, query: str, readers: int
) -> None:
    async def act() -> None:
        async with serving(tmp_path) as transport:
            answer = await transport.request("GET", f"/a?{query}", {}, None)
            assert len(inboxes()) == readers
            await answer.close()

    gc.collect()  # of the tests before
    run(act())


def inboxes() -> list[object]:
    """What of the transport's own stands between a loop and the library."""
    ours = AiohttpTransport.__module__
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, asyncio.BufferedProtocol) and type(one).__module__ == ours
    ]


def test_a_connection_that_carried_a_watch_carries_another(run: Run, tmp_path: Path) -> None:
    async def act() -> None:
        async with serving(tmp_path) as transport:
            assert await watch(transport, "/a") == lines_of(b"a")
            assert await watch(transport, "/b") == lines_of(b"b")

    run(act())


def test_a_watch_that_is_torn_says_so(run: Run, tmp_path: Path) -> None:
    async def act() -> None:
        async with serving(tmp_path) as transport:
            with pytest.raises(OSError, match="exchanging"):
                await watch(transport, "/torn/a")

    run(act())
