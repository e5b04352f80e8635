"""Waiting for something to be true: asked again at short intervals, never slept through.

Each question is asked beside the question whether the processes it depends on still live; one that
died ends the wait at once and with its name, instead of after the deadline and without.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Final, TypeVar

import aiohttp

from e2e.planes.client import ApiError
from e2e.planes.errors import PlanesError

Answer = TypeVar("Answer")
INTERVAL: Final = timedelta(milliseconds=50)
# One question: whoever took our port may accept a connection and never say a word.
ATTEMPT: Final = timedelta(seconds=3)
PATIENCE: Final = timedelta(seconds=90)
# What a server that is not there yet answers with, from refused connections to half a start.
NOT_YET: Final = (aiohttp.ClientError, ApiError, TimeoutError, OSError)


async def until(
    what: str,
    ask: Callable[[], Awaitable[Answer | None]],
    *,
    check: Callable[[], None],
    patience: timedelta = PATIENCE,
    attempt: timedelta = ATTEMPT,
) -> Answer:
    """Asks until the answer is something true; raises when a process died or patience ends."""
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
    """Runs steps together; the first failure ends the others and is raised as it is.

    Not a TaskGroup: a group of one failure would hide its remedy from whoever prints it.
    """
    tasks = [asyncio.create_task(step) for step in steps]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
