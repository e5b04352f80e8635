"""The same time for each of many: passes, requests. One timer for all of them.

As `asyncio.timeout`, which makes a timer for every block and takes it back when the block ends, as
nearly every block does in time. Blocks that have the same time end in the order they began, so one
timer for the oldest is enough, and it rings once in that time and not once per block.

Of one event loop, like everything that waits.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

from compute_operator_kit.errors import InvariantError


class Deadline:
    """`with deadline.start():` raises `TimeoutError` out of a block that takes longer."""

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds
        self._running: dict[Stretch, float] = {}  # each with its end, the soonest first
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> Stretch:
        return Stretch(self)

    def begin(self, stretch: Stretch) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        self._running[stretch] = end
        if self._timer is None:
            self._timer = loop.call_at(end, self._ring, end)

    def end(self, stretch: Stretch) -> None:
        self._running.pop(stretch, None)

    def _ring(self, moment: float) -> None:
        """Ends what is over at this moment, which a loop's clock may not quite have reached when it
        rings; the timer goes on to the oldest that is left, or rests.
        """
        self._timer = None
        for stretch, end in tuple(self._running.items()):
            if end > moment:
                self._timer = asyncio.get_running_loop().call_at(end, self._ring, end)
                return
            del self._running[stretch]
            stretch.expire()


class Stretch:
    """One block under a deadline."""

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
        # Somebody else may have cancelled the task as well: then that is what goes on.
        is_ours = self._task.uncancel() <= self._cancelling
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error
