"""A queue that processes each item once, after a delay, in order of arrival.

A controller must not act inside the commit that triggered it, because on a real plane it is another
process. The delay stands for the time until that process sees the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class DeferredQueue(Generic[ItemT]):
    """Items to process. An item that is added again while it waits is processed once."""

    def __init__(self, act: Callable[[ItemT], None], delay: timedelta) -> None:
        self._act = act
        self._delay = delay.total_seconds()
        # Insertion order is processing order.
        self._waiting: dict[ItemT, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, item: ItemT) -> None:
        self._waiting[item] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._run)

    def close(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        # Items added from here on wait for the next timer, as they would for another process.
        self._timer = None
        items = list(self._waiting)
        self._waiting.clear()
        for item in items:
            self._act(item)
