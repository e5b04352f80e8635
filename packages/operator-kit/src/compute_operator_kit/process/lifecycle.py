"""The event loop, signals and exit code of a process, with a stop that ends in time.

0 is a clean stop, 1 a fatal error at run time (a lost Lease included), 2 a refused configuration.
SIGTERM requests a stop; tasks that still run after the grace period are cancelled, and a hard exit
ends those that ignore it: a process that lingers keeps its Lease from the next one.
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

from compute_kubeconfig.problems import ConfigurationError
from compute_operator_kit.config.loader import find_warnings
from compute_operator_kit.config.settings import Root
from compute_operator_kit.core.errors import iter_leaves
from compute_operator_kit.core.memory import collect_rarely, return_large_blocks

GRACE: Final = timedelta(seconds=8)  # operations.md 2
# Cancelled tasks need a moment to unwind; the kubelet's SIGKILL comes at 15 s.
HARD_EXIT_AFTER: Final = GRACE + timedelta(seconds=4)
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

logger = logging.getLogger(__name__)


class ExitCode(IntEnum):
    CLEAN = 0
    FATAL = 1
    REFUSED = 2


class Lifecycle:
    """The request to stop a process, and its reason."""

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
        """The first reason counts; further requests change nothing."""
        if not self._stopping.is_set():
            self._why = why
            self._stopping.set()

    async def wait_for_stop(self) -> None:
        await self._stopping.wait()


def run_process(main: Callable[[Lifecycle], Coroutine[None, None, None]]) -> ExitCode:
    """Runs `main` until it ends, or until a signal and the grace period; gives the exit code.

    `main` watches its lifecycle and ends by itself; it is cancelled only after the grace period.
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
        return _exit_code(work)


def _exit_code(work: asyncio.Task[None]) -> ExitCode:
    if work.cancelled():
        return ExitCode.CLEAN  # aborted after the grace period, which is still a stop
    failure = work.exception()
    if failure is None:
        return ExitCode.CLEAN
    for leaf in iter_leaves(failure):
        if isinstance(leaf, ConfigurationError):
            raise leaf
    logger.error("Ending after a fatal error", exc_info=failure, extra={"reason": str(failure)})
    return ExitCode.FATAL


async def finish(tasks: set[asyncio.Task[None]], *, within: timedelta) -> None:
    """Waits for tasks, then cancels those that are not done `within` and waits for them."""
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
    """Ends the process even if a thread or a task never ends."""
    timer = threading.Timer(HARD_EXIT_AFTER.total_seconds(), os._exit, args=(ExitCode.FATAL,))
    timer.daemon = True
    timer.start()


def report_warnings(settings: Root) -> None:
    """For `check-config`: one line per warning that a start would log."""
    for warning in find_warnings(settings):
        sys.stderr.write(f"warning: {warning}\n")


def report_refusal(refused: ConfigurationError) -> None:
    """One line per problem, on stderr: the end of a pod's log."""
    sys.stderr.write(f"{refused}\n")
