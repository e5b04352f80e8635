"""A city's way to everything outside it: one port of its own, closed while the city is cut off.

Operators meet what they meet in a real outage: open connections are reset, new ones are refused.
The port is held meanwhile, so that nobody else is found behind it.
"""

from __future__ import annotations

import ssl

from compute_sim_planes.api_server.http_server import HttpServer, Route


class Uplink:
    """What a cell's operator reaches of hub and Milo, and how."""

    def __init__(self, route: Route, tls: ssl.SSLContext, port: int) -> None:
        self._server = HttpServer(route, tls=tls)
        self._port = port
        self._is_up = False

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    async def open(self) -> None:
        if not self._is_up:
            await self._server.start(self._port)
            self._is_up = True

    async def cut(self) -> None:
        if self._is_up:
            self._is_up = False
            await self._server.close()
