"""Wake-ups of the loops of Instances: events only set a flag, the loop reads the world itself.

A wake-up between two waits is kept, so that no event is lost while a loop is busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from compute_pod_provider.observe import InstanceKey


class Stopped(Protocol):
    """The flag by which a loop is asked to end."""

    def __bool__(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> Awaitable[object]: ...


class Wakers:
    """One flag per Instance that a loop attends to."""

    def __init__(self) -> None:
        self._flags: dict[InstanceKey, list[asyncio.Event]] = {}

    def add(self, key: InstanceKey) -> asyncio.Event:
        """A flag for one more loop at this Instance; `remove` it at its end."""
        flag = asyncio.Event()
        self._flags.setdefault(key, []).append(flag)
        return flag

    def remove(self, key: InstanceKey, flag: asyncio.Event) -> None:
        flags = self._flags.get(key, [])
        flags.remove(flag)
        if not flags:
            del self._flags[key]

    def wake(self, key: InstanceKey) -> None:
        for flag in self._flags.get(key, ()):
            flag.set()

    def is_attended(self, key: InstanceKey) -> bool:
        return key in self._flags


async def wait_for(flag: asyncio.Event, stopped: Stopped | None, timeout: timedelta) -> bool:  # noqa: ASYNC109
    """Waits for the flag, the stop or the time; whether the flag was set. It is cleared."""
    waits: set[asyncio.Task[bool]] = {asyncio.create_task(_set(flag))}
    if stopped is not None:
        waits.add(asyncio.create_task(_stop(stopped)))
    try:
        await asyncio.wait(
            waits,
            timeout=max(0.0, timeout.total_seconds()),
            return_when=asyncio.FIRST_COMPLETED,
        )
    finally:
        for one in waits:
            one.cancel()
        for one in waits:
            with suppress(asyncio.CancelledError):
                await one
    was_set = flag.is_set()
    flag.clear()
    return was_set


async def _set(flag: asyncio.Event) -> bool:
    return await flag.wait()


async def _stop(stopped: Stopped) -> bool:
    await stopped.wait()
    return True


async def wait_until(
    flag: asyncio.Event, is_reached: Callable[[], bool], within: timedelta
) -> bool:
    """Waits, from wake-up to wake-up, until something is reached or the time is over."""
    deadline = asyncio.get_running_loop().time() + within.total_seconds()
    while not is_reached():
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return False
        await wait_for(flag, None, timedelta(seconds=left))
    return True
