"""The planes of one simulated Milo: a root, and one per project id that anybody ever asked for.

They are parts of one server: versions come from one counter, kinds from the root's definitions,
rights from the root's roles, webhooks and admission policies from the root's configurations. Only
what is stored is apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.api_server.builtin_kinds import project_plane_kinds
from compute_sim_planes.api_server.dispatch import dispatch
from compute_sim_planes.api_server.identity import MASTERS, Tokens, User, authenticated
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.policies import PolicyForm
from compute_sim_planes.api_server.sources import Clock, Identities
from compute_sim_planes.api_server.state import Limits
from compute_sim_planes.api_server.storage.revisions import Revisions
from compute_sim_planes.api_server.transport import Answer
from compute_sim_planes.api_server.webhook_callers import RegisteredWebhooks, WebhookCaller
from compute_sim_planes.client import Client
from compute_sim_planes.milo.kinds import MANAGER, SYSTEM_NAMESPACE
from compute_sim_planes.milo.quota_admission import QuotaAdmission

ROOT: Final = ""
CONTROLLERS: Final = authenticated(f"system:{MANAGER}", MASTERS)


@dataclass(slots=True)
class MiloParts:
    """What a Milo is given; clock and identities are the world's."""

    clock: Clock
    identities: Identities
    tokens: Tokens = field(default_factory=Tokens)
    # How validating webhooks of the root are reached, and the forms of its admission policies.
    webhooks: WebhookCaller = field(default_factory=RegisteredWebhooks)
    policies: dict[str, PolicyForm] = field(default_factory=dict[str, PolicyForm])
    limits: Limits = field(default_factory=Limits)


class Planes:
    """The root and the projects; a project's plane begins with the first request to it."""

    def __init__(self, parts: MiloParts) -> None:
        self._parts = parts
        self._revisions = Revisions()
        self._projects: dict[str, Plane] = {}
        self._away: set[str] = set()
        # Milo's collector never learns of kinds that came after it.
        self._collected: frozenset[GroupResource] = frozenset()
        self.root = Plane(
            "milo",
            PlaneParts(
                clock=parts.clock,
                identities=parts.identities,
                tokens=parts.tokens,
                webhooks=parts.webhooks,
                policies=parts.policies,
                limits=parts.limits,
                kinds=project_plane_kinds(),
                namespaces=("default", "kube-system", SYSTEM_NAMESPACE),
                revisions=self._revisions,
                collects=self._collects,
            ),
        )
        self.root.state.admission.reviewers.append(QuotaAdmission(self.root.state.store))

    def at(self, project: str) -> Plane:
        """A project's plane, whether there is a Project or not; `ROOT` is the root's."""
        if project == ROOT:
            return self.root
        found = self._projects.get(project)
        if found is None:
            found = self._projects[project] = self._make(project)
        return found

    def take_away(self, project: str) -> None:
        """From now on nobody reaches this plane, and its watches end."""
        self._away.add(project)
        state = self.at(project).state
        for stream in tuple(state.streams):
            stream.end()

    def bring_back(self, project: str) -> None:
        self._away.discard(project)

    def is_away(self, project: str) -> bool:
        return project in self._away

    def client(self, project: str = ROOT) -> Client:
        """What Milo's own controllers see of a plane: everything."""
        return Client(_Inside(self, project, CONTROLLERS), manager=MANAGER)

    def restart_collector(self) -> None:
        """From now on children of all kinds that are served at this moment follow their owners."""
        self._collected = frozenset(kind.group_resource for kind in self.root.state.catalog)
        for plane in (*self._projects.values(), self.root):
            plane.collector.look_again()

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
                # The project controller makes them, for projects that exist.
                namespaces=(),
                revisions=self._revisions,
                definitions=root.definitions,
                collects=self._collects,
            ),
        )


class _Inside:
    """A transport past the front door."""

    def __init__(self, planes: Planes, project: str, user: User) -> None:
        self._planes = planes
        self._project = project
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        if self._planes.is_away(self._project):
            raise ConnectionRefusedError(f"connecting to plane {self._project!r}: refused")
        state = self._planes.at(self._project).state
        return await dispatch(state, self._user, method, target, headers, body)
