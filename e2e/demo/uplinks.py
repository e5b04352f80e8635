"""The connection of a cell to hub and Milo: its own port, closed while the cell is cut off.

Operators meet a real outage: open connections are reset and new ones refused. The port stays
reserved, so that no other program listens on it meanwhile.
"""

from __future__ import annotations

import ssl

from compute_sim_planes.api_server.http.server import HttpServer, Route


class Uplink:
    """The routes of one cell's operator to hub and Milo."""

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
