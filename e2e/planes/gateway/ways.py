"""Ways through the gateway that a test can spoil: one user's to one plane, and nobody else's.

All planes of Milo have one address, so a link of bytes could only be cut to all of them at once.
What is spoilt is read from a file that a test writes; the gateway looks at it with every request
and, for streams that are open, several times a second. A stack whose tests spoil nothing has no
such file, and every way is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

LOOK_SECONDS: Final = 0.1


class Spoilt(BaseModel):
    """What became of one way; `project` is empty for the root."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user: str
    project: str
    is_cut: bool = False
    delay_seconds: float = 0.0


_FILE: Final = TypeAdapter(tuple[Spoilt, ...])


def write_spoilt(path: Path, spoilt: Iterable[Spoilt]) -> None:
    """Replaces what is spoilt, as a whole."""
    beside = path.with_suffix(".new")
    beside.write_bytes(_FILE.dump_json(tuple(spoilt)))
    beside.replace(path)


class WayCutError(ConnectionResetError):
    """The way is cut: whoever asked sees his connection end without an answer."""


class Ways:
    """The spoilt ways of a file, and the streams that are open on any way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -1
        self._spoilt: dict[tuple[str, str], Spoilt] = {}
        self._open: set[tuple[tuple[str, str], asyncio.Transport]] = set()

    async def enter(self, user: str, project: str) -> None:
        """Waits as long as the way is slow; raises where it is cut."""
        found = self._read().get((user, project))
        if found is None:
            return
        if found.delay_seconds:
            await asyncio.sleep(found.delay_seconds)
        if found.is_cut:
            raise WayCutError(f"{user!r} does not reach {project or 'the root'!r}")

    @contextmanager
    def holding(
        self, user: str, project: str, transport: asyncio.Transport | None
    ) -> Generator[None]:
        """An answer under way: it ends with its connection when its way is cut."""
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
        """Ends what is open on ways that are cut; runs for as long as the gateway."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            spoilt = self._read()
            for way, transport in tuple(self._open):
                found = spoilt.get(way)
                if found is not None and found.is_cut:
                    transport.abort()

    def _read(self) -> dict[tuple[str, str], Spoilt]:
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if changed != self._read_at:
            found = _FILE.validate_json(self._path.read_bytes())
            self._spoilt = {(one.user, one.project): one for one in found}
            self._read_at = changed
        return self._spoilt
