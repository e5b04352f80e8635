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

from compute_cell_operator.plane_names import CELL
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.wiring import Places
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


@dataclass(frozen=True, slots=True)
class Identities:
    """Who we are to each plane; None where the settings have no such plane."""

    cell: FileCredentials
    hub: FileCredentials | None = None

    def to(self, role: Role) -> FileCredentials:
        return self.hub if role is Role.HUB and self.hub is not None else self.cell

    def places(self) -> Places:
        hub = self.to(Role.HUB)
        return Places(self.cell.server, hub.server, self.cell, hub)


def load_identities(settings: CellSettings, environ: Mapping[str, str], clock: Clock) -> Identities:
    """Every credential the settings name, read once; `ConfigurationError` when one is refused."""
    found, allow_exec = settings.federation, settings.clients.allow_exec
    hub = None
    if found.kubeconfig_path:
        hub = FileCredentials.from_kubeconfig(
            Path(found.kubeconfig_path), clock=clock, context=found.context, allow_exec=allow_exec
        )
    return Identities(_load_cell(environ, clock, allow_exec=allow_exec), hub)


def _load_cell(environ: Mapping[str, str], clock: Clock, *, allow_exec: bool) -> FileCredentials:
    """The pod's own cluster; outside of one, where the customary variable points."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return FileCredentials.in_cluster(environ, clock=clock)
    path = environ.get(HOME_KUBECONFIG, "")
    if not path:
        hint = "is not set, and this is no pod: the cell's own plane cannot be found"
        raise ConfigurationError([Problem(HOME_KUBECONFIG, hint)])
    return FileCredentials.from_kubeconfig(Path(path), clock=clock, allow_exec=allow_exec)


class Connector:
    """Makes the client of a plane."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        identities: Identities,
        settings: CellSettings,
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
        return KubeHttp(connection, Writer(self._user_agent, self._user_agent))

    def connect_home(self, clock: Clock, writer: Writer) -> Kube:
        """A client of the cell that no breaker stops, for the Lease and for reviews."""
        home = Plane(CELL, Role.HOME, self._identities.cell.server, self._identities.cell)
        return self.connect(home, PatientLane(CELL, clock)).acting_as(writer)


class PatientLane(Lane):
    """A way that stays open: who takes it has a pace of its own.

    An election asks every other second and must be the first to notice that home answers again; a
    breaker would close the way, and no probe of ours opens it.
    """

    @override
    async def admit(self, *, is_probe: bool = False) -> None:
        await super().admit(is_probe=True)
