"""An HTTP server on one address, for probes, metrics and the webhook.

Connections are bounded in number and idle time: without that, a client that only connects fills the
memory of the process. Requests are not logged, and a stop does not wait for open connections.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from aiohttp import web
from typing_extensions import override

from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_operator_kit.config.settings import Bind

if TYPE_CHECKING:
    import asyncio

Handler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

STOP_WITHIN: Final = timedelta(seconds=1)  # part of the 8 s a stop may take


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a server holds, and for how long one may be idle."""

    connections: int = 64
    first_request: timedelta = timedelta(seconds=10)  # from the end of the handshake
    idle: timedelta = timedelta(seconds=15)  # after a request


class BoundedServer(web.Server):
    """aiohttp's low-level server within `ConnectionLimits`.

    Over its number, the connection that has been idle for longest is closed, so that many idle
    clients do not keep an API server out.
    """

    def __init__(self, handler: Handler, limits: ConnectionLimits) -> None:
        super().__init__(
            self._serve, access_log=None, keepalive_timeout=limits.idle.total_seconds()
        )
        self._inner = handler
        self._limits = limits
        # In the order in which they became idle.
        self._idle: dict[web.RequestHandler, asyncio.Transport] = {}
        self._served: set[web.RequestHandler] = set()

    @override
    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._idle[handler] = transport
        delay = self._limits.first_request.total_seconds()
        self._loop.call_later(delay, self._close_unused, handler)
        if len(self.connections) > self._limits.connections:
            self._close(next(iter(self._idle)))

    @override
    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        self._idle.pop(handler, None)
        self._served.discard(handler)
        super().connection_lost(handler, exc)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = request.protocol
        transport = self._idle.pop(handler, None)
        self._served.add(handler)
        try:
            return await self._inner(request)
        finally:
            if transport is not None and not transport.is_closing():
                self._idle[handler] = transport

    def _close_unused(self, handler: web.RequestHandler) -> None:
        if handler not in self._served:
            self._close(handler)

    def _close(self, handler: web.RequestHandler) -> None:
        transport = self._idle.pop(handler, None)
        if transport is not None:
            transport.abort()


class HttpServer:
    """One listening address with a few paths, each for one method."""

    def __init__(
        self,
        bind: Bind,
        routes: Mapping[str, Handler],
        *,
        method: str = "GET",
        context: ssl.SSLContext | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._bind = bind
        self._routes = routes
        self._method = method
        self._context = context
        self._limits = limits or ConnectionLimits()
        self._runner: web.ServerRunner | None = None

    @property
    def port(self) -> int:
        """The port in use once it listens, also where the configured port is 0."""
        addresses = self._runner.addresses if self._runner is not None else []
        return int(addresses[0][1])

    async def start(self) -> None:
        """Listens; `ConfigurationError` when the address cannot be bound."""
        server = BoundedServer(self._route, self._limits)
        runner = self._runner = web.ServerRunner(
            server, handle_signals=False, shutdown_timeout=STOP_WITHIN.total_seconds()
        )
        await runner.setup()
        site = web.TCPSite(
            runner, self._bind.host or None, self._bind.port, ssl_context=self._context
        )
        try:
            await site.start()
        except OSError as cause:
            await runner.cleanup()
            where = f"{self._bind.host}:{self._bind.port}"
            why = f"cannot be bound: {cause.strerror or type(cause).__name__}"
            raise ConfigurationError([Problem(where, why)]) from None

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self._routes.get(request.path)
        if handler is None:
            raise web.HTTPNotFound
        allowed = {self._method, "HEAD"} if self._method == "GET" else {self._method}
        if request.method not in allowed:
            raise web.HTTPMethodNotAllowed(request.method, sorted(allowed))
        return await handler(request)
