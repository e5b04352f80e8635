"""The planes of one simulated Milo: the root, and one for every project id that was requested.

They belong to one server: versions come from one counter, kinds from the root's CRDs, permissions
from the root's roles, webhooks and admission policies from the root's configurations. Only storage
is separate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.api_server.admission.webhook_clients import (
    RegisteredWebhooks,
    WebhookCaller,
)
from compute_sim_planes.api_server.authz.identity import MASTERS, Tokens, User, authenticated
from compute_sim_planes.api_server.dispatch import dispatch
from compute_sim_planes.api_server.http.transport import Response
from compute_sim_planes.api_server.kinds.builtin import project_plane_kinds
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.state import Limits
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.client.rest import Client
from compute_sim_planes.milo.kinds import MANAGER, PARENT, SYSTEM_NAMESPACE
from compute_sim_planes.milo.quota.admission import QuotaAdmission
from compute_sim_planes.milo.suspension.enforcement import SuspensionAdmission
from compute_sim_planes.time.sources import Clock, Identities

ROOT: Final = ""
CONTROLLERS: Final = authenticated(f"system:{MANAGER}", MASTERS)


@dataclass(slots=True)
class MiloParts:
    """The dependencies of a Milo."""

    clock: Clock
    identities: Identities
    tokens: Tokens = field(default_factory=Tokens)
    # The client for validating webhooks of the root.
    webhooks: WebhookCaller = field(default_factory=RegisteredWebhooks)
    limits: Limits = field(default_factory=Limits)


class Planes:
    """The root and the projects; a project's plane is created by the first request to it."""

    def __init__(self, parts: MiloParts) -> None:
        self._parts = parts
        self._revisions = Revisions()
        self._projects: dict[str, Plane] = {}
        self._unavailable: set[str] = set()
        # Kinds that are garbage collected: Milo's collector does not discover kinds installed
        # later.
        self._collected: frozenset[GroupResource] = frozenset()
        self.root = Plane(
            "milo",
            PlaneParts(
                clock=parts.clock,
                identities=parts.identities,
                tokens=parts.tokens,
                webhooks=parts.webhooks,
                limits=parts.limits,
                kinds=project_plane_kinds(),
                namespaces=("default", "kube-system", SYSTEM_NAMESPACE),
                revisions=self._revisions,
                collects=self._collects,
            ),
        )
        self.root.state.admission.reviewers += [
            SuspensionAdmission(self.root.state.store, find_project),
            QuotaAdmission(self.root.state.store),
        ]

    def at(self, project: str) -> Plane:
        """The plane of a project, whether the Project exists or not; `ROOT` is the root."""
        if project == ROOT:
            return self.root
        existing = self._projects.get(project)
        if existing is None:
            existing = self._projects[project] = self._make(project)
        return existing

    def make_unavailable(self, project: str) -> None:
        """Make a plane unreachable for all clients, and end its watches."""
        self._unavailable.add(project)
        state = self.at(project).state
        for stream in tuple(state.streams):
            stream.end()

    def make_available(self, project: str) -> None:
        self._unavailable.discard(project)

    def is_unavailable(self, project: str) -> bool:
        return project in self._unavailable

    def client(self, project: str = ROOT) -> Client:
        """An unrestricted client for Milo's own controllers."""
        return Client(_DirectTransport(self, project, CONTROLLERS), manager=MANAGER)

    def restart_collector(self) -> None:
        """Garbage collect all kinds that are served now, as after a restart."""
        self._collected = frozenset(kind.group_resource for kind in self.root.state.catalog)
        for plane in (*self._projects.values(), self.root):
            plane.collector.resync()

    async def close(self) -> None:
        for plane in (*self._projects.values(), self.root):
            await plane.close()

    def _collects(self, resource: GroupResource) -> bool:
        return resource in self._collected

    def _make(self, project: str) -> Plane:
        root = self.root
        return Plane(
            project,
            PlaneParts(
                clock=self._parts.clock,
                identities=self._parts.identities,
                tokens=self._parts.tokens,
                authorizer=root.state.authorizer,
                bootstraps_roles=False,
                admission=root.state.admission,
                limits=self._parts.limits,
                # The project controller creates them, for projects that exist.
                namespaces=(),
                revisions=self._revisions,
                definitions=root.definitions,
                collects=self._collects,
            ),
        )


def find_project(user: User) -> str:
    """The project that a user's extras name; empty at the root."""
    return next((values[0] for key, values in user.extra if key == f"{PARENT}name" and values), "")


class _DirectTransport:
    """A transport that bypasses the router."""

    def __init__(self, planes: Planes, project: str, user: User) -> None:
        self._planes = planes
        self._project = project
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self._planes.is_unavailable(self._project):
            raise ConnectionRefusedError(f"connecting to plane {self._project!r}: refused")
        state = self._planes.at(self._project).state
        return await dispatch(state, self._user, method, target, headers, body)
