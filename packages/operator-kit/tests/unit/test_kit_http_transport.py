"""The transport on real sockets: loopback only, real time, fractions of a second."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session


class Server:
    """Answers on loopback, and remembers what reached it."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.connections: set[object] = set()
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.raw_path)
        self.connections.add(request.transport)
        match request.path:
            case "/echo":
                return web.Response(body=await request.read(), headers={"Seen": request.method})
            case "/stream":
                return await self._stream(request)
            case "/away":
                return web.Response(status=302, headers={"Location": "/echo"})
            case "/drop":
                assert request.transport is not None
                request.transport.close()
                return web.Response()
            case _:
                return web.Response(status=404, text="404 page not found")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(3):
            await response.write(b"line %d\n" % number)
            await asyncio.sleep(0.01)
        return response


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    started = Server()
    application = web.Application(client_max_size=4 * 1024 * 1024)
    application.router.add_route("*", "/{anything:.*}", started.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    started.port = int(runner.addresses[0][1])
    yield started
    await runner.cleanup()


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as opened:
        yield opened


@pytest.fixture
def transport(server: Server, session: aiohttp.ClientSession) -> AiohttpTransport:
    return AiohttpTransport(session, f"http://127.0.0.1:{server.port}/")


async def test_a_request_and_its_answer(transport: AiohttpTransport) -> None:
    answer = await transport.request("POST", "/echo", {"Content-Type": "x"}, b"hello")
    assert answer.status == 200
    assert answer.headers["seen"] == "POST"
    assert b"".join([chunk async for chunk in answer.chunks()]) == b"hello"
    await answer.close()


@pytest.mark.fault("F4")
async def test_a_body_of_the_largest_object_is_sent_whole(transport: AiohttpTransport) -> None:
    body = b"0123456789abcdef" * 98_304  # 1.5 MiB
    answer = await transport.request("PUT", "/echo", {"Content-Type": "x"}, body)
    assert answer.status == 200
    assert b"".join([chunk async for chunk in answer.chunks()]) == body
    await answer.close()


@pytest.mark.fault("G6")
async def test_an_encoded_path_arrives_as_it_was_encoded(
    transport: AiohttpTransport, server: Server
) -> None:
    target = "/api/v1/namespaces/a%3Ab%2Fc/x%20y?labelSelector=a%3Db%2Cc"
    await (await transport.request("GET", target, {}, None)).close()
    assert server.paths == [target]


async def test_a_connection_read_to_its_end_is_used_again(
    transport: AiohttpTransport, server: Server
) -> None:
    for _ in range(5):
        answer = await transport.request("GET", "/echo", {}, None)
        assert [chunk async for chunk in answer.chunks()] == []
        await answer.close()
    assert len(server.connections) == 1


async def test_a_watch_never_takes_over_the_connection_of_a_list(
    transport: AiohttpTransport, server: Server
) -> None:
    async def connections_after(*targets: str) -> int:
        for target in targets:
            answer = await transport.request("GET", target, {}, None)
            assert [chunk async for chunk in answer.chunks()] == []
            await answer.close()
        return len(server.connections)

    assert await connections_after("/echo?limit=500", "/echo?fieldSelector=watch%3D1") == 1
    assert await connections_after("/echo?watch=1&timeoutSeconds=9", "/echo?limit=1&watch=1") == 2


async def test_a_stream_is_read_as_it_comes_and_can_be_left(transport: AiohttpTransport) -> None:
    answer = await transport.request("GET", "/stream", {}, None)
    chunks = answer.chunks()
    assert await anext(chunks) == b"line 0\n"
    await answer.close()
    await answer.close()


async def test_redirects_are_not_followed(transport: AiohttpTransport, server: Server) -> None:
    answer = await transport.request("GET", "/away", {"Authorization": "Bearer x"}, None)
    assert answer.status == 302
    await answer.close()
    assert server.paths == ["/away"]


@pytest.mark.fault("C4")
async def test_a_server_that_is_not_there_was_sent_nothing(session: aiohttp.ClientSession) -> None:
    unreachable = AiohttpTransport(session, "http://127.0.0.1:1")
    with pytest.raises(ConnectionRefusedError):
        await unreachable.request("POST", "/echo", {}, b"x")


@pytest.mark.fault("C4")
async def test_a_server_that_does_not_speak_tls_was_sent_nothing(
    server: Server, session: aiohttp.ClientSession
) -> None:
    context = ssl.create_default_context()
    secure = AiohttpTransport(session, f"https://127.0.0.1:{server.port}", Tls(lambda: context))
    with pytest.raises(ConnectionRefusedError):
        await secure.request("POST", "/echo", {}, b"x")


@pytest.mark.fault("C5")
async def test_a_connection_lost_after_sending_is_not_known(transport: AiohttpTransport) -> None:
    with pytest.raises(ConnectionResetError):
        await transport.request("POST", "/drop", {}, b"x")


async def test_the_surroundings_do_not_choose_a_proxy(
    transport: AiohttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    answer = await transport.request("GET", "/echo", {}, None)
    assert answer.status == 200
    await answer.close()
