"""Credentials of one plane, read again from their files: a rotated file is in use within a minute,
after a 401 at once.

Files are read on the way to a request, at most every 30 s. Where a file cannot be read or is
refused, the former credentials stay in use, so that a half-written Secret does not make a plane
unavailable. No secret is logged, printed or stored.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, Self

from compute_operator_kit.client.kubeconfig import (
    Access,
    ExecPlugin,
    KubeconfigError,
    MountedFile,
    Source,
    load_in_cluster,
    load_kubeconfig,
)
from compute_operator_kit.client.tls import ClientIdentity, UnusableTlsError, share_client_context
from compute_operator_kit.config.loader import ConfigurationError
from compute_operator_kit.config.strict_yaml import Problem
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import UnavailableError
from compute_operator_kit.core.json import Json, JsonObject, member_text

# operations.md 1.3 promises 60 s; half of it leaves room for the time until the next request.
REREAD_AFTER: Final = timedelta(seconds=30)
EXEC_TIMEOUT: Final = timedelta(seconds=60)
EXEC_RENEW_BEFORE: Final = timedelta(
    seconds=60
)  # a token that ends while a request travels is a 401

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Material:
    """The content of the sources of an access at one moment."""

    ca: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    identity: ClientIdentity | None = field(default=None, repr=False)
    expires: datetime | None = None


class FileCredentials:
    """Credentials of a kubeconfig or a pod's ServiceAccount."""

    def __init__(self, load: Callable[[], Access], clock: Clock) -> None:
        """Reads all files once; `KubeconfigError` where one is refused, exit code 2 at start."""
        self._load = load
        self._clock = clock
        self._access: Access = load()
        self._material: Material = read_material(self._access)
        self._context = self._build_context(self._material)
        self._read_at = clock.monotonic()
        self._complained = ""
        self._plugin_material: Material | None = None
        self._plugin_turn = asyncio.Lock()

    @classmethod
    def from_kubeconfig(
        cls, path: Path, *, clock: Clock, context: str = "", allow_exec: bool = False
    ) -> Self:
        return cls(lambda: load_kubeconfig(path, context, allow_exec=allow_exec), clock)

    @classmethod
    def in_cluster(cls, environ: Mapping[str, str], *, clock: Clock) -> Self:
        return cls(lambda: load_in_cluster(environ), clock)

    @property
    def server(self) -> str:
        """The base URL; a change needs a restart."""
        return self._access.server

    @property
    def server_hostname(self) -> str | None:
        """The name in the server's certificate, where it is not the host of the URL."""
        return self._access.tls_server_name or None

    @property
    def namespace(self) -> str:
        return self._access.namespace

    @property
    def material(self) -> Material:
        """For the one client with its own transport (kopf)."""
        return self._plugin_material or self._material

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """To be read for each connection: a rotated CA or client certificate is a new context."""
        self._follow_files()
        return self._context

    async def headers(self) -> Mapping[str, str]:
        """The headers that authenticate a request."""
        self._follow_files()
        if self._access.exec_plugin is not None:
            await self._follow_plugin(self._access.exec_plugin)
        token = self.material.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def refresh(self) -> bool:
        """Reads again at once, after a 401; true where the credentials changed."""
        before = self.material
        self._reread()
        if self._access.exec_plugin is not None:
            self._plugin_material = None
            await self._follow_plugin(self._access.exec_plugin)
        return self.material != before

    def _follow_files(self) -> None:
        if self._clock.monotonic() - self._read_at >= REREAD_AFTER:
            self._reread()

    def _reread(self) -> None:
        self._read_at = self._clock.monotonic()
        try:
            access = self._load()
            material = read_material(access)
            if access.server != self._access.server:
                raise KubeconfigError(
                    Path(), [Problem("server", "was changed, which needs a restart")]
                )
            if material != self._material:
                self._context = self._build_context(material)
        except ConfigurationError as refused:
            self._complain(str(refused))
            return
        self._access, self._material = access, material
        self._complained = ""

    def _complain(self, why: str) -> None:
        if why != self._complained:
            logger.warning("Keeping former credentials", extra={"reason": why})
        self._complained = why

    def _build_context(self, material: Material) -> ssl.SSLContext:
        try:
            return share_client_context(material.ca, material.identity)
        except UnusableTlsError as refused:
            raise KubeconfigError(Path(self._access.server), [Problem("", str(refused))]) from None

    async def _follow_plugin(self, plugin: ExecPlugin) -> None:
        async with self._plugin_turn:
            if self._plugin_material is not None and not self._is_ending(self._plugin_material):
                return
            status = await run_plugin(plugin)
            material = parse_plugin_status(status, self._material.ca)
            self._context = self._build_context(material)
            self._plugin_material = material

    def _is_ending(self, material: Material) -> bool:
        return (
            material.expires is not None
            and material.expires - self._clock.now() < EXEC_RENEW_BEFORE
        )


