"""One run with kind at a time: names, the network and its addresses are those of the machine.

The kernel lets go of the lock with the process that held it, however that ended; whoever comes next
then deletes what it left.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path
from typing import IO, Final

from e2e.planes.errors import PlanesError

LOCK: Final = Path(tempfile.gettempdir()) / "compute-kind.lock"


def hold_machine(lock: Path = LOCK) -> IO[str]:
    """Held until the file is closed."""
    held = lock.open("w", encoding="ascii")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise PlanesError(
            "making clusters: another run has its own on this machine", remedy="wait for its end"
        ) from None
    return held
