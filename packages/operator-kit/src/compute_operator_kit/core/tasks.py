"""Supervised tasks: asyncio tasks that belong to one plane or component and end with it.

A task that raises has a bug: it is logged with its trace and restarted if the caller gave a way to
do so; otherwise it would end unnoticed. `stop` waits until all tasks have ended: a task left
running would write for a plane that is disengaged.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine

logger = logging.getLogger(__name__)


class SupervisedTasks:
    """The tasks of one plane or component."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(
        self,
        work: Coroutine[object, object, None],
        name: str,
        on_crash: Callable[[], None] | None = None,
    ) -> asyncio.Task[None] | None:
        """Runs `work` as a task; None if the component is being stopped."""
        if self._is_stopping:
            work.close()
            return None
        # A new context: discovery engages planes inside a reconcile, and the task would keep the
        # log keys and the span of that reconcile.
        fresh = contextvars.Context()
        task = asyncio.create_task(work, name=f"{self._name}:{name}", context=fresh)
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._on_end(ended, on_crash))
        return task

    async def stop(self) -> None:
        """Cancels all tasks and waits for their end; afterwards none can be started."""
        self._is_stopping = True
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _on_end(self, task: asyncio.Task[None], on_crash: Callable[[], None] | None) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        logger.error(
            "Restarting a task that ended by a bug" if on_crash else "Task ended by a bug",
            exc_info=error,
            extra={"task": task.get_name()},
        )
        if on_crash is not None and not self._is_stopping:
            on_crash()
