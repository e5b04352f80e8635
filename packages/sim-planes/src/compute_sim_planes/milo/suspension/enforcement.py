"""Milo's enforcement of suspensions: the controller of Projects' conditions, and the admission.

Both read the root. Without the controller an order would suspend nothing; without the admission a
suspended project would accept writes that Milo refuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final

from compute_sim_planes.api_server.admission.chain import AdmissionRequest
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.storage.records import key_of
from compute_sim_planes.api_server.storage.store import Store
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.reflector import RETRY, list_and_watch
from compute_sim_planes.client.rest import Client
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.milo.kinds import PROJECTS, SUSPENSIONS
from compute_sim_planes.milo.suspension.rules import (
    derive_suspended_status,
    is_exempt,
    refuse_write,
)
from compute_sim_planes.time.sources import Clock

_PROJECTS: Final = GroupResource(PROJECTS.group, PROJECTS.plural)


class SuspensionAdmission:
    """One plugin for all planes: the Project is the root's, whatever the plane of the write."""

    def __init__(self, root: Store, project_of: Callable[[User], str]) -> None:
        self._root = root
        self._project_of = project_of

    def handles(self, request: AdmissionRequest) -> bool:
        return request.operation != "DELETE" and bool(self._project_of(request.user))

    async def review(self, request: AdmissionRequest) -> Sequence[str]:
        resource = request.kind.group_resource
        stored = self._root.bucket(_PROJECTS).get(key_of("", self._project_of(request.user)))
        existing = request.existing if request.operation == "UPDATE" else None
        if stored is None or is_exempt(resource, request.user, existing):
            return ()
        refusal = refuse_write(stored.decode(), resource, request.name)
        if refusal is not None:
            raise refusal
        return ()


class SuspensionController:
    """Keeps the condition `Suspended` of Projects that have or had a ProjectSuspension."""

    def __init__(self, root: Client, clock: Clock) -> None:
        self._root = root
        self._clock = clock

    async def run(self) -> None:
        """Run until cancelled."""
        async with aclosing(list_and_watch(self._root, SUSPENSIONS)) as changes:
            async for seen in changes:
                await self._update(string_at(seen.object, "spec", "projectRef", "name"))

    async def _update(self, name: str) -> None:
        while True:
            try:
                await self._reconcile(name)
            except (ApiError, OSError):
                await asyncio.sleep(RETRY.total_seconds())
            else:
                return

    async def _reconcile(self, name: str) -> None:
        project = await self._root.get(PROJECTS, name)
        if project is None:
            return
        suspensions = (await self._root.list(SUSPENSIONS)).items
        status = derive_suspended_status(project, suspensions, self._clock.now())
        if status is None or _holds(object_at(project, "status"), status):
            return
        metadata: JsonObject = {
            "resourceVersion": string_at(project, "metadata", "resourceVersion")
        }
        body: JsonObject = {"metadata": metadata, "status": status}
        await self._root.patch(PROJECTS, name, body, subresource="status")


def _holds(existing: JsonObject, desired: JsonObject) -> bool:
    return all(existing.get(name) == value for name, value in desired.items())
