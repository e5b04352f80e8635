"""Reserves slots for nodes and cleans up after crashed runs.

A slot is a file that its owner keeps locked; the kernel releases the lock with the process, also
after kill -9. A file that is unlocked but not empty was left by a crashed run, which is cleaned up
before the slot is used.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from e2e.harness.errors import PlanesError
from e2e.harness.node import leftovers
from e2e.harness.planes.node_slot import COUNT, NodeSlot

LOCKS: Final = Path("/run/compute-nodes")


@dataclass(slots=True)
class ReservedSlot:
    """A slot of this run; `file` holds the lock."""

    slot: NodeSlot
    file: TextIO

    def record_owner(self, folder: Path) -> None:
        """Notes the run folder, so that a later run can clean up after a crash."""
        self.file.write(str(folder))
        self.file.flush()

    def release(self) -> None:
        """Releases the slot after the node's leftovers were removed."""
        # Unlinked under the lock: another run that opened the file meanwhile sees that it is gone
        # and retries.
        Path(self.file.name).unlink(missing_ok=True)
        self.file.close()


def reserve(
    count: int, *, locks: Path = LOCKS, sweep: Callable[[NodeSlot], None] = leftovers.sweep
) -> list[ReservedSlot]:
    """Reserves so many slots and cleans up after crashed runs in all slots."""
    taken: list[ReservedSlot] = []
    for held in _unused(locks):
        _clear(held, sweep)
        if len(taken) < count:
            taken.append(held)
        else:
            held.release()
    if len(taken) < count:
        for held in taken:
            held.release()
        raise PlanesError(
            f"looking for room for {count} nodes: {COUNT} at most can run on one machine",
            remedy="wait until another run ends",
        )
    return taken


def _clear(held: ReservedSlot, sweep: Callable[[NodeSlot], None]) -> None:
    """Removes the leftovers of the last owner."""
    held.file.seek(0)
    folder = held.file.read().strip()
    sweep(held.slot)
    if folder:
        leftovers.remove_folder(Path(folder))
    held.file.seek(0)
    held.file.truncate()


def _unused(locks: Path) -> Iterator[ReservedSlot]:
    locks.mkdir(mode=0o700, exist_ok=True)
    for number in range(COUNT):
        if file := _lock(locks / f"slot-{number}"):
            yield ReservedSlot(NodeSlot(number), file)


def _lock(path: Path) -> TextIO | None:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        if path.exists() and os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            return file
        file.close()  # its owner removed it between our open and lock
