"""The stop and end signals between an event loop in its own thread and the loop that started it.

Each loop is touched only by `call_soon_threadsafe`, and no thread waits for the other: a blocking
wait would stop reconciling while the thread hangs.
"""

from __future__ import annotations

import asyncio
import threading


class LoopLink:
    """Made in the loop that starts the thread."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._home = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_requested = False

    def open(self) -> asyncio.Event:
        """Called in the thread's loop: the event that stops it, set already if the request came
        first.
        """
        with self._lock:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            if self._is_requested:
                self._stop.set()
            return self._stop

    def request_stop(self) -> None:
        with self._lock:
            self._is_requested = True
            if self._loop is not None and self._stop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop.set)

    def set_ended(self) -> None:
        """Called in the thread, last of all; a starting loop that is closed by then waits for
        nothing.
        """
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self.ended.set)
