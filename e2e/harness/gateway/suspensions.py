"""Suspended projects, from a watch of Projects at the root, as Milo's admission keeps them.

The gateway refuses writes into them, with the rules and messages of the simulation; without the
watch every write through the gateway would cost a read of its Project.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from compute_sim_planes.api_server.api_errors import StatusError
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.http.request_info import ResourcePath
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.milo.kinds import PROJECTS
from compute_sim_planes.milo.suspension.rules import SUSPENDED, is_exempt, refuse_write
from e2e.harness.gateway.directory import ProjectDirectory

_WRITES: Final = frozenset({"POST", "PUT", "PATCH"})


class SuspendedProjects:
    """The Projects with condition `Suspended` True."""

    def __init__(self) -> None:
        self._projects: dict[str, JsonObject] = {}

    def find(self, name: str) -> JsonObject | None:
        return self._projects.get(name)

    async def watch(self, root: Client) -> None:
        """Runs as long as the gateway."""
        async with aclosing(list_and_watch(root, PROJECTS)) as changes:
            async for seen in changes:
                self.note(seen.object, is_deleted=seen.is_deleted)

    def note(self, project: JsonObject, *, is_deleted: bool = False) -> None:
        name = string_at(project, "metadata", "name")
        if is_deleted or not is_condition_true(project, SUSPENDED):
            self._projects.pop(name, None)
        else:
            self._projects[name] = project


@dataclass(frozen=True, slots=True)
class KnownProjects:
    """What the gateway knows of projects: where they are served, and which are suspended."""

    directory: ProjectDirectory
    suspended: SuspendedProjects


def may_be_refused(method: str, asked: ResourcePath | None) -> bool:
    """Whether a request is a create or an update of an object; deletes and reads always pass."""
    return asked is not None and method in _WRITES


def find_refusal_of_suspended(
    project: JsonObject, asked: ResourcePath, user: User, existing: JsonObject | None, name: str
) -> StatusError | None:
    """The refusal of a write that the API server would accept; `existing` is None for a create."""
    resource = GroupResource(asked.group, asked.resource)
    if is_exempt(resource, user, existing):
        return None
    return refuse_write(project, resource, asked.name or name)


def path_of_object(path: str, asked: ResourcePath) -> str:
    """The path of the object that a request to a subresource is about."""
    return path.removesuffix(f"/{asked.subresource}") if asked.subresource else path
