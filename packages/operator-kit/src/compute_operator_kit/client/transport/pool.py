"""The transport over a connection pool, for requests of single objects.

One pool serves all planes of a process. It pools by server, TLS context and server name, so that
planes of one server share connections, and a rotated certificate (a new context) gets new ones. If
a kept connection turns out to be closed, only a GET is sent again: a write may have been carried
out.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import msgspec

from compute_operator_kit.client.rest import RestResponse
from compute_operator_kit.client.transport.aiohttp import Tls
from compute_operator_kit.client.transport.connection import (
    INBOX_BYTES,
    HttpConnection,
    StaleConnectionError,
    render_request,
)

# Shorter than servers keep idle connections, so that few requests use a closed one.
KEPT_FOR: Final = timedelta(seconds=15)


class Server(msgspec.Struct, frozen=True):
    """The server of a connection."""

    host: str
    port: int
    context: ssl.SSLContext | None
    server_name: str | None


class Pool:
    """Idle connections by server."""

    def __init__(self, kept_for: timedelta = KEPT_FOR) -> None:
        self._kept_for = kept_for.total_seconds()
        # Each with the time since when it is idle.
        self._idle: dict[Server, deque[tuple[HttpConnection, float]]] = {}
        self._inbox = memoryview(bytearray(INBOX_BYTES))
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))

    async def take(self, server: Server, *, is_fresh: bool = False) -> HttpConnection:
        """A connection to the server: the one used last, or a new one with `is_fresh`."""
        idle = self._idle.get(server)
        while idle and not is_fresh:
            connection, _ = idle.pop()
            if connection.is_usable:
                return connection
        loop = asyncio.get_running_loop()
        try:
            _, made = await loop.create_connection(
                lambda: HttpConnection(loop, self._inbox),
                server.host,
                server.port,
                ssl=server.context,
                server_hostname=_name_of(server),
            )
        except ssl.SSLCertVerificationError as cause:
            raise ConnectionRefusedError("connecting: the certificate is not trusted") from cause
        except OSError as cause:
            raise ConnectionRefusedError(f"connecting: {type(cause).__name__}") from cause
        return made

    def put_back(self, server: Server, connection: HttpConnection) -> None:
        """Keeps a connection for the next request, up to `kept_for`."""
        if self._is_closed:
            connection.close()
            return
        if not connection.is_usable:
            return
        loop = asyncio.get_running_loop()
        kept = (connection, loop.time())
        idle = self._idle.get(server)
        if idle is None:
            self._idle[server] = deque((kept,))
        else:
            idle.append(kept)
        if self._timer is None:
            self._timer = loop.call_later(self._kept_for, self._drop_old)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for idle in self._idle.values():
            for connection, _ in idle:
                connection.close()
        self._idle.clear()

    def _drop_old(self) -> None:
        """Closes old connections; the oldest are first, because the last one used is taken."""
        loop = asyncio.get_running_loop()
        oldest, self._timer = loop.time() - self._kept_for, None
        for server, idle in list(self._idle.items()):
            while idle and (idle[0][1] <= oldest or not idle[0][0].is_usable):
                idle.popleft()[0].close()
            if not idle:
                del self._idle[server]
        if self._idle:
            self._timer = loop.call_later(self._kept_for, self._drop_old)


def _name_of(server: Server) -> str | None:
    if server.context is None:
        return None
    return server.server_name or server.host


@contextlib.asynccontextmanager
async def open_pool() -> AsyncGenerator[Pool]:
    """A pool for all planes; to be opened inside the running event loop."""
    pool = Pool()
    try:
        yield pool
    finally:
        pool.close()
        await asyncio.sleep(0)  # `connection_lost` runs in the next iteration


class PooledTransport:
    """Sends requests to one server."""

    def __init__(self, pool: Pool, origin: str, tls: Tls | None = None) -> None:
        """`origin` is scheme, host and port; without `tls` the scheme must not need it."""
        url = urlsplit(origin)
        is_secure = url.scheme == "https"
        if is_secure != (tls is not None) or not url.hostname:
            raise ValueError(f"reaching {origin!r}: scheme and trust do not fit")
        self._pool = pool
        self._tls = tls
        self._host = url.hostname
        self._port = url.port or (443 if is_secure else 80)
        self._host_header = url.netloc.rpartition("@")[2]
        self._server = Server(self._host, self._port, None, None)

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> RestResponse:
        server = self._find_server()
        request = render_request(method, target, self._host_header, headers, body)
        try:
            return await self._exchange(server, request)
        except StaleConnectionError:
            if method != "GET":
                raise
        return await self._exchange(server, request, is_fresh=True)

    async def _exchange(
        self, server: Server, request: bytes, *, is_fresh: bool = False
    ) -> RestResponse:
        connection = await self._pool.take(server, is_fresh=is_fresh)
        answer = await connection.exchange(request)
        self._pool.put_back(server, connection)
        return RestResponse(answer.status, answer.headers, answer.body)

    def _find_server(self) -> Server:
        """The server of the last request, or a new one if the certificates were rotated."""
        if self._tls is not None and (context := self._tls.context()) is not self._server.context:
            self._server = Server(self._host, self._port, context, self._tls.server_name)
        return self._server
