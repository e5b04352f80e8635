"""A thread with an event loop for links, external controllers and recorders.

They must continue while a scenario blocks its own loop. Processes are started in this thread too,
because the kernel ends a process with the thread that started it
(`e2e/harness/processes/die_with_parent.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


class BackgroundLoop:
    """Runs from `start` to `stop`."""

    def __init__(self, name: str = "background") -> None:
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the loop; tasks in it must have been stopped before."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, work: Coroutine[object, object, _T]) -> Future[_T]:
        """Schedules a coroutine on the loop, from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[object, object, _T]) -> _T:
        """Runs a coroutine on the loop and waits for it, from a thread without a loop."""
        return self.submit(work).result()

    async def do(self, work: Coroutine[object, object, _T]) -> _T:
        """Runs a coroutine on the loop and awaits it from another loop."""
        return await asyncio.wrap_future(self.submit(work))

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
