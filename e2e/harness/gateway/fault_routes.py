"""Faults on routes through the gateway: delays and cuts of one user's requests to one plane.

All planes of Milo have one address, so a TCP link could only cut all of them at once. The faults
are read from a file that a test writes: with every request and, for open streams, several times a
second. Without the file there are no faults.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

LOOK_SECONDS: Final = 0.1


class RouteFault(BaseModel):
    """The fault of one route; `project` is empty for the root."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user: str
    project: str
    is_cut: bool = False
    delay_seconds: float = 0.0


_FILE: Final = TypeAdapter(tuple[RouteFault, ...])


def write_route_faults(path: Path, faults: Iterable[RouteFault]) -> None:
    """Replaces all faults atomically."""
    beside = path.with_suffix(".new")
    beside.write_bytes(_FILE.dump_json(tuple(faults)))
    beside.replace(path)


class RouteCutError(ConnectionResetError):
    """The route is cut: the client's connection ends without an answer."""


class FaultRoutes:
    """The faults in a file, and the open streams of all routes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -1
        self._faults: dict[tuple[str, str], RouteFault] = {}
        self._open: set[tuple[tuple[str, str], asyncio.Transport]] = set()

    async def enter(self, user: str, project: str) -> None:
        """Waits for the delay of a slow route; raises for a cut one."""
        fault = self._read().get((user, project))
        if fault is None:
            return
        if fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault.is_cut:
            raise RouteCutError(f"{user!r} does not reach {project or 'the root'!r}")

    @contextmanager
    def holding(
        self, user: str, project: str, transport: asyncio.Transport | None
    ) -> Generator[None]:
        """Registers an answer in progress, which ends with its connection if its route is cut."""
        if transport is None:
            yield
            return
        entry = ((user, project), transport)
        self._open.add(entry)
        try:
            yield
        finally:
            self._open.discard(entry)

    async def watch(self) -> None:
        """Ends open streams of cut routes; runs as long as the gateway."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            faults = self._read()
            for way, transport in tuple(self._open):
                fault = faults.get(way)
                if fault is not None and fault.is_cut:
                    transport.abort()

    def _read(self) -> dict[tuple[str, str], RouteFault]:
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._read_at:
            faults = _FILE.validate_json(self._path.read_bytes())
            self._faults = {(one.user, one.project): one for one in faults}
            self._read_at = changed
        return self._faults
