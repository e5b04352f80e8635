"""URL and credentials of every API server of an operator, by the role of its planes.

A role without a kubeconfig of its own is served by the home cluster, with the credentials of the
pod. Kubeconfigs are read once, before anything starts, so that a wrong one ends the process with
exit code 2 instead of failing every request later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compute_kubeconfig.credentials import FileCredentials
from compute_operator_kit.client.rest import Credentials, NoCredentials
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.planes.client_factory import load_home_credentials
from compute_operator_kit.planes.engaged_plane import Plane


@dataclass(frozen=True, slots=True)
class PlaneEndpoint:
    """One API server; a simulation needs neither URL nor credentials."""

    url: str = ""
    credentials: Credentials = field(default_factory=NoCredentials)


@dataclass(frozen=True, slots=True)
class PlaneEndpoints:
    """The API server of each role."""

    by_role: Mapping[Role, PlaneEndpoint] = field(default_factory=dict[Role, PlaneEndpoint])

    def find(self, role: Role) -> PlaneEndpoint:
        home = self.by_role.get(Role.HOME)
        return self.by_role.get(role) or home or PlaneEndpoint()

    def describe(self, name: PlaneName, role: Role) -> Plane:
        """The plane at the API server of its role."""
        endpoint = self.find(role)
        return Plane(name, role, endpoint.url, endpoint.credentials)


@dataclass(frozen=True, slots=True)
class KubeconfigFile:
    """A kubeconfig that a setting names; "" is none, and the current context."""

    path: str
    context: str = ""


@dataclass(frozen=True, slots=True)
class OperatorCredentials:
    """The credentials for each role; those of home where a role has none of its own."""

    home: FileCredentials
    by_role: Mapping[Role, FileCredentials] = field(default_factory=dict[Role, FileCredentials])

    def to(self, role: Role) -> FileCredentials:
        return self.by_role.get(role, self.home)

    def endpoints(self) -> PlaneEndpoints:
        credentials = {Role.HOME: self.home, **self.by_role}
        return PlaneEndpoints(
            {role: PlaneEndpoint(one.server, one) for role, one in credentials.items()}
        )


def load_operator_credentials(
    kubeconfigs: Mapping[Role, KubeconfigFile],
    environ: Mapping[str, str],
    clock: Clock,
    *,
    allow_exec: bool,
) -> OperatorCredentials:
    """Reads every kubeconfig once, also one of several roles; `ConfigurationError` when one is
    refused.
    """
    home = load_home_credentials(environ, clock, allow_exec=allow_exec)
    loaded = {
        file: FileCredentials.from_kubeconfig(
            Path(file.path), clock=clock, context=file.context, allow_exec=allow_exec
        )
        for file in {file: None for file in kubeconfigs.values() if file.path}
    }
    by_role = {role: loaded[file] for role, file in kubeconfigs.items() if file in loaded}
    return OperatorCredentials(home, by_role)