def read_material(access: Access) -> Material:
    """Reads all sources of the access now; `KubeconfigError` names the file that is refused."""
    certificate, key = _read(access.certificate), _read(access.key)
    return Material(
        ca=_read(access.ca),
        token=_check_token(_read(access.token), access.token),
        identity=ClientIdentity(certificate, key) if certificate and key else None,
    )


def _read(source: Source) -> bytes | None:
    return source.read() if isinstance(source, MountedFile) else source


def _check_token(raw: bytes | None, source: Source) -> str:
    if raw is None:
        return ""
    token = raw.decode("ascii", errors="replace").strip()
    # A line break in a header's value would begin another header.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        path = source.path if isinstance(source, MountedFile) else Path("token")
        raise KubeconfigError(path, [Problem("", "does not hold a token")])
    return token


class _Provider(Protocol):
    """The used part of `ExecProvider` of the `kubernetes` client, which has no types."""

    async def run(self) -> Json: ...


async def run_plugin(plugin: ExecPlugin) -> JsonObject:
    """The `status` that an exec plugin prints, run by the `kubernetes` client.

    The import costs 43 MiB, so it is made only where exec is allowed.
    """
    provider, failure = _build_provider(plugin)
    try:
        async with asyncio.timeout(EXEC_TIMEOUT.total_seconds()):
            status = await provider.run()
    except (OSError, TimeoutError, ValueError, failure) as cause:
        # The plugin's output may hold a secret, so the cause is dropped.
        why = f"running the credential plugin: {type(cause).__name__}"
        raise UnavailableError("CredentialPluginFailed", why) from None
    return status if isinstance(status, dict) else {}


def _build_provider(plugin: ExecPlugin) -> tuple[_Provider, type[Exception]]:
    """`ExecProvider` of the `kubernetes` client, and the class of its own errors."""
    try:
        providers = importlib.import_module("kubernetes.aio.config.exec_provider")
        configs = importlib.import_module("kubernetes.aio.config.kube_config")
        errors = importlib.import_module("kubernetes.aio.config.config_exception")
    except ImportError:
        hint = "needs the extra `exec` of datum-compute-operator-kit"
        raise KubeconfigError(Path(), [Problem("exec", hint)]) from None
    provider: _Provider = providers.ExecProvider(configs.ConfigNode("exec", plugin.config))
    failure: type[Exception] = errors.ConfigException
    return provider, failure


def parse_plugin_status(status: JsonObject, ca: bytes | None) -> Material:
    certificate = member_text(status, "clientCertificateData")
    key = member_text(status, "clientKeyData")
    expires = member_text(status, "expirationTimestamp")
    token = member_text(status, "token")
    return Material(
        ca=ca,
        token=_check_token(token.encode(), None) if token else "",
        identity=ClientIdentity(certificate.encode(), key.encode())
        if certificate and key
        else None,
        expires=_parse_expiry(expires),
    )


def _parse_expiry(text: str) -> datetime | None:
    """The end of the token; without a valid time it is used until a server answers 401."""
    try:
        expiry = datetime.fromisoformat(text)
    except ValueError:
        return None
    return expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)
