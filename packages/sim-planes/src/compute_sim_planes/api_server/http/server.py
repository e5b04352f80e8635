"""HTTP server on the loopback interface in front of planes, with or without TLS.

One server serves any number of planes, distinguished by path prefix. It does not know Kubernetes:
it passes requests to a transport and returns the responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from aiohttp import web

from compute_sim_planes.api_server.api_errors import too_large
from compute_sim_planes.api_server.http.responses import error_response, text_response
from compute_sim_planes.api_server.http.transport import BytesResponse, Response, Transport
from compute_sim_planes.api_server.http.watch_stream import WatchStream

# A real server refuses longer bodies.
BODY_LIMIT: Final = 3 * 1024 * 1024

# The transport for a request target, and the target without the transport's prefix; None: no such
# plane.
Route = Callable[[str], tuple[Transport, str] | None]


def route_all(transport: Transport) -> Route:
    """A route that sends every request to one plane."""
    return lambda target: (transport, target)


class PrefixRoutes:
    """Planes by path prefix, which is removed before a plane sees the path. May change while the
    server runs.
    """

    def __init__(self) -> None:
        self._planes: dict[str, Transport] = {}

    def add(self, prefix: str, transport: Transport) -> None:
        """Route paths under `prefix` (without a trailing slash) to `transport`."""
        self._planes[prefix] = transport

    def remove(self, prefix: str) -> None:
        self._planes.pop(prefix, None)

    def __call__(self, target: str) -> tuple[Transport, str] | None:
        path = target.partition("?")[0]
        fitting = (
            prefix for prefix in self._planes if path == prefix or path.startswith(f"{prefix}/")
        )
        longest = max(fitting, key=len, default=None)
        if longest is None:
            return None
        return self._planes[longest], target[len(longest) :] or "/"


class HttpServer:
    """A listening socket in front of planes."""

    def __init__(self, route: Route, *, tls: ssl.SSLContext | None = None) -> None:
        self._route = route
        self._tls = tls
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes any that is free."""
        # Cancellation ends a watch when its client disconnects, not only at its timeout.
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=self._tls)
        await site.start()
        address = self._runner.addresses[0]
        self.port = int(address[1])

    async def close(self) -> None:
        """Close every connection, also those that clients keep open."""
        if self._runner is None or self._server is None:
            return
        transports = [connection.transport for connection in self._server.connections]
        await self._runner.cleanup()
        self._runner = None
        for transport in transports:
            # TLS would wait half a minute for the peer's close_notify. Early releases of Python
            # 3.11 fail on a transport that was closed twice.
            if transport is not None:
                with contextlib.suppress(AttributeError):
                    transport.abort()
        # An abort takes effect in the next iteration of the loop.
        await asyncio.sleep(0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        target = self._route(request.raw_path)
        if target is None:
            return _complete(text_response("404 page not found\n", 404))
        body = await _read_limited(request)
        if body is None:
            return _complete(error_response(too_large(BODY_LIMIT)))
        transport, rest = target
        answer = await transport.request(request.method, rest, request.headers, body)
        if isinstance(answer, BytesResponse):
            return _complete(answer)
        return await _stream(request, answer)


def _complete(answer: BytesResponse) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


async def _read_limited(request: web.BaseRequest) -> bytes | None:
    """The body; None when it exceeds the limit."""
    if not request.can_read_body:
        return b""
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > BODY_LIMIT:
            return None
        parts.append(part)
    return b"".join(parts)


async def _stream(request: web.BaseRequest, answer: Response) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    chunks = answer.batches() if isinstance(answer, WatchStream) else answer.chunks()
    try:
        # A client that disconnects ends the stream; that is no error.
        with suppress(ConnectionResetError):
            await response.prepare(request)
            async for chunk in chunks:
                await response.write(chunk)
            await response.write_eof()
    finally:
        await answer.close()
    return response
