"""Starts and stops planes repeatedly and fails on the first leftover.

A leftover process, port or folder shows only after many rounds; each round checks all three.
"""

from __future__ import annotations

import socket
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.harness.errors import PlanesError
from e2e.harness.planes.topology import FULL, SINGLE, Topology
from e2e.harness.processes.ports import LOOPBACK
from e2e.harness.programs.store import Say
from e2e.harness.stack.stack import Options, RealPlanes

FULL_ROUNDS: Final = 3
SINGLE_ROUNDS: Final = 20
# Default paths of the programs; relative ones are in the working folder.
DEFAULT_PLACES: Final = (
    Path("/var/run/kubernetes"),
    Path("default.etcd"),
    Path("apiserver.local.config"),
)


@dataclass(frozen=True, slots=True)
class SoakRound:
    """Times of one round."""

    up: float
    down: float
    rss: int


async def soak(say: Say) -> None:
    """Runs the required number of rounds; raises on the first leftover."""
    for name, topology, rounds in (("full", FULL, FULL_ROUNDS), ("single", SINGLE, SINGLE_ROUNDS)):
        done = [await _round(topology) for _ in range(rounds)]
        say(f"{name}: {_summary(done)}")


def _summary(rounds: Sequence[SoakRound]) -> str:
    up, down = [one.up for one in rounds], [one.down for one in rounds]
    return (
        f"{len(rounds)} rounds, up {statistics.median(up):.1f} s (longest {max(up):.1f} s), "
        f"down {statistics.median(down):.2f} s (longest {max(down):.2f} s), "
        f"RSS at most {max(one.rss for one in rounds) / 1024**3:.2f} GB, nothing left"
    )


async def _round(topology: Topology) -> SoakRound:
    before = _places()
    with tempfile.TemporaryDirectory(prefix="planes-soak-") as parent:
        folder = Path(parent) / "run"
        planes = RealPlanes(topology, Options(folder=folder))
        await planes.start()
        pids = [process.pid for process in planes.processes]
        ports = [plane.port for plane in planes.planes]
        rss, began = planes.rss(), time.monotonic()
        await planes.stop()
        down = time.monotonic() - began
        _refuse_leftovers(folder, pids, ports, _places() - before)
    return SoakRound(planes.took.total_seconds(), down, rss)


def _refuse_leftovers(
    folder: Path, pids: Iterable[int | None], ports: Iterable[int], new_places: Iterable[Path]
) -> None:
    left = [
        *(f"process {pid}" for pid in pids if Path(f"/proc/{pid}").exists()),
        *(f"port {port}" for port in ports if not _is_free(port)),
        *([f"folder {folder}"] if folder.exists() else ()),
        *(f"file {place}" for place in new_places),
    ]
    if left:
        raise PlanesError(f"taking planes down: left {', '.join(left)}", remedy="this is a bug")


def _places() -> set[Path]:
    return {place for place in DEFAULT_PLACES if place.exists()}


def _is_free(port: int) -> bool:
    with socket.socket() as asked:
        # Closed connections keep the port in TIME_WAIT; a server may listen there nevertheless.
        asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asked.bind((LOOPBACK, port))
            asked.listen()
        except OSError:
            return False
    return True
