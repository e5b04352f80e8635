"""A work queue with one reconcile at a time per object, for the simulated controllers.

A key is reconciled on every change of its object and after the delay that its last reconcile
returned; a failed reconcile is retried after a moment. Only keys are queued, so a burst of changes
causes one reconcile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from compute_sim_planes.client.errors import ApiError, ConflictError
from compute_sim_planes.json_types import JsonObject, string_at

RETRY: Final = timedelta(seconds=1)
AT_ONCE: Final = timedelta()

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class NamespacedName:
    """An object by namespace and name."""

    namespace: str
    name: str


def namespaced_name(document: JsonObject) -> NamespacedName:
    return NamespacedName(
        string_at(document, "metadata", "namespace"), string_at(document, "metadata", "name")
    )


# Reconciles one object; returns the delay of the next reconcile, None for the next change.
ReconcileFunction: TypeAlias = Callable[[NamespacedName], Awaitable[timedelta | None]]


class WorkQueue:
    """Runs reconciles as tasks of a task group."""

    def __init__(self, reconcile: ReconcileFunction, tasks: asyncio.TaskGroup, name: str) -> None:
        self._reconcile = reconcile
        self._tasks = tasks
        self._name = name
        self._pending: dict[NamespacedName, asyncio.Event] = {}

    def add(self, key: NamespacedName) -> None:
        added = self._pending.get(key)
        if added is None:
            added = self._pending[key] = asyncio.Event()
            self._tasks.create_task(self._process(key, added), name=f"{self._name} {key.name}")
        added.set()

    async def _process(self, key: NamespacedName, added: asyncio.Event) -> None:
        """Ends when there is nothing left to reconcile; the next change starts it again."""
        while added.is_set():
            added.clear()
            delay = await self._attempt(key)
            if delay is None:
                continue
            try:
                async with asyncio.timeout(delay.total_seconds()):
                    await added.wait()
            except TimeoutError:
                added.set()
        del self._pending[key]

    async def _attempt(self, key: NamespacedName) -> timedelta | None:
        try:
            return await self._reconcile(key)
        except ConflictError:
            return AT_ONCE
        except (ApiError, OSError) as cause:
            _log.debug("Looking again later", extra={"name": key.name, "cause": str(cause)})
            return RETRY
