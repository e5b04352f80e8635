"""The client of one quota server: shared by all its projects, closed once.

    async with QuotaClient.from_kubeconfig("/etc/quota/kubeconfig") as quota:
        verdict = await quota.project("acme").claim(wanted)

It only connects the other modules and has no state of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from compute_kubeconfig.access import IN_CLUSTER_MOUNT, Material
from compute_kubeconfig.kubeconfig import load_kubeconfig
from compute_quota_client._config import QuotaSettings
from compute_quota_client._connections import Connections
from compute_quota_client._credentials import Credentials, FixedCredentials, RotatingCredentials
from compute_quota_client._dependencies import Surroundings
from compute_quota_client._exceptions import QuotaUsageError
from compute_quota_client._exchange import Exchanges
from compute_quota_client._in_cluster import find_service_account
from compute_quota_client._project import ProjectQuota
from compute_quota_client._projects import ProjectStates
from compute_quota_client._requests import PlaneRequests
from compute_quota_client._sender import Sender
from compute_quota_client._tracking import Watches
from compute_quota_client._urls import origin_of, plane_urls

if TYPE_CHECKING:
    from os import PathLike

    import httpx

_DEFAULT_SETTINGS = QuotaSettings()
_DEFAULT_SURROUNDINGS = Surroundings()


class QuotaClient:
    """One quota server and all its projects; an async context manager.

    Build it with `from_kubeconfig` or `in_cluster`. Built directly it has no credential of its own,
    and sends requests to `server` by `transport`: for tests
    (`compute_quota_client.testing.FakeQuota`) and for transports that add a credential.
    """

    def __init__(
        self,
        server: str,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        settings: QuotaSettings = _DEFAULT_SETTINGS,
        surroundings: Surroundings = _DEFAULT_SURROUNDINGS,
        credentials: Credentials | None = None,
    ) -> None:
        self._origin = origin_of(server)
        self._settings = settings
        known = credentials or FixedCredentials(Material())
        self._connections = Connections(known.last_read, transport, settings.http)
        self._states = ProjectStates(surroundings.chance)
        self._exchanges = Exchanges(self._connections, settings.user_agent, surroundings.wall_clock)
        self._sender = Sender(
            exchanges=self._exchanges,
            credentials=known,
            states=self._states,
            dependencies=surroundings,
        )
        self._watches = Watches(surroundings)

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | PathLike[str],
        context: str | None = None,
        settings: QuotaSettings = _DEFAULT_SETTINGS,
        *,
        surroundings: Surroundings = _DEFAULT_SURROUNDINGS,
    ) -> Self:
        """A client of the server a kubeconfig names, by its current context or the one given.

        The files are read now, and again as they change; nothing is sent.

        Raises:
            QuotaAuthError: a file cannot be read; names its path.
            QuotaUsageError: the kubeconfig is refused; names the field.
        """
        credentials = RotatingCredentials(
            lambda: load_kubeconfig(Path(path), context or "", allow_exec=settings.allow_exec),
            surroundings.wall_clock,
        )
        return cls(
            credentials.server,
            settings=settings,
            surroundings=surroundings,
            credentials=credentials,
        )

    @classmethod
    def in_cluster(
        cls,
        server: str | None = None,
        settings: QuotaSettings = _DEFAULT_SETTINGS,
        *,
        ca_file: str | PathLike[str] | None = None,
        system_ca: bool = False,
        mount: str | PathLike[str] = IN_CLUSTER_MOUNT,
        surroundings: Surroundings = _DEFAULT_SURROUNDINGS,
    ) -> Self:
        """A client with the service account of the pod it runs in.

        `server` is the quota server, by default the pod's own cluster. It is trusted by the CA of
        the mount, unless `ca_file` or `system_ca` names another. `mount` is the folder with
        `token`, which may be a projected one for another audience. Files are read now, and again
        as they change; nothing is sent.

        Raises:
            QuotaAuthError: a file cannot be read; names its path.
            QuotaUsageError: no server is named and this is no pod, or server or token is refused.
        """
        if ca_file is not None and system_ca:
            raise QuotaUsageError("excludes system_ca", argument="ca_file")
        ca = None if ca_file is None else Path(ca_file)
        access = find_service_account(server, Path(mount), ca, system_ca)
        credentials = RotatingCredentials(lambda: access, surroundings.wall_clock)
        return cls(
            credentials.server,
            settings=settings,
            surroundings=surroundings,
            credentials=credentials,
        )

    def project(self, name: str) -> ProjectQuota:
        """Quota in one project; nothing is sent, and whether the project exists is not checked.

        Raises:
            QuotaUsageError: the name is not a DNS label, or the client is closed.
        """
        if self._connections.closed:
            raise QuotaUsageError("is closed", argument="client")
        urls = plane_urls(self._origin, self._settings, name)
        requests = PlaneRequests(name, urls, self._sender, self._settings.field_manager)
        return ProjectQuota(requests, self._watches)

    @property
    def projects_remembered(self) -> int:
        """How many projects have state here: those in use, and of the others 1,024 at most."""
        return len(self._states)

    async def aclose(self) -> None:
        """Ends all watches and closes all connections; operations under way fail."""
        self._connections.closed = True
        await self._watches.aclose()
        await self._exchanges.aclose()
        await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
