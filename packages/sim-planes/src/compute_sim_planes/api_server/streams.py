"""A watch as a stream of lines: what was, what changes, bookmarks, the end.

One stream per watch, fed by the bucket in the moment of a commit and read by its client whenever it
comes round to it; the events in between wait in order. No task runs for it: an idle stream is a
timer and an entry in a list.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta

from compute_sim_planes.api_server.answers import JSON_HEADERS
from compute_sim_planes.api_server.kinds import Kind
from compute_sim_planes.api_server.selection import Selection
from compute_sim_planes.api_server.storage.records import Change, ChangeType

# Turns a change that concerns a stream into its line.
Render = Callable[[Change, ChangeType], bytes]


def shown_as(change: Change, selection: Selection) -> ChangeType | None:
    """How a stream with a selection sees a change; an object may enter and leave its view."""
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
    """The answer to a watch. Closing it, the end of its time and the end of its kind all end it
    alike.
    """

    status = 200
    headers: Mapping[str, str] = JSON_HEADERS

    def __init__(self, kind: Kind, selection: Selection, render: Render) -> None:
        self.kind = kind
        self._selection = selection
        self._render = render
        self._lines: deque[bytes] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._ended = False
        self._timers: list[asyncio.TimerHandle] = []
        self._on_end: list[Callable[[], None]] = []

    def add_line(self, line: bytes) -> None:
        self._lines.append(line)
        self._rouse()

    def add_change(self, change: Change) -> None:
        """Take in a commit, if it concerns this stream."""
        seen = shown_as(change, self._selection)
        if seen is not None:
            self.add_line(self._render(change, seen))

    def on_end(self, callback: Callable[[], None]) -> None:
        self._on_end.append(callback)

    def end_after(self, time: timedelta) -> None:
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(time.total_seconds(), self.end))

    def call_after(self, time: timedelta, act: Callable[[], None]) -> None:
        """Call `act` once, if the stream lasts that long."""
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(time.total_seconds(), act))

    def repeat(self, every: timedelta, act: Callable[[], None]) -> None:
        """Call `act` again and again while the stream lasts."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            if not self._ended:
                act()
                self._timers[at] = loop.call_later(every.total_seconds(), tick)

        at = len(self._timers)
        self._timers.append(loop.call_later(every.total_seconds(), tick))

    def end(self) -> None:
        """No more lines; those that wait are still read."""
        if self._ended:
            return
        self._ended = True
        for timer in self._timers:
            timer.cancel()
        for callback in self._on_end:
            callback()
        self._rouse()

    async def chunks(self) -> AsyncIterator[bytes]:
        """One line per chunk."""
        while True:
            while self._lines:
                yield self._lines.popleft()
            if self._ended:
                return
            await self._rest()

    async def batches(self) -> AsyncIterator[bytes]:
        """As many lines per chunk as wait, for a transport to which every chunk costs."""
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
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
