"""The life of the process: event loop, signals, a stop that ends in time, and the exit code.

0 is a clean stop, 1 a fatal error at run time (a lost Lease included), 2 a configuration that is
refused. SIGTERM asks for a stop; what is still under way after the grace is cancelled, and what
ignores even that is left behind by a hard exit, because a process that lingers keeps its Lease from
the next one. Knows nothing of what runs inside.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import timedelta
from enum import IntEnum
from types import FrameType
from typing import Final

import uvloop

from compute_operator_kit.configuration import ConfigurationError, find_warnings
from compute_operator_kit.errors import iter_leaves
from compute_operator_kit.heap import collect_rarely, return_large_blocks
from compute_operator_kit.settings import Root

GRACE: Final = timedelta(seconds=8)  # operations.md 2
# Cancelled work needs a moment to unwind; the kubelet's SIGKILL comes at 15 s.
HARD_EXIT_AFTER: Final = GRACE + timedelta(seconds=4)
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

logger = logging.getLogger(__name__)


class ExitCode(IntEnum):
    CLEAN = 0
    FATAL = 1
    REFUSED = 2


class Lifecycle:
    """Tells the parts of a process when to stop, and why."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()
        self._why = ""

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def why(self) -> str:
        return self._why

    def request_stop(self, why: str) -> None:
        """The first reason counts; asking again changes nothing."""
        if not self._stopping.is_set():
            self._why = why
            self._stopping.set()

    async def wait_for_stop(self) -> None:
        await self._stopping.wait()


def run_process(main: Callable[[Lifecycle], Coroutine[None, None, None]]) -> ExitCode:
    """Runs `main` until it ends, or until a signal and the grace after it; gives the exit code.

    `main` watches its lifecycle and ends by itself; cancelling it is the last resort.
    """
    return_large_blocks()
    collect_rarely()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_supervise(main))
    except ConfigurationError as refused:
        report_refusal(refused)
        return ExitCode.REFUSED


async def _supervise(main: Callable[[Lifecycle], Coroutine[None, None, None]]) -> ExitCode:
    lifecycle = Lifecycle()
    with _signals_stop(lifecycle):
        work = asyncio.create_task(main(lifecycle), name="main")
        stop = asyncio.create_task(lifecycle.wait_for_stop(), name="stop")
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not work.done():
            logger.info("Stopping", extra={"reason": lifecycle.why})
            await finish({work}, within=GRACE)
        return _judge(work)


def _judge(work: asyncio.Task[None]) -> ExitCode:
    if work.cancelled():
        return ExitCode.CLEAN  # aborted after the grace, which is how a stop may end
    failure = work.exception()
    if failure is None:
        return ExitCode.CLEAN
    for leaf in iter_leaves(failure):
        if isinstance(leaf, ConfigurationError):
            raise leaf
    logger.error("Ending after a fatal error", exc_info=failure, extra={"reason": str(failure)})
    return ExitCode.FATAL


async def finish(tasks: set[asyncio.Task[None]], *, within: timedelta) -> None:
    """Lets tasks end by themselves for so long, then cancels the rest and waits for them."""
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=within.total_seconds())
    for task in late:
        logger.warning("Aborting", extra={"task": task.get_name()})
        task.cancel()
    if late:
        await asyncio.wait(late)


@contextmanager
def _signals_stop(lifecycle: Lifecycle) -> Generator[None]:
    loop = asyncio.get_running_loop()
    former: list[Callable[[int, FrameType | None], object] | int | None] = []

    def stop(name: str) -> None:
        _exit_hard_later()
        lifecycle.request_stop(name)

    for number in SIGNALS:
        former.append(signal.getsignal(number))
        loop.add_signal_handler(number, stop, number.name)
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, former, strict=True):
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _exit_hard_later() -> None:
    """Ends the process even if a thread or a task never does."""
    timer = threading.Timer(HARD_EXIT_AFTER.total_seconds(), os._exit, args=(ExitCode.FATAL,))
    timer.daemon = True
    timer.start()


def report_warnings(settings: Root) -> None:
    """For `check-config`: one line per warning that a start would log."""
    for warning in find_warnings(settings):
        sys.stderr.write(f"warning: {warning}\n")


def report_refusal(refused: ConfigurationError) -> None:
    """One line per problem, where a person or a pod's log looks first."""
    sys.stderr.write(f"{refused}\n")
