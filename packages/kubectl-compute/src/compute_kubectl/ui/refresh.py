"""Reads the planes again and again while a page is looked at, and keeps the last good view.

A read that fails changes nothing but `failure`: the page goes on showing what was last read, and
since when it cannot be read.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.render.layout import clean
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui.documents import moment, page_document, plane_document
from compute_kubectl.ui.view import view_of

EVERY: Final = timedelta(seconds=2)
# A page asks every two seconds; one that was closed, or is hidden, costs the planes nothing.
WATCHED_FOR: Final = timedelta(seconds=30)

Source = Callable[[], Awaitable[Snapshot]]
Clock = Callable[[], datetime]


class SilentProjectError(OSError):
    """No plane that names Workloads answers: the page keeps what it has."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reads have failed since a moment; the message is that of the last one."""

    since: datetime
    message: str


@dataclass(frozen=True, slots=True)
class Held:
    """What was last read, and the page's document of it."""

    snapshot: Snapshot
    page: JsonObject
    digest: str
    silent: Mapping[str, datetime]
    """Planes that could not be read, each with the moment of the first such read."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class Refresher:
    """The last good read of a source, and the failure since then, if any."""

    def __init__(self, source: Source, *, every: timedelta = EVERY, clock: Clock = utc_now) -> None:
        self._source = source
        self._every = every
        self._clock = clock
        self._watched = asyncio.Event()
        self._watched_at = clock()
        self.held: Held | None = None
        self.failure: Failure | None = None

    async def run(self) -> None:
        """Reads until it is cancelled, and pauses while no page asks."""
        while True:
            began = self._clock()
            await self.read()
            # Planes that take long to answer are asked less often.
            took = self._clock() - began
            await asyncio.sleep(max(self._every, took).total_seconds())
            if self._clock() - self._watched_at > WATCHED_FOR:
                self._watched.clear()
                await self._watched.wait()

    async def read(self) -> None:
        """One read of the planes."""
        began = self._clock()
        try:
            snapshot = await self._source()
            self.held = await asyncio.to_thread(self._hold, snapshot, self._clock())
            self.failure = None
        except Exception as error:  # noqa: BLE001 - one bad answer must not end the refresh
            since = self.failure.since if self.failure else began
            kind = "" if isinstance(error, OSError) and str(error) else type(error).__name__
            text = ": ".join(part for part in (kind, str(error)) if part)
            self.failure = Failure(since, text)

    def _hold(self, snapshot: Snapshot, now: datetime) -> Held:
        workloads = snapshot.project.workloads
        is_silent = workloads.access is Access.UNREACHABLE
        if self.held and is_silent and snapshot.hub.deployments.access is not Access.READ:
            raise SilentProjectError(f"the project does not answer: {workloads.detail}")
        before: Mapping[str, datetime] = self.held.silent if self.held else {}
        silent = {
            one.name: before.get(one.name, snapshot.at)
            for one in snapshot.planes
            if one.access not in {Access.READ, Access.NOT_ASKED}
        }
        planes: list[JsonValue] = [
            plane_document(one, silent.get(one.name)) for one in snapshot.planes
        ]
        page: JsonObject = {**page_document(view_of(snapshot, now, silent)), "planes": planes}
        text = json.dumps(page, sort_keys=True)
        return Held(snapshot, page, hashlib.sha256(text.encode()).hexdigest()[:16], silent)

    def state(self, known: str) -> JsonObject:
        """The document of the page, without its body where the page already has it."""
        self._watched_at = self._clock()
        self._watched.set()
        held, failure = self.held, self.failure
        document: JsonObject = {
            "now": moment(self._clock()),
            "readAt": moment(held.snapshot.at) if held else None,
            "digest": held.digest if held else "",
            "failure": (
                {"since": moment(failure.since), "message": clean(failure.message)}
                if failure
                else None
            ),
        }
        if held is not None and held.digest != known:
            document["page"] = held.page
        return document
