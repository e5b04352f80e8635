"""The client factory: clients of real planes, with credentials from files and shared transports.

All planes of a process share one aiohttp session and one connection pool, so that a thousand
projects behind one server do not need a thousand pools. A simulation uses its own transports.
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

from compute_kubeconfig.credentials import FileCredentials
from compute_kubeconfig.problems import ConfigurationError, Problem
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.client.rest import RestConfig
from compute_operator_kit.client.transport.aiohttp import AiohttpTransport, Tls, open_session
from compute_operator_kit.client.transport.pool import Pool, PooledTransport, open_pool
from compute_operator_kit.config.settings import ClientsSettings
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.planes.engaged_plane import Plane

HOME_KUBECONFIG: Final = "KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Transports:
    """The connections that all clients of a process share."""

    session: aiohttp.ClientSession  # streams and pages
    pool: Pool  # single objects


@contextlib.asynccontextmanager
async def open_transports() -> AsyncGenerator[Transports]:
    """Opens the transports inside the running event loop and closes them at the end."""
    async with open_session() as session, open_pool() as pool:
        yield Transports(session, pool)


class PlaneCredentials(Protocol):
    """The credentials of the process, by role of a plane."""

    @property
    def home(self) -> FileCredentials: ...

    def to(self, role: Role) -> FileCredentials: ...


def load_home_credentials(
    environ: Mapping[str, str], clock: Clock, *, allow_exec: bool
) -> FileCredentials:
    """In a pod its service account, elsewhere the kubeconfig that `KUBECONFIG` names."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return FileCredentials.in_cluster(environ, clock=clock)
    path = environ.get(HOME_KUBECONFIG, "")
    if not path:
        hint = "is not set, and this is no pod: the home plane cannot be found"
        raise ConfigurationError([Problem(HOME_KUBECONFIG, hint)])
    return FileCredentials.from_kubeconfig(Path(path), clock=clock, allow_exec=allow_exec)


class ClientFactory:
    """Builds the client of a plane; planes of one server share its connections."""

    def __init__(
        self,
        transports: Transports,
        credentials: PlaneCredentials,
        clients: ClientsSettings,
        *,
        measures: MetricsPort,
        component: str,
        version: str,
    ) -> None:
        self._transports = transports
        self._credentials = credentials
        self._clients = clients
        self._measures = measures
        self._user_agent = f"{component}/{version}"
        self._cache = FieldOwner("cache", component)  # field owner of lists and watches

    def connect(self, plane: Plane, lane: FlowControl) -> KubeClient:
        plane_credentials = self._credentials.to(plane.role)
        url = urlsplit(plane.base_url)
        tls = Tls(lambda: plane_credentials.ssl_context, plane_credentials.server_hostname)
        origin = f"{url.scheme}://{url.netloc}"
        config = RestConfig(
            plane=plane.name,
            role=plane.role,
            transport=AiohttpTransport(self._transports.session, origin, tls),
            lane=lane,
            short=PooledTransport(self._transports.pool, origin, tls),
            credentials=plane_credentials,
            base_path=url.path.rstrip("/"),
            user_agent=self._user_agent,
            request_timeout=self._clients.request_timeout,
            measures=self._measures,
        )
        return HttpKubeClient(config, self._cache)

    def connect_home(self, name: PlaneName, clock: Clock, writer: FieldOwner) -> KubeClient:
        """A client of the home plane without a circuit breaker, for the Lease and for reviews."""
        home = self._credentials.home
        plane = Plane(name, Role.HOME, home.server, home)
        return self.connect(plane, FlowControlWithoutBreaker(name, clock)).as_owner(writer)


class FlowControlWithoutBreaker(FlowControl):
    """Flow control without a circuit breaker, for callers that limit themselves.

    Leader election sends a request every two seconds and must notice first that the home plane
    answers again; no probe would close the circuit breaker of its client.
    """

    @override
    async def admit(self, *, is_probe: bool = False) -> None:
        await super().admit(is_probe=True)
