"""A work queue with one reconcile at a time per key and exponential back-off, as in Karmada.

A change ends the back-off of its key at once; only a successful reconcile resets it. Only keys are
queued, so a burst of changes causes one reconcile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from typing import Final, Generic, TypeVar

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.karmada.interpreter.lua_sandbox import ScriptError
from compute_sim_planes.karmada.options import KarmadaOptions

_K = TypeVar("_K", bound=Hashable)
_log: Final = logging.getLogger(__name__)


class RequeueError(Exception):
    """A precondition is not met yet; the reconcile is repeated."""


class RetryQueue(Generic[_K]):
    """Runs reconciles as tasks of a task group."""

    def __init__(
        self,
        reconcile: Callable[[_K], Awaitable[timedelta | None]],
        tasks: asyncio.TaskGroup,
        name: str,
        options: KarmadaOptions,
    ) -> None:
        """`reconcile` returns the delay of the next reconcile; None for the next change."""
        self._reconcile = reconcile
        self._tasks = tasks
        self._name = name
        self._options = options
        self._pending: dict[_K, asyncio.Event] = {}

    def add(self, key: _K) -> None:
        added = self._pending.get(key)
        if added is None:
            added = self._pending[key] = asyncio.Event()
            self._tasks.create_task(self._process(key, added), name=f"karmada {self._name} {key}")
        added.set()

    async def _process(self, key: _K, added: asyncio.Event) -> None:
        """Ends when there is nothing left to reconcile; the next change starts it again."""
        failures = 0
        while added.is_set():
            await asyncio.sleep(self._options.reconcile_delay.total_seconds())
            added.clear()
            try:
                delay = await self._reconcile(key)
                failures = 0
            except (ApiError, OSError, ScriptError, RequeueError) as cause:
                delay = self._wait_after(failures)
                failures += 1
                _log.debug("Looking again later", extra={"key": str(key), "cause": str(cause)})
            if delay is not None:
                await _wait(added, delay)
        del self._pending[key]

    def _wait_after(self, failures: int) -> timedelta:
        # Twenty doublings of the shortest delay exceed the longest; more would overflow.
        doubled: int = 2 ** min(failures, 20)
        return min(self._options.retry_base_delay * doubled, self._options.retry_max_delay)


async def _wait(added: asyncio.Event, delay: timedelta) -> None:
    """Wait until the key is added again or the delay is over."""
    try:
        async with asyncio.timeout(delay.total_seconds()):
            await added.wait()
    except TimeoutError:
        added.set()
