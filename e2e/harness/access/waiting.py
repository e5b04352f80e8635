"""Polls until a condition holds, and fails at once if a process ends meanwhile.

Every poll also checks the processes that the condition depends on, so that a dead one is named at
once instead of after the timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Final, TypeVar

import aiohttp

from e2e.harness.access.client import ApiError
from e2e.harness.errors import PlanesError

Answer = TypeVar("Answer")
INTERVAL: Final = timedelta(milliseconds=50)
# One attempt: another program on our port may accept a connection and never answer.
ATTEMPT: Final = timedelta(seconds=3)
PATIENCE: Final = timedelta(seconds=90)
# Errors of a server that is not ready yet.
NOT_YET: Final = (aiohttp.ClientError, ApiError, TimeoutError, OSError)


async def until(
    what: str,
    ask: Callable[[], Awaitable[Answer | None]],
    *,
    check: Callable[[], None],
    patience: timedelta = PATIENCE,
    attempt: timedelta = ATTEMPT,
) -> Answer:
    """Polls until the result is truthy; raises if a process ended or on timeout."""
    deadline = time.monotonic() + patience.total_seconds()
    last = "no answer yet"
    while time.monotonic() < deadline:
        check()
        try:
            async with asyncio.timeout(attempt.total_seconds()):
                answer = await ask()
            if answer:
                return answer
            last = "not yet so"
        except NOT_YET as refused:
            last = f"{type(refused).__name__}: {refused}"
        await asyncio.sleep(INTERVAL.total_seconds())
    raise PlanesError(
        f"waiting for {what}: not within {patience.total_seconds():.0f} s, at last {last[:300]}",
        remedy="run again on a less busy machine, or look into the logs of the run folder",
    )


async def side_by_side(steps: Iterable[Coroutine[object, object, None]]) -> None:
    """Runs steps concurrently; the first failure cancels the others and is raised unchanged.

    Not a TaskGroup: its exception group would hide the remedy from the printed message.
    """
    tasks = [asyncio.create_task(step) for step in steps]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
