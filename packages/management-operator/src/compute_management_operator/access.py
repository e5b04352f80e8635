"""How this process reaches its planes: credentials out of files, transports over one session.

The only module that makes clients of real planes. A simulation brings transports of its own and
never comes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from typing_extensions import override

from compute_management_operator.plane_names import HOME
from compute_management_operator.settings import ManagementSettings
from compute_management_operator.wiring import COMPONENT, Places
from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.exchange import Connection
from compute_operator_kit.http_transport import AiohttpTransport, Tls
from compute_operator_kit.keys import Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.measures import Measures
from compute_operator_kit.planes import Plane
from compute_operator_kit.strict_yaml import Problem

HOME_KUBECONFIG: Final = "KUBECONFIG"
CACHE: Final = Writer("cache", COMPONENT)  # who reads where no controller asks


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
        home=_load_home(settings, environ, clock),
        root=root,
        projects=load(found.project_kubeconfig_path) or root,
        hub=load(hub.kubeconfig_path, hub.context),
    )


def _load_home(
    settings: ManagementSettings, environ: Mapping[str, str], clock: Clock
) -> FileCredentials:
    """The pod's own cluster; outside of one, where the customary variable points."""
    path = environ.get(HOME_KUBECONFIG, "")
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return FileCredentials.in_cluster(environ, clock=clock)
    if not path:
        hint = "is not set, and this is no pod: the home plane cannot be found"
        raise ConfigurationError([Problem(HOME_KUBECONFIG, hint)])
    return FileCredentials.from_kubeconfig(
        Path(path), clock=clock, allow_exec=settings.clients.allow_exec
    )


class Connector:
    """Makes the client of a plane; the many planes of one server share its connections."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        identities: Identities,
        settings: ManagementSettings,
        *,
        measures: Measures,
        user_agent: str,
    ) -> None:
        self._session = session
        self._identities = identities
        self._settings = settings
        self._measures = measures
        self._user_agent = user_agent

    def connect(self, plane: Plane, lane: Lane) -> Kube:
        credentials = self._identities.to(plane.role)
        found = urlsplit(plane.base_url)
        tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
        connection = Connection(
            plane=plane.name,
            role=plane.role,
            transport=AiohttpTransport(self._session, f"{found.scheme}://{found.netloc}", tls),
            lane=lane,
            credentials=credentials,
            base_path=found.path.rstrip("/"),
            user_agent=self._user_agent,
            request_timeout=self._settings.clients.request_timeout,
            measures=self._measures,
        )
        return KubeHttp(connection, CACHE)

    def connect_home(self, clock: Clock, writer: Writer) -> Kube:
        """A client of the home plane that no breaker stops, for the Lease and for reviews."""
        home = Plane(HOME, Role.HOME, self._identities.home.server, self._identities.home)
        return self.connect(home, PatientLane(HOME, clock)).acting_as(writer)


class PatientLane(Lane):
    """A way that stays open: who takes it has a pace of its own.

    An election asks every other second and must be the first to notice that home answers again; a
    breaker would close the way, and no probe of ours opens it.
    """

    @override
    async def admit(self, *, is_probe: bool = False) -> None:
        await super().admit(is_probe=True)
