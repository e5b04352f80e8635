"""Credentials of one plane that follow their files: what rotates on disk is in use within a minute,
after a 401 at once.

Reading is lazy: whoever sends a request asks for headers and the TLS context, and every 30 s that
asking looks at the files again. What cannot be read or is refused then leaves the former
credentials in use, because a half-written Secret must not take a plane away. Never logs, prints or
stores a secret.
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

from compute_operator_kit.clock import Clock
from compute_operator_kit.configuration import ConfigurationError
from compute_operator_kit.errors import UnavailableError
from compute_operator_kit.kubeconfig import (
    Access,
    ExecPlugin,
    KubeconfigError,
    MountedFile,
    Source,
    load_in_cluster,
    load_kubeconfig,
)
from compute_operator_kit.strict_yaml import Problem
from compute_operator_kit.tls import ClientIdentity, UnusableTlsError, share_client_context
from compute_operator_kit.wire import Json, JsonObject, member_text

# operations.md 1.3 promises 60 s; half of it leaves room for the request that asks.
REREAD_AFTER: Final = timedelta(seconds=30)
EXEC_TIMEOUT: Final = timedelta(seconds=60)
EXEC_RENEW_BEFORE: Final = timedelta(
    seconds=60
)  # a token that ends while a request travels is a 401

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Material:
    """What the sources of an access hold at one moment."""

    ca: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    identity: ClientIdentity | None = field(default=None, repr=False)
    expires: datetime | None = None


class FileCredentials:
    """Credentials out of a kubeconfig or a pod's ServiceAccount."""

    def __init__(self, load: Callable[[], Access], clock: Clock) -> None:
        """Reads everything once; `KubeconfigError` when it is refused, which at start means exit
        code 2.
        """
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
        """The base URL; it stays what it was at start."""
        return self._access.server

    @property
    def server_hostname(self) -> str | None:
        """The name the server's certificate must have, where it is not the one in the URL."""
        return self._access.tls_server_name or None

    @property
    def namespace(self) -> str:
        return self._access.namespace

    @property
    def material(self) -> Material:
        """For the one client that brings its own transport (kopf)."""
        return self._plugin_material or self._material

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """Ask for it per connection: a rotated CA or client certificate is a new context."""
        self._follow_files()
        return self._context

    async def headers(self) -> Mapping[str, str]:
        """The headers that say who we are."""
        self._follow_files()
        if self._access.exec_plugin is not None:
            await self._follow_plugin(self._access.exec_plugin)
        token = self.material.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def refresh(self) -> bool:
        """Reads again at once, after a 401; whether there is anything new to try with."""
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
            found = parse_plugin_status(status, self._material.ca)
            self._context = self._build_context(found)
            self._plugin_material = found

    def _is_ending(self, material: Material) -> bool:
        return (
            material.expires is not None
            and material.expires - self._clock.now() < EXEC_RENEW_BEFORE
        )


def read_material(access: Access) -> Material:
    """Everything the access points at, read now; `KubeconfigError` names the file that is no
    good.
    """
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
    # A header value with a line break would let whoever writes the file write headers.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        path = source.path if isinstance(source, MountedFile) else Path("token")
        raise KubeconfigError(path, [Problem("", "does not hold a token")])
    return token


class _Provider(Protocol):
    """The part of the stock client's `ExecProvider` that we call; it has no types of its own."""

    async def run(self) -> Json: ...


async def run_plugin(plugin: ExecPlugin) -> JsonObject:
    """The `status` an exec plugin prints, through the stock client, which is imported only here.

    Importing it costs 43 MiB, so nobody pays who does not allow exec.
    """
    provider, failure = _build_provider(plugin)
    try:
        async with asyncio.timeout(EXEC_TIMEOUT.total_seconds()):
            status = await provider.run()
    except (OSError, TimeoutError, ValueError, failure) as cause:
        # What the plugin printed may hold a secret, so nothing of it is kept.
        why = f"running the credential plugin: {type(cause).__name__}"
        raise UnavailableError("CredentialPluginFailed", why) from None
    return status if isinstance(status, dict) else {}


def _build_provider(plugin: ExecPlugin) -> tuple[_Provider, type[Exception]]:
    """The stock client's runner of plugins, and the one class of errors it raises by itself."""
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
    """When the token ends; without a readable time it is used until a server says 401."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
