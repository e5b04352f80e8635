"""The planes of projects as Milo's controllers see them: each begins with its first use.

A project's API server is asked for when somebody first talks to it, and is believed in once it
holds what the root's administrators applied; from then on the gateway leads there. A project that
is gone is not brought back by whoever talks to it a moment too late.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Container, Mapping
from typing import Final

from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.client import Client
from compute_sim_planes.client_http import HttpTransport
from compute_sim_planes.milo.kinds import MANAGER
from e2e.planes.gateway.directory import ProjectDirectory
from e2e.planes.gateway.mirror import copy_admission
from e2e.planes.gateway.planes_on_demand import Request, ask_for_plane
from e2e.planes.gateway.settings import ControllerSettings

_log: Final = logging.getLogger(__name__)


class ProjectPlanes:
    """Opens, finds and ends planes; to be closed at the end."""

    def __init__(self, settings: ControllerSettings, root: Client) -> None:
        self._settings = settings
        self._root = root
        self._directory = ProjectDirectory(settings.directory)
        self._trusted = ssl.create_default_context(cafile=str(settings.authority))
        self._open: dict[str, tuple[str, HttpTransport]] = {}
        self._gone: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    def client(self, project: str, manager: str = MANAGER) -> Client:
        """A client that may be used before there is a plane."""
        return Client(_OnFirstUse(self, project), manager=manager)

    async def open(self, project: str) -> HttpTransport:
        """The transport to a project's plane, which begins now if it has not yet."""
        async with self._lock(project):
            if project in self._gone:
                raise ConnectionRefusedError(f"opening plane {project!r}: the project is gone")
            if project not in self._open:
                try:
                    self._open[project] = await self._begin(project)
                except OSError as cause:
                    _log.warning("Opening the plane of project %s: %s", project, cause)
                    raise
                self._tell_gateway()
            return self._open[project][1]

    async def end(self, project: str) -> None:
        """The project is gone: its plane ends and its address leads nowhere."""
        self._gone.add(project)
        async with self._lock(project):
            if found := self._open.pop(project, None):
                self._tell_gateway()
                await found[1].close()
            # Asked for in any case: it may have begun before these controllers did.
            await self._ask("end", project)
        _log.info("Ended the plane of project %s", project)

    def left_over(self, present: Container[str]) -> list[str]:
        """Projects that went while no controllers ran; their planes are still there."""
        return [name for name in self._directory.read() if name not in present]

    def remember(self, project: str) -> None:
        """A project of this name is there, perhaps again."""
        self._gone.discard(project)

    async def close(self) -> None:
        """Lets go of connections; the planes stay."""
        for _, transport in self._open.values():
            await transport.close()
        self._open.clear()

    async def _begin(self, project: str) -> tuple[str, HttpTransport]:
        server, token = await self._ask("begin", project)
        transport = HttpTransport(server, token=token, context=self._trusted)
        try:
            await copy_admission(self._root, Client(transport, manager=MANAGER))
        except BaseException:
            await transport.close()
            raise
        _log.info("Opened the plane of project %s at %s", project, server)
        return server, transport

    async def _ask(self, wish: str, project: str) -> tuple[str, str]:
        known = self._settings
        request = Request.model_validate({"secret": known.secret, "wish": wish, "project": project})
        reply = await ask_for_plane(known.address, known.port, request)
        return reply.server, reply.token

    def _tell_gateway(self) -> None:
        self._directory.write({name: server for name, (server, _) in self._open.items()})

    def _lock(self, project: str) -> asyncio.Lock:
        return self._locks.setdefault(project, asyncio.Lock())


class _OnFirstUse:
    """A transport that opens its plane when it is first used."""

    def __init__(self, planes: ProjectPlanes, project: str) -> None:
        self._planes = planes
        self._project = project

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        transport = await self._planes.open(self._project)
        return await transport.request(method, target, headers, body)
