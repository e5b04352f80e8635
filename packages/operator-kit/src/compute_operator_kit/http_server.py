"""A small HTTP server on one address: what probes and metrics have in common, and nothing of what
they say.

Serves GET only, logs no requests, and stops without waiting for clients that keep their connection
open.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from aiohttp import web

from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.settings import Bind
from compute_operator_kit.strict_yaml import Problem

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

STOP_WITHIN: Final = timedelta(seconds=1)  # part of the 8 s a stop may take
KEEP_ALIVE: Final = timedelta(seconds=15)


class HttpServer:
    """One listening address with a few paths."""

    def __init__(
        self,
        bind: Bind,
        routes: Mapping[str, Handler],
        *,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._bind = bind
        self._context = context
        application = web.Application(client_max_size=1024)  # nobody has to send us a body
        application.add_routes([web.get(path, handler) for path, handler in routes.items()])
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=STOP_WITHIN.total_seconds(),
            keepalive_timeout=KEEP_ALIVE.total_seconds(),
        )

    @property
    def port(self) -> int:
        """The port in use; told by the system where the configured one is 0."""
        address = self._runner.addresses[0]
        return int(address[1])

    async def start(self) -> None:
        """Listens; `ConfigurationError` when the address cannot be had."""
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, self._bind.host or None, self._bind.port, ssl_context=self._context
        )
        try:
            await site.start()
        except OSError as cause:
            await self._runner.cleanup()
            where = f"{self._bind.host}:{self._bind.port}"
            why = f"cannot be bound: {cause.strerror or type(cause).__name__}"
            raise ConfigurationError([Problem(where, why)]) from None

    async def stop(self) -> None:
        await self._runner.cleanup()
