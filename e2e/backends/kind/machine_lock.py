"""A lock that allows one run with kind per machine, since names and addresses are fixed.

The kernel releases it when the process ends in any way; the next run then deletes the leftovers.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path
from typing import IO, Final

from e2e.harness.errors import PlanesError

LOCK: Final = Path(tempfile.gettempdir()) / "compute-kind.lock"


def lock_machine(lock: Path = LOCK) -> IO[str]:
    """Takes the lock; it is held until the file is closed."""
    held = lock.open("w", encoding="ascii")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise PlanesError(
            "making clusters: another run has its own on this machine", remedy="wait for its end"
        ) from None
    return held
