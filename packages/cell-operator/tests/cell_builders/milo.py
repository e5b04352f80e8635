"""A simulated Milo beside the cell: one project, its budget, and the operator's way to its claims.

The quota client speaks httpx; below it every project plane has a link, faults and a record of its
own, under the project's name, as the other planes have.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import httpx
from typing_extensions import override

from cell_builders.documents import NAMESPACE_UID, PROJECT, PROJECT_NAMESPACE
from compute_api_types import labels
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.milo.kinds import CLAIMS, GRANTS, REGISTRATIONS
from compute_sim_planes.milo.paths import parse_target, project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.milo.testing import a_grant, a_registration
from compute_sim_planes.time.clock import VirtualClock
from compute_sim_planes.time.sources import Identities

SERVER: Final = "https://milo.example.net"
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
BUDGET: Final = {
    labels.INSTANCES_RESOURCE: 20,
    labels.VCPUS_RESOURCE: 20_000,
    labels.MEMORY_RESOURCE: 40_960,
}
"""Ample: twenty Instances of the usual size."""


class PinnedIdentities:
    """UIDs of a source, but for the ones a test has to know beforehand."""

    def __init__(self, source: Identities) -> None:
        self.next: list[str] = []
        self._source = source

    def uid(self) -> str:
        return self.next.pop() if self.next else self._source.uid()

    def suffix(self) -> str:
        return self._source.suffix()


class SimulatedMilo:
    """Milo with one project, in which the namespace lives that the cell's is named after."""

    def __init__(self, clock: VirtualClock) -> None:
        self._identities = PinnedIdentities(clock.identities)
        self.milo = Milo(MiloParts(clock=clock, identities=self._identities))

    async def open(self) -> None:
        await self.milo.start()

    async def fill(self, budget: Mapping[str, int] = BUDGET) -> None:
        for resource_type in BUDGET:
            await self.milo.client().create(REGISTRATIONS, a_registration(resource_type))
        await self.milo.add_project(PROJECT)
        await self.add_namespace(PROJECT_NAMESPACE, NAMESPACE_UID)
        await self.grant(budget)

    async def add_namespace(self, name: str, uid: str, project: str = PROJECT) -> None:
        self._identities.next.append(uid)
        wanted: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
        }
        made = await self.inside(project).create(NAMESPACES, wanted)
        assert string_at(made, "metadata", "uid") == uid

    async def grant(self, budget: Mapping[str, int], name: str = "grant") -> None:
        await self.inside().create(GRANTS, a_grant(PROJECT, budget, name))

    def inside(self, project: str = PROJECT) -> Client:
        """Past the front door, so without an entry in the history."""
        return self.milo.planes.client(project)

    async def claims(self, project: str = PROJECT) -> dict[str, JsonObject]:
        """All claims of a project by name."""
        page = await self.inside(project).list(CLAIMS)
        return {string_at(found, "metadata", "name"): found for found in page.items}

    async def close(self) -> None:
        await self.milo.close()


class Gateway(httpx.AsyncBaseTransport):
    """Milo's one address to the quota client of one process; `reach` gives the way to a project."""

    def __init__(self, reach: Callable[[str], Transport]) -> None:
        self._reach = reach

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = parse_target(request.url.raw_path.decode("ascii"))
        assert asked.project is not None, "the cell asks projects only"
        body = await request.aread()
        try:
            answer = await self._reach(asked.project).request(
                request.method, asked.path, dict(request.headers), body or None
            )
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=_Body(answer))


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: Response) -> None:
        self._answer = answer

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.chunks():
                yield chunk
        except OSError as error:
            raise httpx.ReadError(str(error)) from error

    @override
    async def aclose(self) -> None:
        await self._answer.close()


class ProjectDoor:
    """One project through Milo's front door, as one user."""

    def __init__(self, milo: Milo, project: str, user: User) -> None:
        self._inner = milo.connect(user)
        self._prefix = project_path(project)

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        return await self._inner.request(method, self._prefix + target, headers, body)
