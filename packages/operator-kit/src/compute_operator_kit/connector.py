"""How a process reaches its planes: credentials out of files, transports over one session and one
pool.

The only module that makes clients of real planes. A simulation brings transports of its own and
never comes here.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import aiohttp
from typing_extensions import override

from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.credentials import FileCredentials
from compute_operator_kit.exchange import Connection
from compute_operator_kit.http_pool import Pool, PooledTransport, open_pool
from compute_operator_kit.http_transport import AiohttpTransport, Tls, open_session
from compute_operator_kit.keys import PlaneName, Role
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.measures import Measures
from compute_operator_kit.planes import Plane
from compute_operator_kit.settings import ClientsSettings
from compute_operator_kit.strict_yaml import Problem

HOME_KUBECONFIG: Final = "KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Ways:
    """What all requests of a process travel on."""

    session: aiohttp.ClientSession  # streams and pages
    pool: Pool  # single objects


@contextlib.asynccontextmanager
async def open_ways() -> AsyncGenerator[Ways]:
    """To be opened inside the loop that uses them, and closed at the end."""
    async with open_session() as session, open_pool() as pool:
        yield Ways(session, pool)


class Identities(Protocol):
    """Who the process is to each plane."""

    @property
    def home(self) -> FileCredentials: ...

    def to(self, role: Role) -> FileCredentials: ...


def load_home(environ: Mapping[str, str], clock: Clock, *, allow_exec: bool) -> FileCredentials:
    """The pod's own cluster; outside of one, where the customary variable points."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return FileCredentials.in_cluster(environ, clock=clock)
    path = environ.get(HOME_KUBECONFIG, "")
    if not path:
        hint = "is not set, and this is no pod: the home plane cannot be found"
        raise ConfigurationError([Problem(HOME_KUBECONFIG, hint)])
    return FileCredentials.from_kubeconfig(Path(path), clock=clock, allow_exec=allow_exec)


class Connector:
    """Makes the client of a plane; the many planes of one server share its connections."""

    def __init__(
        self,
        ways: Ways,
        identities: Identities,
        clients: ClientsSettings,
        *,
        measures: Measures,
        component: str,
        version: str,
    ) -> None:
        self._ways = ways
        self._identities = identities
        self._clients = clients
        self._measures = measures
        self._user_agent = f"{component}/{version}"
        self._cache = Writer("cache", component)  # who reads where no controller asks

    def connect(self, plane: Plane, lane: Lane) -> Kube:
        credentials = self._identities.to(plane.role)
        found = urlsplit(plane.base_url)
        tls = Tls(lambda: credentials.ssl_context, credentials.server_hostname)
        origin = f"{found.scheme}://{found.netloc}"
        connection = Connection(
            plane=plane.name,
            role=plane.role,
            transport=AiohttpTransport(self._ways.session, origin, tls),
            lane=lane,
            short=PooledTransport(self._ways.pool, origin, tls),
            credentials=credentials,
            base_path=found.path.rstrip("/"),
            user_agent=self._user_agent,
            request_timeout=self._clients.request_timeout,
            measures=self._measures,
        )
        return KubeHttp(connection, self._cache)

    def connect_home(self, name: PlaneName, clock: Clock, writer: Writer) -> Kube:
        """A client of the home plane that no breaker stops, for the Lease and for reviews."""
        home = self._identities.home
        plane = Plane(name, Role.HOME, home.server, home)
        return self.connect(plane, PatientLane(name, clock)).acting_as(writer)


class PatientLane(Lane):
    """A way that stays open: who takes it has a pace of its own.

    An election asks every other second and must be the first to notice that home answers again; a
    breaker would close the way, and no probe of ours opens it.
    """

    @override
    async def admit(self, *, is_probe: bool = False) -> None:
        await super().admit(is_probe=True)
