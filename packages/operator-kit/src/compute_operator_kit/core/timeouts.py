"""Timeouts of equal length with one timer, for reconciles and requests.

`asyncio.timeout` sets and cancels a timer for every block, although nearly every block ends in
time. Blocks with equal timeouts expire in the order they began, so that one timer for the oldest is
enough. Bound to one event loop.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

from compute_operator_kit.core.errors import InvariantError


class Deadline:
    """`with deadline.start():` raises `TimeoutError` if the block takes longer."""

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds
        self._running: dict[SharedTimeout, float] = {}  # each with its end, the earliest first
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> SharedTimeout:
        return SharedTimeout(self)

    def begin(self, timeout: SharedTimeout) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        self._running[timeout] = end
        if self._timer is None:
            self._timer = loop.call_at(end, self._fire, end)

    def end(self, timeout: SharedTimeout) -> None:
        self._running.pop(timeout, None)

    def _fire(self, moment: float) -> None:
        """Expires blocks that end by `moment` (the loop may call a little early) and sets the timer
        for the oldest that is left.
        """
        self._timer = None
        for timeout, end in tuple(self._running.items()):
            if end > moment:
                self._timer = asyncio.get_running_loop().call_at(end, self._fire, end)
                return
            del self._running[timeout]
            timeout.expire()


class SharedTimeout:
    """One block with a timeout."""

    __slots__ = ("_cancelling", "_deadline", "_is_over", "_task")

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_over = False

    def expire(self) -> None:
        self._is_over = True
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise InvariantError("beginning under a deadline: no task runs")
        self._task, self._cancelling = task, task.cancelling()
        self._deadline.begin(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadline.end(self)
        if not self._is_over or self._task is None:
            return
        # If other code has cancelled the task too, the cancellation goes on.
        is_ours = self._task.uncancel() <= self._cancelling
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error
