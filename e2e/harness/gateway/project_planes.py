"""The planes of projects for Milo's controllers; each is started with its first use.

A project's API server is requested with the first request to it and is ready once it has the root's
webhooks and policies; from then on the gateway routes to it. A late request to a deleted project
does not start its plane again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Container, Mapping
from typing import Final

from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client
from compute_sim_planes.milo.kinds import MANAGER
from e2e.harness.gateway.directory import ProjectDirectory
from e2e.harness.gateway.mirror import copy_admission
from e2e.harness.gateway.planes_on_demand import PlaneLifecycleRequest, ask_for_plane
from e2e.harness.gateway.settings import ControllerSettings

_log: Final = logging.getLogger(__name__)


class ProjectPlanes:
    """Starts, finds and stops planes; to be closed at the end."""

    def __init__(self, settings: ControllerSettings, root: Client) -> None:
        self._settings = settings
        self._root = root
        self._directory = ProjectDirectory(settings.directory)
        self._trusted = ssl.create_default_context(cafile=str(settings.authority))
        self._open: dict[str, tuple[str, HttpTransport]] = {}
        self._gone: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    def client(self, project: str, manager: str = MANAGER) -> Client:
        """A client that may be created before its plane exists."""
        return Client(_OnFirstUse(self, project), manager=manager)

    async def open(self, project: str) -> HttpTransport:
        """The transport to a project's plane, which is started if necessary."""
        async with self._lock(project):
            if project in self._gone:
                raise ConnectionRefusedError(f"opening plane {project!r}: the project is gone")
            if project not in self._open:
                try:
                    self._open[project] = await self._begin(project)
                except OSError as cause:
                    _log.warning("Opening the plane of project %s: %s", project, cause)
                    raise
                self._update_gateway()
            return self._open[project][1]

    async def end(self, project: str) -> None:
        """Stops the plane of a deleted project and removes its route."""
        self._gone.add(project)
        async with self._lock(project):
            if entry := self._open.pop(project, None):
                self._update_gateway()
                await entry[1].close()
            # In any case: it may have been started by earlier controllers.
            await self._ask("end", project)
        _log.info("Ended the plane of project %s", project)

    def left_over(self, present: Container[str]) -> list[str]:
        """Projects that were deleted while no controllers ran; their planes are still running."""
        return [name for name in self._directory.read() if name not in present]

    def remember(self, project: str) -> None:
        """Notes that a project of this name exists, perhaps again."""
        self._gone.discard(project)

    async def close(self) -> None:
        """Closes connections; the planes keep running."""
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
        request = PlaneLifecycleRequest.model_validate(
            {"secret": known.secret, "wish": wish, "project": project}
        )
        reply = await ask_for_plane(known.address, known.port, request)
        return reply.server, reply.token

    def _update_gateway(self) -> None:
        self._directory.write({name: server for name, (server, _) in self._open.items()})

    def _lock(self, project: str) -> asyncio.Lock:
        return self._locks.setdefault(project, asyncio.Lock())


class _OnFirstUse:
    """A transport that opens its plane with the first request."""

    def __init__(self, planes: ProjectPlanes, project: str) -> None:
        self._planes = planes
        self._project = project

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        transport = await self._planes.open(self._project)
        return await transport.request(method, target, headers, body)
