"""Credentials of one API server, read again from their files: a rotated file is in use within a
minute, after a 401 at once.

Files are read on the way to a request, at most every 30 s, so that an idle client reads none and
needs no task. Where a file cannot be read or is refused, the former credentials stay in use: a
half-written Secret does not make a server unavailable. No secret is logged, printed or stored.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, Self

from compute_kubeconfig.access import Access, Material, load_in_cluster, read_material
from compute_kubeconfig.exec_plugins import ExecPluginError, run_plugin
from compute_kubeconfig.kubeconfig import load_kubeconfig
from compute_kubeconfig.problems import FileError, Problem
from compute_kubeconfig.tls import UnusableCaError, UnusableTlsError, share_client_context

# operations.md 1.3 promises 60 s; half of it leaves room for the time until the next request.
REREAD_AFTER: Final = timedelta(seconds=30)
EXEC_TIMEOUT: Final = timedelta(seconds=60)
# A token that ends while a request travels is a 401.
EXEC_RENEW_BEFORE: Final = timedelta(seconds=60)

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """Wall clock for the end of a credential, monotonic clock for the age of a read."""

    def now(self) -> datetime: ...

    def monotonic(self) -> timedelta: ...


def log_refused(refused: FileError) -> None:
    """Called where files are refused after the start; once for each reason."""
    logger.warning("Keeping former credentials", extra={"reason": str(refused)})


class FileCredentials:
    """Credentials of a kubeconfig or a pod's ServiceAccount."""

    def __init__(
        self,
        load: Callable[[], Access],
        clock: Clock,
        *,
        exec_timeout: timedelta = EXEC_TIMEOUT,
        on_refused: Callable[[FileError], None] = log_refused,
    ) -> None:
        """Reads all files once, and runs no plugin; `FileError` where one is refused."""
        self._load = load
        self._clock = clock
        self._exec_timeout = exec_timeout
        self._on_refused = on_refused
        self._access: Access = load()
        self._read: Material = read_material(self._access)  # of the files alone
        self._material: Material = self._read  # with what a plugin printed
        self._context = _build_context(self._access, self._read)
        self._read_at = clock.monotonic()
        self._refused = ""
        self._is_plugin_due = True
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
    def last_read(self) -> Material:
        """The credentials in use; reads no file and runs no program."""
        return self._material

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """To be read for each connection: a rotated CA or client certificate is a new context."""
        self._follow_files()
        return self._context

    async def current(self) -> Material:
        """The credentials for a request; `ExecPluginError` where the plugin gives none."""
        self._follow_files()
        if self._access.exec_command is not None:
            await self._follow_plugin()
        return self._material

    async def headers(self) -> Mapping[str, str]:
        """The headers that authenticate a request."""
        token = (await self.current()).token
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def renew(self) -> Material:
        """Reads everything now, after a 401.

        Raises:
            FileError: a file is refused; the former credentials stay in use.
            ExecPluginError: the plugin gives no credential.
        """
        self._reread()
        self._is_plugin_due = True
        return await self.current()

    async def refresh(self) -> bool:
        """As `renew`, but a refused file is only logged; true where the credentials changed."""
        before = self._material
        self._try_to_reread()
        self._is_plugin_due = True
        return await self.current() != before

    def _follow_files(self) -> None:
        if self._clock.monotonic() - self._read_at >= REREAD_AFTER:
            self._try_to_reread()

    def _try_to_reread(self) -> None:
        try:
            self._reread()
        except FileError as refused:
            if str(refused) != self._refused:
                self._on_refused(refused)
            self._refused = str(refused)

    def _reread(self) -> None:
        self._read_at = self._clock.monotonic()
        access = self._load()
        read = read_material(access)
        if access.server != self._access.server:
            raise FileError(access.path, [Problem("server", "was changed, which needs a restart")])
        is_new = read != self._read or access.exec_command != self._access.exec_command
        # Built before anything is replaced: half of a rotated key pair is refused as a whole.
        context = _build_context(access, read) if is_new else self._context
        if is_new and access.exec_command is None:
            self._material, self._context = read, context
        # Of a plugin the former credentials stay in use until it has printed new ones.
        self._is_plugin_due |= is_new
        self._access, self._read, self._refused = access, read, ""

    async def _follow_plugin(self) -> None:
        # One at a time: where many requests need a new credential, the plugin runs once.
        async with self._plugin_turn:
            command = self._access.exec_command
            if command is None or not (self._is_plugin_due or self._is_ending()):
                return
            printed = await run_plugin(command, self._exec_timeout)
            if self._access.exec_command != command:
                return  # the kubeconfig was replaced meanwhile: the next request runs its plugin
            material = replace(
                self._read,
                token=printed.token or self._read.token,
                identity=printed.identity or self._read.identity,
                expires=printed.expires,
            )
            try:
                context = share_client_context(material.ca, material.identity)
            except UnusableTlsError as refused:
                name = f"running {command.argv[0]!r} for a credential"
                raise ExecPluginError(f"{name}: the {refused}") from None
            self._material, self._context, self._is_plugin_due = material, context, False

    def _is_ending(self) -> bool:
        expires = self._material.expires
        return expires is not None and expires - self._clock.now() < EXEC_RENEW_BEFORE


def _build_context(access: Access, material: Material) -> ssl.SSLContext:
    try:
        return share_client_context(material.ca, material.identity)
    except UnusableTlsError as refused:
        is_ca = isinstance(refused, UnusableCaError)
        field = "certificate-authority" if is_ca else "client-certificate"
        raise FileError(access.path, [Problem(field, str(refused))]) from None
