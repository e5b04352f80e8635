"""Keeps the credential current: files are read again every 60 s, and at once after a 401.

Reading is lazy, on the way to a request, so an idle client touches no disk and no task is needed. A
file that cannot be read during a routine look keeps the last good credential, since rotations
replace files and the old one mostly still serves; after a 401 it does not, and the error names the
path.
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

LOOK_EVERY: Final = timedelta(seconds=60)
# An exec credential is fetched anew this long before it ends, so that none ends on its way.
EXPIRY_MARGIN: Final = timedelta(seconds=30)

_log = logging.getLogger(__name__)


class Credentials(Protocol):
    """Where the client takes its credential from; `now` is a reading of a monotonic clock."""

    @property
    def found(self) -> Material:
        """What was read last, without looking or asking."""
        ...

    async def current(self, now: timedelta) -> Material:
        """The credential to use now."""
        ...

    async def renew(self, now: timedelta) -> Material:
        """The credential as it is on disk this moment, because the server refused the last one."""
        ...


class FixedCredentials:
    """A credential that never changes, as for a transport that brings its own."""

    def __init__(self, material: Material) -> None:
        self._material = material

    @property
    def found(self) -> Material:
        """The one there is."""
        return self._material

    async def current(self, now: timedelta) -> Material:  # noqa: ARG002 - the protocol's
        """The one there is."""
        return self._material

    async def renew(self, now: timedelta) -> Material:  # noqa: ARG002 - the protocol's
        """The one there is."""
        return self._material


class KubeconfigCredentials:
    """The credential of a kubeconfig, followed as its files change."""

    def __init__(
        self, kubeconfig: Kubeconfig, found: Material, wall_clock: Callable[[], datetime]
    ) -> None:
        self._kubeconfig = kubeconfig
        self._read = found
        self._used = found
        self._wall_clock = wall_clock
        # The loop's clock is unknown before the first request; what was just read may be used until
        # then.
        self._looked_at: timedelta | None = None
        self._exec_done = found.command is None
        self._asking = asyncio.Lock()

    @property
    def found(self) -> Material:
        """The kubeconfig's own, without what a program adds."""
        return self._read

    async def current(self, now: timedelta) -> Material:
        """The last good credential, looked at again when its 60 s are over."""
        if self._looked_at is None:
            self._looked_at = now
        if now - self._looked_at >= LOOK_EVERY:
            self._look(now)
        async with self._asking:
            # One at a time: of many requests that find the credential ended, the first asks for
            # all.
            if not self._exec_done or self._is_expiring():
                await self._ask_program()
        return self._used

    async def renew(self, now: timedelta) -> Material:
        """Reads everything now; what cannot be read is an error."""
        self._looked_at = now
        self._accept(self._kubeconfig.load())
        if self._read.command is not None:
            async with self._asking:
                await self._ask_program()
        return self._used

    def _look(self, now: timedelta) -> None:
        self._looked_at = now
        try:
            self._accept(self._kubeconfig.load())
        except QuotaError as error:
            _log.warning("Keeping the last credential", extra={"reason": type(error).__name__})

    def _accept(self, found: Material) -> None:
        if found == self._read:
            return
        if found.origin != self._read.origin:
            # Connections, projects and watches of this client belong to one server.
            raise QuotaUsageError("changed; a client serves one server", argument="server")
        # Made and thrown away: half of a rotated key pair is refused here, while the old pair still
        # serves.
        ssl_context(found)
        self._read = found
        self._used = found
        self._exec_done = found.command is None

    def _is_expiring(self) -> bool:
        ends = self._used.expires_at
        return ends is not None and self._wall_clock() >= ends - EXPIRY_MARGIN

    async def _ask_program(self) -> None:
        command = self._read.command
        if command is None:
            raise QuotaAuthError("the credential has expired")
        asked = await with_exec_credential(self._read, command)
        ssl_context(asked)
        self._used = asked
        self._exec_done = True
