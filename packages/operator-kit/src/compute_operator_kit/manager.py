"""Runs controllers: changes of planes go to their queues, workers take keys and run passes.

Workers are one pool for all controllers: so many passes at once, so many of one share, and as a
controller says for itself. Controllers take turns, and inside one its shares do. Queues fill on
every replica, so that a new leader knows what to look at; passes run only inside `run`, which
belongs under the Lease. Stopping takes no more keys, lets what is in flight end for a while, and
then aborts it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_operator_kit import measures as names
from compute_operator_kit.apply.desk import Means
from compute_operator_kit.cache import Change
from compute_operator_kit.clock import ZERO, Random
from compute_operator_kit.controller import Controller
from compute_operator_kit.errors import InvariantError
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.lending import run_with_bodies
from compute_operator_kit.logs import bound_keys
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.planes import Plane
from compute_operator_kit.reconcile import Judgement, NoSpans, Pass, Spans, Verdict, judge_pass
from compute_operator_kit.station import Station, Surroundings
from compute_operator_kit.workqueue import Priority, Taken

GRACE: Final = timedelta(seconds=8)  # operations.md 2
REPORT_EVERY: Final = timedelta(seconds=5)
REPORTS_APART: Final = timedelta(seconds=1)
# Among many planes that are listed, some page comes every now and then; one that never answers is
# not waited for.
NEXT_PAGE_WITHIN: Final = timedelta(milliseconds=500)
LOOK_WHILE_FILLING: Final = timedelta(milliseconds=100)
PRESSED_FOR: Final = timedelta(milliseconds=250)  # between two passes a worker is free a moment
SORTED_AT_ONCE: Final = 64  # keys of first lists; a few milliseconds' worth


@dataclass(frozen=True, slots=True)
class Workers:
    """Passes at once, in all and of one share."""

    total: int = 32
    per_share: int = 4


@dataclass(frozen=True, slots=True)
class Runtime:
    """What controllers run in."""

    means: Means
    random: Random
    measures: Measures = field(default_factory=NoMeasures)
    spans: Spans = field(default_factory=NoSpans)
    workers: Workers = field(default_factory=Workers)


class Manager:
    """All controllers of one process."""

    def __init__(self, controllers: Iterable[Controller], runtime: Runtime) -> None:
        self._runtime = runtime
        self._means = runtime.means
        self._wake = asyncio.Event()
        around = Surroundings(
            means=runtime.means,
            random=runtime.random,
            wake=self._wake.set,
            note_listing=self._note_listing,
            measures=runtime.measures,
        )
        self._stations = {each.name: Station(each, around) for each in controllers}
        self._turns = list(self._stations.values())
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_share: Counter[str] = Counter()
        self._active: Counter[str] = Counter()
        self._whole: set[PlaneName] = set()  # planes whose caches were complete once
        self._reported_at: timedelta | None = None
        self._owes_report = False
        self._is_stopping = False
        self._listed_at = runtime.means.clock.monotonic()  # when some first list last went on
        self._was_filling = False  # when last asked: whether to ask again soon
        self._begun: deque[timedelta] = deque(maxlen=runtime.workers.total)  # the last passes
        self._pressed_at: timedelta | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = ZERO
        runtime.means.planes.listen(self)

    # what planes tell ------------------------------------------------------------------------

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:
        found = [station.teller(role, kind) for station in self._turns]
        tellers = [teller for teller in found if teller is not None]
        if len(tellers) == 1:
            return tellers[0]

        def tell(change: Change) -> None:
            for teller in tellers:
                teller(change)

        return tell

    def synced(self, plane: Plane, kind: Kind) -> None:
        self._note_listing()
        for station in self._turns:
            station.on_synced(plane, kind)
        engaged = self._means.planes.find(plane.name)
        if engaged is None or not engaged.is_synced:
            self._whole.discard(plane.name)  # a kind that was served is not any more
            return
        if plane.name in self._whole:
            return
        self._whole.add(plane.name)
        for station in self._turns:
            station.on_engaged(plane.name)

    def recovered(self, plane: Plane) -> None:
        for station in self._turns:
            station.on_recovered(plane.name)

    def disengaged(self, plane: Plane) -> None:
        self._whole.discard(plane.name)
        for station in self._turns:
            station.on_disengaged(plane.name)

    # what others may do ----------------------------------------------------------------------

    def wake(self, controller: str, key: ObjectKey, priority: Priority = Priority.FRESH) -> None:
        """Has a key looked at for a reason no watch tells, such as an answer of another service."""
        station = self._stations.get(controller)
        if station is None:
            raise InvariantError(f"waking {key}: there is no controller {controller!r}")
        station.wake(key, priority)

    @property
    def is_pressed(self) -> bool:
        """Whether every worker is busy, or was a moment ago, or as many passes began within one."""
        if len(self._tasks) >= self._runtime.workers.total:
            return True
        if self._pressed_at is None:
            return False
        return self._means.clock.monotonic() - self._pressed_at < PRESSED_FOR

    def stop(self) -> None:
        """Takes no more keys; `run` returns when what is in flight has ended, or was aborted."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Runs passes until stopped; cancelled (the Lease is lost), it aborts what is in
        flight at once.
        """
        for station in self._turns:
            limit = station.controller.workers or self._runtime.workers.total
            self._runtime.measures.gauge(
                names.MAX_CONCURRENT, limit, controller=station.controller.name
            )
        try:
            while not self._is_stopping:
                self._wake.clear()  # first: what arrives from here on is either taken or wakes us
                is_sorted = self._sort_out()
                now = self._means.clock.monotonic()
                self._start_all(now, only_urgent=not is_sorted or self._is_filling(now))
                self._arm(now)
                await (self._wake.wait() if is_sorted else asyncio.sleep(0))
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=GRACE.total_seconds())
        finally:
            self._disarm()
            await self._abort()

    async def _abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _arm(self, now: timedelta) -> None:
        """Wakes the loop for the next timer of a queue, and now and then to report.

        Not for a queue that no worker may serve now: its timer may be over already, and would ring
        without end; a pass that ends wakes the loop by itself. A timer that rings earlier than it
        must is left alone: it costs a round, and setting it anew in every round costs more than all
        such rounds.
        """
        wanted = now + (LOOK_WHILE_FILLING if self._was_filling else REPORT_EVERY)
        if self._owes_report and self._reported_at is not None:
            wanted = min(wanted, self._reported_at + REPORTS_APART)
        for station in filter(self._has_worker, self._turns):
            due = station.queue.next_due()
            if due is not None and due < wanted:
                wanted = due
        if self._timer is not None and self._rings_at <= wanted:
            return
        self._disarm()
        self._rings_at = wanted
        delay = max(ZERO, wanted - now).total_seconds()
        self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._wake.set()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # passes ----------------------------------------------------------------------------------

    def _sort_out(self) -> bool:
        """Finds out who of first lists is behind, a few at a time; whether all are known."""
        left = [station.sort_out(SORTED_AT_ONCE) for station in self._turns]
        return not any(left)

    def _note_listing(self) -> None:
        self._listed_at = self._means.clock.monotonic()

    def _is_filling(self, now: timedelta) -> bool:
        """Whether planes are being listed: until that is over, what is at rest waits. Who is behind
        on the last of them would else wait for everybody on the others.
        """
        is_filling = self._means.planes.starting > 0 and now - self._listed_at < NEXT_PAGE_WITHIN
        self._was_filling = is_filling
        return is_filling

    def _start_all(self, now: timedelta, *, only_urgent: bool) -> None:
        while self._start_one(now, only_urgent=only_urgent):
            pass
        self._report(now)

    def _report(self, now: timedelta) -> None:
        """Now and then, not after every pass: what dashboards show is asked for every few
        seconds, and telling it costs a third of a pass that finds nothing to do.
        """
        is_soon = self._reported_at is not None and now - self._reported_at < REPORTS_APART
        self._owes_report = is_soon
        if is_soon:
            return  # the timer of `_arm` comes back to it
        self._reported_at = now
        for station in self._turns:
            station.report(now)

    def _start_one(self, now: timedelta, *, only_urgent: bool) -> bool:
        """Gives one worker to the first controller, in turn, that has something to do."""
        for place, station in enumerate(self._turns):
            if not station.queue.has_any(now) or not self._has_worker(station):
                continue
            is_held = only_urgent and station.controller.is_behind is not None
            taken = station.take(self._has_room, only_urgent=is_held)
            if taken is not None:
                del self._turns[place]
                self._turns.append(station)
                self._start(station, taken)
                return True
        return False

    def _has_worker(self, station: Station) -> bool:
        if len(self._tasks) >= self._runtime.workers.total:
            return False
        limit = station.controller.workers
        return limit is None or self._active[station.controller.name] < limit

    def _has_room(self, share: str) -> bool:
        return self._in_share[share] < self._runtime.workers.per_share

    def _start(self, station: Station, taken: Taken[ObjectKey]) -> None:
        self._in_share[taken.share] += 1
        self._active[station.controller.name] += 1
        task = asyncio.create_task(self._pass(station, taken), name=f"pass:{taken.key}")
        self._tasks.add(task)
        self._note_begun()

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._in_share[taken.share] -= 1
            if not self._in_share[taken.share]:
                del self._in_share[taken.share]  # tenants come and go
            self._active[station.controller.name] -= 1
            self._wake.set()

        task.add_done_callback(ended)

    def _note_begun(self) -> None:
        now, most = self._means.clock.monotonic(), self._runtime.workers.total
        self._begun.append(now)
        is_rush = len(self._begun) == most and now - self._begun[0] < PRESSED_FOR
        if is_rush or len(self._tasks) >= most:
            self._pressed_at = now

    async def _pass(self, station: Station, taken: Taken[ObjectKey]) -> None:
        controller, key = station.controller, taken.key
        identity = f"{int(self._runtime.random.random() * 2**32):08x}"
        work = Pass(
            caches=self._means.planes,
            session=station.applier.begin(key),
            clock=self._means.clock,
            spans=self._runtime.spans,
            owed=station.take_owed(key),
        )
        began = self._means.clock.monotonic()
        try:
            with (
                bound_keys(controller=controller.name, plane=key.plane, reconcileID=identity),
                self._runtime.spans.reconcile(controller.name, key) as span,
            ):
                judgement = await judge_pass(
                    lambda: run_with_bodies(
                        lambda: controller.reconcile(key, work), work.session, self._means.planes
                    ),
                    station.deadline,
                )
                span.set_outcome(judgement.outcome)
                station.settle(key, judgement)
        finally:
            ended = self._means.clock.monotonic()
            station.end(key, ended)
        self._count(controller, judgement, waited=taken.waited, took=ended - began)

    def _count(
        self, controller: Controller, judgement: Judgement, *, waited: timedelta, took: timedelta
    ) -> None:
        measures, name = self._runtime.measures, controller.name
        seconds = took.total_seconds()
        measures.count(names.RECONCILE_TOTAL, controller=name, result=judgement.verdict)
        measures.observe(names.RECONCILE_SECONDS, seconds, controller=name)
        measures.observe(names.QUEUE_SECONDS, waited.total_seconds(), name=name, controller=name)
        measures.observe(names.QUEUE_WORK_SECONDS, seconds, name=name, controller=name)
        if judgement.errors:
            measures.count(names.QUEUE_RETRIES, name=name, controller=name)
        if judgement.verdict is Verdict.ERROR:
            measures.count(names.RECONCILE_ERRORS, controller=name)
        if judgement.is_terminal:
            measures.count(names.RECONCILE_TERMINAL_ERRORS, controller=name)
        if judgement.is_bug:
            measures.count(names.RECONCILE_PANICS, controller=name)
