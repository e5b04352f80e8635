"""An event loop with virtual time: it advances to the next timer when nothing is ready.

A run takes no wall time, uses no socket and no thread, and is a function of its seed: callbacks
that are ready at the same time run in an order drawn from a seeded source, so another seed tries
another interleaving. Real input and output raise an error.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import threading
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from dataclasses import dataclass
from random import Random
from typing import Final, NoReturn, TypeVar, TypeVarTuple, Unpack

from typing_extensions import override

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

# This many callbacks without an advance of time mean that the loop spins.
SPIN_LIMIT: Final = 1_000_000


class VirtualTimeError(RuntimeError):
    """An operation that is impossible in virtual time."""


class DeadlockError(VirtualTimeError):
    """Nothing is ready and no timer is set, but tasks are waiting."""


class LivelockError(VirtualTimeError):
    """Callbacks follow each other endlessly without an advance of time."""


@dataclass(frozen=True, slots=True)
class _Callback:
    handle: asyncio.Handle
    run: Callable[[], object]
    context: Context


class SequencedTask(asyncio.Task[_T]):
    """A task that hashes to its number: sets of tasks have the same order in every process."""

    def __init__(
        self,
        number: int,
        coroutine: Coroutine[object, object, _T],
        *,
        loop: asyncio.AbstractEventLoop,
        name: str,
        context: Context | None,
    ) -> None:
        # Before the base class, which adds the task to a set.
        self.number = number
        super().__init__(coroutine, loop=loop, name=name, context=context)

    @override
    def __hash__(self) -> int:
        return self.number


class SequencedFuture(asyncio.Future[_T]):
    """A future that hashes to its number, for the same reason."""

    number: int = 0

    @override
    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop (see the module docstring). `time()` begins at zero."""

    def __init__(self, order: Random, *, spin_limit: int = SPIN_LIMIT) -> None:
        super().__init__()
        self._order = order
        self._moment = 0.0
        self._numbers = itertools.count(1)
        self._soon: list[_Callback] = []
        self._timers: list[tuple[float, int, _Callback]] = []
        self._since_tick = 0
        self._spin_limit = spin_limit
        self._thread = threading.get_ident()
        self.set_task_factory(self._make_task)

    @override
    def time(self) -> float:
        return self._moment

    @override
    def call_soon(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        self._refuse_when_closed()
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        self._soon.append(_Callback(handle, lambda: callback(*args), context))
        return handle

    @override
    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        # asyncio itself calls this when an async generator is dropped; a thread must not.
        if threading.get_ident() != self._thread:
            raise VirtualTimeError("another thread called into a loop with virtual time")
        return self.call_soon(callback, *args, context=context)

    @override
    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._moment + delay, callback, *args, context=context)

    @override
    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._refuse_when_closed()
        # Rounded, so that 0.1 three times and 0.3 once are the same time.
        when = round(when, 9)
        context = copy_context() if context is None else context
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        entry = _Callback(handle, lambda: callback(*args), context)
        heapq.heappush(self._timers, (when, next(self._numbers), entry))
        return handle

    @override
    def create_future(self) -> asyncio.Future[_T]:
        future = SequencedFuture[_T](loop=self)
        future.number = next(self._numbers)
        return future

    @override
    def run_in_executor(
        self,
        executor: object,
        func: Callable[[Unpack[_Ts]], _T],
        *args: *_Ts,
    ) -> NoReturn:
        name = getattr(func, "__qualname__", repr(func))
        raise VirtualTimeError(f"running {name!r} in a thread under virtual time")

    def describe_waiting(self) -> list[str]:
        """Unfinished tasks with the line in which each waits, oldest first."""
        waiting = [task for task in asyncio.all_tasks(self) if not task.done()]
        return [f"{task.get_name()} {_location(task)}" for task in sorted(waiting, key=hash)]

    def unfinished(self) -> list[asyncio.Task[object]]:
        """Unfinished tasks, oldest first."""
        tasks: list[asyncio.Task[object]] = [*asyncio.all_tasks(self)]
        return sorted((task for task in tasks if not task.done()), key=hash)

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[object, object, _T] | Generator[object, None, _T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        if not isinstance(coroutine, Coroutine):
            raise VirtualTimeError(f"making a task of {coroutine!r}, which is no coroutine")
        number = next(self._numbers)
        return SequencedTask[_T](
            number, coroutine, loop=loop, name=name or f"task-{number}", context=context
        )

    def _run_once(self) -> None:
        """Run everything that is ready now, in an order given by the seed."""
        if not self._soon:
            self._jump()
        while self._timers and self._timers[0][0] <= self._moment:
            self._soon.append(heapq.heappop(self._timers)[2])
        self._count(len(self._soon))
        round_, self._soon = self._soon, []
        self._order.shuffle(round_)
        for position, entry in enumerate(round_):
            try:
                self._run_callback(entry)
            except BaseException:
                # The loop stops here; a later run for clean-up continues with the rest.
                self._soon = [*round_[position + 1 :], *self._soon]
                raise

    def _jump(self) -> None:
        """Advance to the next timer."""
        while self._timers and self._timers[0][2].handle.cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            waiting = "\n  ".join(self.describe_waiting()) or "nobody"
            raise DeadlockError(f"nothing is ready and no timer is set; waiting:\n  {waiting}")
        if self._timers[0][0] > self._moment:
            self._moment = self._timers[0][0]
            self._since_tick = 0

    def _count(self, callbacks: int) -> None:
        self._since_tick += callbacks
        if self._since_tick > self._spin_limit:
            waiting = "\n  ".join(self.describe_waiting())
            # Reset, so that the loop can still run for clean-up.
            spins, self._since_tick = self._since_tick, 0
            raise LivelockError(f"{spins} callbacks at one moment; alive:\n  {waiting}")

    def _run_callback(self, entry: _Callback) -> None:
        if entry.handle.cancelled():
            return
        try:
            entry.context.run(entry.run)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as failure:  # noqa: BLE001 -- reported, not swallowed
            self.call_exception_handler(
                {"message": "exception in a callback", "exception": failure}
            )

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer stays in the heap until its time; `_jump` skips it."""

    def _refuse_when_closed(self) -> None:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")


def _location(task: asyncio.Task[object]) -> str:
    """The innermost line in which a task waits."""
    coroutine = task.get_coro()
    while inspect.iscoroutine(coroutine) and inspect.iscoroutine(coroutine.cr_await):
        coroutine = coroutine.cr_await
    frame = coroutine.cr_frame if inspect.iscoroutine(coroutine) else None
    if frame is None:
        return "at an unknown place"
    code = frame.f_code
    return f"at {code.co_filename.rpartition('/')[2]}:{frame.f_lineno} in {code.co_qualname}"
