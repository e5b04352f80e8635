"""A thread with an event loop of its own, for everything that must go on whatever a scenario does.

Links carry the operators' bytes, neighbours answer them, records are written: none of it may stand
still while a scenario blocks its own loop. Processes are started here too, because the kernel ends
a process with the thread that started it (`e2e/planes/tether.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


class Backstage:
    """Runs from `start` to `stop`."""

    def __init__(self, name: str = "backstage") -> None:
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the loop; whoever still works in it was to be stopped before."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, work: Coroutine[object, object, _T]) -> Future[_T]:
        """Has something done there; from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[object, object, _T]) -> _T:
        """Has something done there and waits for it, from a thread without a loop."""
        return self.submit(work).result()

    async def do(self, work: Coroutine[object, object, _T]) -> _T:
        """The same from a coroutine of another loop."""
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
