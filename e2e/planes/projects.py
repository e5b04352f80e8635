"""API servers of projects that come and go while the stack runs.

The stack owns them like all its processes; when one is needed is for Milo's controllers to say. A
new one holds the root's kinds before its controller-manager starts, whose garbage collector would
notice later ones only after 30 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.json_types import JsonObject, objects_at
from e2e.planes.client import PlaneClient
from e2e.planes.errors import PlanesError
from e2e.planes.gateway.mirror import derive_copy
from e2e.planes.gateway.planes_on_demand import Reply, Request
from e2e.planes.plane import Plane, install_crds, prepare_plane
from e2e.planes.topology import PlaneSpec, Role
from e2e.planes.waiting import NOT_YET

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ProjectServers:
    """Begins and ends them; `planes` are those of the stack, `on_change` hears of every change."""

    def __init__(
        self, root: Plane, planes: dict[str, Plane], on_change: Callable[[], None]
    ) -> None:
        self._root = root
        self._planes = planes
        self._on_change = on_change

    async def carry_out(self, request: Request) -> Reply:
        if request.wish == "end":
            await self._end(request.project)
            return Reply()
        plane = self._planes.get(request.project) or await self._begin(request.project)
        if plane.spec.role is not Role.PROJECT:
            return Reply(refusal=f"{plane.name!r} is the name of another plane of this stack")
        return Reply(server=plane.server, token=plane.site.tokens.of(plane.name).token)

    async def _begin(self, project: str) -> Plane:
        site = self._root.site
        site.tokens.admit(project)
        plane = prepare_plane(PlaneSpec(project, Role.PROJECT), site, self._root.port)
        try:
            await plane.api_server.up()
            async with plane.client() as client:
                await install_crds(client, await self._kinds_of_the_root(), site)
            plane.controller_manager.start()
        except BaseException as failure:
            await self._discard(plane)
            if isinstance(failure, NOT_YET):
                raise PlanesError(
                    f"beginning plane {project!r}: {failure}", remedy="look into its log"
                ) from failure
            raise
        self._planes[project] = plane
        self._on_change()
        return plane

    async def _end(self, project: str) -> None:
        plane = self._planes.get(project)
        if plane is None or plane.spec.role is not Role.PROJECT:
            return
        del self._planes[project]
        self._on_change()
        await self._discard(plane)

    async def _discard(self, plane: Plane) -> None:
        for process in (plane.controller_manager, plane.api_server):
            await process.crash()
            plane.site.forget(process.name)

    async def _kinds_of_the_root(self) -> list[JsonObject]:
        async with self._root.client() as client:
            return [derive_copy(found) for found in await _listed(client, DEFINITIONS)]


async def _listed(client: PlaneClient, path: str) -> list[JsonObject]:
    # Elements of a list say neither kind nor version.
    kind: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
    }
    return [{**kind, **found} for found in objects_at(await client.get(path), "items")]
