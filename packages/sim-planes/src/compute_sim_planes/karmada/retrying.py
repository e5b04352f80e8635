"""One look at a time per key, and after a failure again, each time twice as long later.

How Karmada's controllers work. A change wakes a key at once, however long it would still wait; only
a look that succeeds makes the next failure a first one again. A queue holds keys and no events, so
a storm of changes is one look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Final, Generic, TypeVar

from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.karmada.knobs import Knobs
from compute_sim_planes.karmada.lua_sandbox import ScriptError

_K = TypeVar("_K", bound=Hashable)
_log: Final = logging.getLogger(__name__)


class NotYetError(Exception):
    """Something else must happen first; the look is repeated."""


class Retrying(Generic[_K]):
    """Looks, inside a task group that ends them."""

    def __init__(
        self,
        look: Callable[[_K], Awaitable[timedelta | None]],
        tasks: asyncio.TaskGroup,
        name: str,
        knobs: Knobs,
    ) -> None:
        """A look says when to look again; None is on the next change."""
        self._look = look
        self._tasks = tasks
        self._name = name
        self._knobs = knobs
        self._woken: dict[_K, asyncio.Event] = {}

    def add(self, key: _K) -> None:
        woken = self._woken.get(key)
        if woken is None:
            woken = self._woken[key] = asyncio.Event()
            self._tasks.create_task(self._work(key, woken), name=f"karmada {self._name} {key}")
        woken.set()

    async def _work(self, key: _K, woken: asyncio.Event) -> None:
        """Ends when there is nothing more to look at; the next change begins it again."""
        failures = 0
        while woken.is_set():
            await asyncio.sleep(self._knobs.hop.total_seconds())
            woken.clear()
            try:
                delay = await self._look(key)
                failures = 0
            except (ApiError, OSError, ScriptError, NotYetError) as cause:
                delay = self._wait_after(failures)
                failures += 1
                _log.debug("Looking again later", extra={"key": str(key), "cause": str(cause)})
            if delay is not None:
                await _wait(woken, delay)
        del self._woken[key]

    def _wait_after(self, failures: int) -> timedelta:
        # Twenty doublings of the shortest wait are beyond the longest; more would overflow.
        doubled: int = 2 ** min(failures, 20)
        return min(self._knobs.retry_first * doubled, self._knobs.retry_longest)


async def _wait(woken: asyncio.Event, delay: timedelta) -> None:
    """Until somebody wakes the key or the time has come."""
    try:
        async with asyncio.timeout(delay.total_seconds()):
            await woken.wait()
    except TimeoutError:
        woken.set()
