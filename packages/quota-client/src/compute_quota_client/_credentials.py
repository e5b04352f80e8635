"""The credential of a client, read again from its files every 60 s, and at once after a 401.

Files are read on the way to a request, so that an idle client reads none and needs no task. A file
that cannot be read after 60 s leaves the last good credential in use, since a rotation replaces
files and the old credential mostly still works; after a 401 it is an error that names the path.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from compute_quota_client._exceptions import QuotaAuthError, QuotaError, QuotaUsageError
from compute_quota_client._exec import with_exec_credential
from compute_quota_client._tls import ssl_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from compute_quota_client._kubeconfig import Kubeconfig
    from compute_quota_client._material import Material

REREAD_AFTER: Final = timedelta(seconds=60)
# An exec credential is renewed this long before it ends, so that none ends while a request travels.
EXPIRY_MARGIN: Final = timedelta(seconds=30)

_log = logging.getLogger(__name__)


class Credentials(Protocol):
    """Source of the client's credential; `now` is a reading of a monotonic clock."""

    @property
    def last_read(self) -> Material:
        """The result of the last read; reads no file and runs no program."""
        ...

    async def current(self, now: timedelta) -> Material:
        """The credential to use now."""
        ...

    async def renew(self, now: timedelta) -> Material:
        """The credential read from disk now, because the server refused the last one."""
        ...


class FixedCredentials:
    """A credential that never changes, as for a transport that adds one itself."""

    def __init__(self, material: Material) -> None:
        self._material = material

    @property
    def last_read(self) -> Material:
        """The credential."""
        return self._material

    async def current(self, now: timedelta) -> Material:  # noqa: ARG002 - the protocol's
        """The credential."""
        return self._material

    async def renew(self, now: timedelta) -> Material:  # noqa: ARG002 - the protocol's
        """The credential."""
        return self._material


class KubeconfigCredentials:
    """The credential of a kubeconfig, read again as its files change."""

    def __init__(
        self, kubeconfig: Kubeconfig, material: Material, wall_clock: Callable[[], datetime]
    ) -> None:
        self._kubeconfig = kubeconfig
        self._read = material
        self._used = material
        self._wall_clock = wall_clock
        # None until the first request: before it there may be no event loop, and so no clock.
        self._read_at: timedelta | None = None
        self._exec_done = material.command is None
        self._exec_lock = asyncio.Lock()

    @property
    def last_read(self) -> Material:
        """The kubeconfig's own, without what an exec program adds."""
        return self._read

    async def current(self, now: timedelta) -> Material:
        """The last good credential, read again after 60 s."""
        if self._read_at is None:
            self._read_at = now
        if now - self._read_at >= REREAD_AFTER:
            self._reread(now)
        async with self._exec_lock:
            # One at a time: where many requests need a new credential, the program runs once.
            if not self._exec_done or self._is_expiring():
                await self._run_program()
        return self._used

    async def renew(self, now: timedelta) -> Material:
        """Reads everything now; a file that cannot be read is an error."""
        self._read_at = now
        self._accept(self._kubeconfig.load())
        if self._read.command is not None:
            async with self._exec_lock:
                await self._run_program()
        return self._used

    def _reread(self, now: timedelta) -> None:
        self._read_at = now
        try:
            self._accept(self._kubeconfig.load())
        except QuotaError as error:
            _log.warning("Keeping the last credential", extra={"reason": type(error).__name__})

    def _accept(self, material: Material) -> None:
        if material == self._read:
            return
        if material.origin != self._read.origin:
            # Connections, projects and watches of this client belong to one server.
            raise QuotaUsageError("changed; a client serves one server", argument="server")
        # Built only as a check: half of a rotated key pair is refused, and the old pair stays in
        # use.
        ssl_context(material)
        self._read = material
        self._used = material
        self._exec_done = material.command is None

    def _is_expiring(self) -> bool:
        ends = self._used.expires_at
        return ends is not None and self._wall_clock() >= ends - EXPIRY_MARGIN

    async def _run_program(self) -> None:
        command = self._read.command
        if command is None:
            raise QuotaAuthError("the credential has expired")
        renewed = await with_exec_credential(self._read, command)
        ssl_context(renewed)
        self._used = renewed
        self._exec_done = True
