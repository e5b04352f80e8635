"""The credential of a client, read again from its files within 60 s, and at once after a 401.

`compute_kubeconfig` reads files and runs exec plugins; its errors become those of this library
here, in `quota_errors` alone. A file that cannot be read on time leaves the last good credential in
use, since a rotation replaces files and the old credential mostly still works; after a 401 it is an
error that names the path.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from compute_kubeconfig.access import Material
from compute_kubeconfig.credentials import FileCredentials
from compute_kubeconfig.exec_plugins import ExecPluginError
from compute_kubeconfig.problems import FileError, UnreadableFileError
from compute_quota_client._exceptions import QuotaAuthError, QuotaUsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime

    from compute_kubeconfig.access import Access

# Less than the 10 s of an operation (docs/spec/quota.md A5).
EXEC_TIMEOUT: Final = timedelta(seconds=8)
# A reading from before any event loop: files that were read then are read again at the first use.
BEFORE_ANY_LOOP: Final = timedelta(days=-36_500)
# The name of an argument where the loader names a part of the file, or none.
_ARGUMENTS: Final = {
    "": "kubeconfig",
    "clusters": "cluster",
    "contexts": "context",
    "current-context": "context",
    "users": "user",
}

_log = logging.getLogger(__name__)


class Credentials(Protocol):
    """Source of the client's credential."""

    @property
    def last_read(self) -> Material:
        """The result of the last read; reads no file and runs no program."""
        ...

    async def current(self) -> Material:
        """The credential to use now."""
        ...

    async def renew(self) -> Material:
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

    async def current(self) -> Material:
        """The credential."""
        return self._material

    async def renew(self) -> Material:
        """The credential."""
        return self._material


class RotatingCredentials:
    """The credential that `load` names, read again as its files change."""

    def __init__(self, load: Callable[[], Access], wall_clock: Callable[[], datetime]) -> None:
        """Reads all files once.

        Raises:
            QuotaAuthError: a file cannot be read; names its path.
            QuotaUsageError: the content is refused; names the field.
        """
        clock = _LoopClock(wall_clock)
        with quota_errors():
            self._files = FileCredentials(
                load, clock, exec_timeout=EXEC_TIMEOUT, on_refused=_log_refused
            )

    @property
    def server(self) -> str:
        """The URL of the server, as it is written."""
        return self._files.server

    @property
    def last_read(self) -> Material:
        """The credential in use."""
        return self._files.last_read

    async def current(self) -> Material:
        """The last good credential."""
        with quota_errors():
            return await self._files.current()

    async def renew(self) -> Material:
        """Reads everything now; a file that cannot be read is an error."""
        with quota_errors():
            return await self._files.renew()


class _LoopClock:
    """The event loop's clock, so that a test on a loop with virtual time waits for nothing."""

    def __init__(self, wall_clock: Callable[[], datetime]) -> None:
        self.now = wall_clock

    def monotonic(self) -> timedelta:
        try:
            return timedelta(seconds=asyncio.get_running_loop().time())
        except RuntimeError:  # a client may be built before its loop runs
            return BEFORE_ANY_LOOP


@contextmanager
def quota_errors() -> Generator[None]:
    """Translates the errors of the loader and of exec plugins; none has a value of a file."""
    try:
        yield
    except FileError as refused:
        raise _translate(refused) from refused
    except ExecPluginError as failed:
        raise QuotaAuthError(str(failed)) from failed


def _translate(refused: FileError) -> QuotaAuthError | QuotaUsageError:
    if isinstance(refused, UnreadableFileError):
        return QuotaAuthError(str(refused))
    argument = _ARGUMENTS.get(refused.field, refused.field)
    return QuotaUsageError(str(refused), argument=argument)


def _log_refused(refused: FileError) -> None:
    reason = type(_translate(refused)).__name__
    _log.warning("Keeping the last credential", extra={"reason": reason})
