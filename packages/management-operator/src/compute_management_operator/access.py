"""Who this operator is to each of its planes, by the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import Places
from compute_operator_kit.clock import Clock
from compute_operator_kit.connector import load_home
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.keys import Role


@dataclass(frozen=True, slots=True)
class Identities:
    """Who we are to each plane; None where the settings have no such plane."""

    home: FileCredentials
    root: FileCredentials | None = None
    projects: FileCredentials | None = None
    hub: FileCredentials | None = None

    def to(self, role: Role) -> FileCredentials:
        chosen = {Role.ROOT: self.root, Role.PROJECT: self.projects, Role.HUB: self.hub}
        return chosen.get(role) or self.home

    def places(self) -> Places:
        root, projects, hub = (self.to(role) for role in (Role.ROOT, Role.PROJECT, Role.HUB))
        return Places(
            home=self.home.server,
            root=root.server,
            hub=hub.server,
            projects=projects.server,
            home_credentials=self.home,
            root_credentials=root,
            hub_credentials=hub,
            project_credentials=projects,
        )


def load_identities(
    settings: ManagementSettings, environ: Mapping[str, str], clock: Clock
) -> Identities:
    """Every credential the settings name, read once; `ConfigurationError` when one is refused."""

    def load(path: str, context: str = "") -> FileCredentials | None:
        if not path:
            return None
        return FileCredentials.from_kubeconfig(
            Path(path), clock=clock, context=context, allow_exec=settings.clients.allow_exec
        )

    found, hub = settings.discovery, settings.hub
    root = load(found.discovery_kubeconfig_path)
    return Identities(
        home=load_home(environ, clock, allow_exec=settings.clients.allow_exec),
        root=root,
        projects=load(found.project_kubeconfig_path) or root,
        hub=load(hub.kubeconfig_path, hub.context),
    )
