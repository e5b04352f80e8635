"""A watch as a stream of lines: existing objects, changes, bookmarks, the end.

Each commit appends a line to the streams it concerns; the client reads them in order at its own
pace. A stream has no task: while idle it is a timer and an entry in a list.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta

from compute_sim_planes.api_server.http.responses import JSON_HEADERS
from compute_sim_planes.api_server.http.selection import Selection
from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.api_server.storage.records import Change, ChangeType

# Renders a change as a line of the stream.
Render = Callable[[Change, ChangeType], bytes]


def shown_as(change: Change, selection: Selection) -> ChangeType | None:
    """The event type of a change under a selection; an object may enter or leave it."""
    if selection.namespace and change.after.namespace != selection.namespace:
        return None
    was = change.before is not None and selection.matches(change.before)
    if change.type is ChangeType.DELETED:
        return ChangeType.DELETED if was else None
    now = selection.matches(change.after)
    if now:
        return ChangeType.MODIFIED if was else ChangeType.ADDED
    return ChangeType.DELETED if was else None


class WatchStream:
    """The response to a watch. It ends by `close`, at its timeout, or when its kind is no longer
    served.
    """

    status = 200
    headers: Mapping[str, str] = JSON_HEADERS

    def __init__(self, kind: Kind, selection: Selection, render: Render) -> None:
        self.kind = kind
        self._selection = selection
        self._render = render
        self._lines: deque[bytes] = deque()
        self._wakeup: asyncio.Future[None] | None = None
        self._ended = False
        self._timers: list[asyncio.TimerHandle] = []
        self._on_end: list[Callable[[], None]] = []

    def add_line(self, line: bytes) -> None:
        self._lines.append(line)
        self._notify()

    def add_change(self, change: Change) -> None:
        """Append a commit that the selection covers."""
        seen = shown_as(change, self._selection)
        if seen is not None:
            self.add_line(self._render(change, seen))

    def on_end(self, callback: Callable[[], None]) -> None:
        self._on_end.append(callback)

    def end_after(self, time: timedelta) -> None:
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(time.total_seconds(), self.end))

    def call_after(self, time: timedelta, act: Callable[[], None]) -> None:
        """Call `act` once, unless the stream ends first."""
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(time.total_seconds(), act))

    def repeat(self, every: timedelta, act: Callable[[], None]) -> None:
        """Call `act` periodically until the stream ends."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            if not self._ended:
                act()
                self._timers[at] = loop.call_later(every.total_seconds(), tick)

        at = len(self._timers)
        self._timers.append(loop.call_later(every.total_seconds(), tick))

    def end(self) -> None:
        """Accept no more lines; buffered ones can still be read."""
        if self._ended:
            return
        self._ended = True
        for timer in self._timers:
            timer.cancel()
        for callback in self._on_end:
            callback()
        self._notify()

    async def chunks(self) -> AsyncIterator[bytes]:
        """One line per chunk."""
        while True:
            while self._lines:
                yield self._lines.popleft()
            if self._ended:
                return
            await self._rest()

    async def batches(self) -> AsyncIterator[bytes]:
        """All buffered lines as one chunk, for a transport with a cost per chunk."""
        while True:
            if self._lines:
                batch = b"".join(self._lines)
                self._lines.clear()
                yield batch
            elif self._ended:
                return
            else:
                await self._rest()

    async def close(self) -> None:
        self._lines.clear()
        self.end()

    async def _rest(self) -> None:
        self._wakeup = asyncio.get_running_loop().create_future()
        try:
            await self._wakeup
        finally:
            self._wakeup = None

    def _notify(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)
