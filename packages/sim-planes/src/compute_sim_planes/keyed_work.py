"""One look at a time per object: how the level-triggered neighbours work.

A key is woken by every change of its object and by the time its last look named. A look that the
plane refused is repeated a moment later. Nothing is queued but keys, so a storm of changes is one
look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from compute_sim_planes.client_errors import ApiError, ConflictError
from compute_sim_planes.json_types import JsonObject, string_at

RETRY: Final = timedelta(seconds=1)
AT_ONCE: Final = timedelta()

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """An object by namespace and name."""

    namespace: str
    name: str


def key_of(found: JsonObject) -> Key:
    return Key(string_at(found, "metadata", "namespace"), string_at(found, "metadata", "name"))


# One look at an object; when to look again, None being on the next change.
Look: TypeAlias = Callable[[Key], Awaitable[timedelta | None]]


class KeyedWork:
    """Looks, inside a task group that ends them."""

    def __init__(self, look: Look, tasks: asyncio.TaskGroup, name: str) -> None:
        self._look = look
        self._tasks = tasks
        self._name = name
        self._woken: dict[Key, asyncio.Event] = {}

    def wake(self, key: Key) -> None:
        woken = self._woken.get(key)
        if woken is None:
            woken = self._woken[key] = asyncio.Event()
            self._tasks.create_task(self._work(key, woken), name=f"{self._name} {key.name}")
        woken.set()

    async def _work(self, key: Key, woken: asyncio.Event) -> None:
        """Ends when there is nothing more to look at; the next change begins it again."""
        while woken.is_set():
            woken.clear()
            delay = await self._attempt(key)
            if delay is None:
                continue
            try:
                async with asyncio.timeout(delay.total_seconds()):
                    await woken.wait()
            except TimeoutError:
                woken.set()
        del self._woken[key]

    async def _attempt(self, key: Key) -> timedelta | None:
        try:
            return await self._look(key)
        except ConflictError:
            return AT_ONCE
        except (ApiError, OSError) as cause:
            _log.debug("Looking again later", extra={"name": key.name, "cause": str(cause)})
            return RETRY
