"""Slots that stay ours until we let go of them, and what a crashed run left in the others.

A slot is a file that its owner keeps locked; the kernel lets go of the lock with the process, also
after kill -9. Who finds a slot unlocked and its file not empty has met a crashed run, and clears it
away before he uses the place himself.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from e2e.planes.errors import PlanesError
from e2e.planes.node import leftovers
from e2e.planes.node.slot import COUNT, Slot

LOCKS: Final = Path("/run/compute-nodes")


@dataclass(slots=True)
class Held:
    """A slot of ours; `file` holds the lock."""

    slot: Slot
    file: TextIO

    def tell(self, folder: Path) -> None:
        """Writes down what is to be removed should we not come to it."""
        self.file.write(str(folder))
        self.file.flush()

    def release(self) -> None:
        """Once nothing of the node is left."""
        # Removed under the lock: who opened the file meanwhile finds that it is gone, and looks
        # again.
        Path(self.file.name).unlink(missing_ok=True)
        self.file.close()


def reserve(
    count: int, *, locks: Path = LOCKS, sweep: Callable[[Slot], None] = leftovers.sweep
) -> list[Held]:
    """So many slots, cleared of what was left in them; and whatever was left anywhere is gone."""
    taken: list[Held] = []
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


def _clear(held: Held, sweep: Callable[[Slot], None]) -> None:
    """Removes what the last owner did not come to remove."""
    held.file.seek(0)
    folder = held.file.read().strip()
    sweep(held.slot)
    if folder:
        leftovers.remove_folder(Path(folder))
    held.file.seek(0)
    held.file.truncate()


def _unused(locks: Path) -> Iterator[Held]:
    locks.mkdir(mode=0o700, exist_ok=True)
    for number in range(COUNT):
        if file := _lock(locks / f"slot-{number}"):
            yield Held(Slot(number), file)


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
        file.close()  # its owner removed it between our opening and locking
