"""API servers of projects that are created and deleted while the stack runs.

The stack owns the processes; Milo's controllers request them. A new server gets the root's CRDs
before its controller-manager starts, which would discover later ones only after 30 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from compute_sim_planes.json_types import JsonObject, objects_at
from e2e.harness.access.client import PlaneClient
from e2e.harness.access.waiting import NOT_YET
from e2e.harness.errors import PlanesError
from e2e.harness.gateway.mirror import derive_copy
from e2e.harness.gateway.planes_on_demand import PlaneLifecycleReply, PlaneLifecycleRequest
from e2e.harness.planes.plane import RealPlane, install_crds, prepare_plane
from e2e.harness.planes.topology import PlaneSpec, Role

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ProjectServers:
    """Starts and stops them in the stack's `planes`; `on_change` is called after every change."""

    def __init__(
        self, root: RealPlane, planes: dict[str, RealPlane], on_change: Callable[[], None]
    ) -> None:
        self._root = root
        self._planes = planes
        self._on_change = on_change

    async def carry_out(self, request: PlaneLifecycleRequest) -> PlaneLifecycleReply:
        if request.wish == "end":
            await self._end(request.project)
            return PlaneLifecycleReply()
        plane = self._planes.get(request.project) or await self._begin(request.project)
        if plane.spec.role is not Role.PROJECT:
            return PlaneLifecycleReply(
                refusal=f"{plane.name!r} is the name of another plane of this stack"
            )
        return PlaneLifecycleReply(
            server=plane.server, token=plane.runtime.tokens.of(plane.name).token
        )

    async def _begin(self, project: str) -> RealPlane:
        runtime = self._root.runtime
        runtime.tokens.admit(project)
        plane = prepare_plane(PlaneSpec(project, Role.PROJECT), runtime, self._root.port)
        try:
            await plane.api_server.up()
            async with plane.client() as client:
                await install_crds(client, await self._kinds_of_the_root(), runtime)
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

    async def _discard(self, plane: RealPlane) -> None:
        for process in (plane.controller_manager, plane.api_server):
            await process.crash()
            plane.runtime.forget(process.name)

    async def _kinds_of_the_root(self) -> list[JsonObject]:
        async with self._root.client() as client:
            return [derive_copy(definition) for definition in await _listed(client, DEFINITIONS)]


async def _listed(client: PlaneClient, path: str) -> list[JsonObject]:
    # Items of a list carry neither kind nor apiVersion.
    kind: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
    }
    return [{**kind, **item} for item in objects_at(await client.get(path), "items")]
