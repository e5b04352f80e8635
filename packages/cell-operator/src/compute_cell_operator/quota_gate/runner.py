"""Runs looks: one per slot at a time, so many at once, so many per project, and again when due.

Far requests may take seconds, so looks have workers of their own: a project that does not answer
holds at most its share of them, and no pass of the cell waits for one. Errors of the cell's plane
are tried again as everywhere (`retries.py`); a bug ends one look and is tried again slowly.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from compute_cell_operator.retries import RETRY
from compute_operator_kit.backoff import Attempts, plan_retry
from compute_operator_kit.clock import ZERO, Clock, Random
from compute_operator_kit.deadlines import Deadline
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.logs import bound_keys
from compute_operator_kit.outcomes import soonest
from compute_operator_kit.reconcile import Judgement, Result, judge_pass
from compute_operator_kit.workqueue import FairQueue, Priority, Taken

AT_ONCE: Final = 16
PER_PROJECT: Final = 4
LONGEST_SLEEP: Final = timedelta(minutes=1)

logger = logging.getLogger(__name__)


class Runner:
    """The queue of slots and its workers."""

    def __init__(
        self,
        look: Callable[[ObjectKey], Awaitable[Result]],
        share: Callable[[ObjectKey], str],
        clock: Clock,
        random: Random,
        *,
        deadline: timedelta,
    ) -> None:
        self._look = look
        self._share = share
        self._clock = clock
        self._random = random
        self._deadline = Deadline(deadline.total_seconds())
        self._queue = FairQueue[ObjectKey]()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_share: Counter[str] = Counter()
        self._failed: dict[ObjectKey, Attempts] = {}

    def add(self, key: ObjectKey, *, is_urgent: bool = True) -> None:
        priority = Priority.FRESH if is_urgent else Priority.BACKGROUND
        self._queue.add(key, self._share(key), now=self._clock.monotonic(), priority=priority)
        self._wake.set()

    async def run(self) -> None:
        """Runs looks until cancelled; what is in flight is then aborted."""
        try:
            while True:
                self._wake.clear()  # first: what arrives from here on is either taken or wakes us
                self._start_all()
                timer = self._arm()
                try:
                    await self._wake.wait()
                finally:
                    timer.cancel()
        finally:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _arm(self) -> asyncio.TimerHandle:
        # While all are busy a timer that is over would ring without end: a look that ends wakes us.
        due = self._queue.next_due() if len(self._tasks) < AT_ONCE else None
        left = LONGEST_SLEEP if due is None else max(ZERO, due - self._clock.monotonic())
        loop = asyncio.get_running_loop()
        return loop.call_later(min(left, LONGEST_SLEEP).total_seconds(), self._wake.set)

    def _start_all(self) -> None:
        while len(self._tasks) < AT_ONCE:
            taken = self._queue.take(self._clock.monotonic(), self._has_room)
            if taken is None:
                return
            self._start(taken)

    def _has_room(self, share: str) -> bool:
        return self._in_share[share] < PER_PROJECT

    def _start(self, taken: Taken[ObjectKey]) -> None:
        self._in_share[taken.share] += 1
        task = asyncio.create_task(self._run(taken.key), name=f"quota:{taken.key}")
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._in_share[taken.share] -= 1
            if not self._in_share[taken.share]:
                del self._in_share[taken.share]  # projects come and go
            self._wake.set()

        task.add_done_callback(ended)

    async def _run(self, key: ObjectKey) -> None:
        try:
            with bound_keys(controller="instance", plane=key.plane, part="quota"):
                judgement = await judge_pass(lambda: self._look(key), self._deadline)
            self._settle(key, judgement)
        finally:
            self._queue.done(key, now=self._clock.monotonic())

    def _settle(self, key: ObjectKey, judgement: Judgement) -> None:
        wait = judgement.wait
        if judgement.errors:
            before = self._failed.get(key, Attempts())
            retry = plan_retry(judgement.errors, before, RETRY, self._random.random())
            self._failed[key] = retry.attempts
            wait = soonest((wait, retry.delay))
            worst = judgement.worst
            reason = worst.reason if worst is not None else ""
            logger.debug("Looking again", extra={"reason": reason})
        else:
            self._failed.pop(key, None)
        if wait is not None:
            due = self._clock.monotonic() + wait
            self._queue.add_at(key, self._share(key), due=due)
