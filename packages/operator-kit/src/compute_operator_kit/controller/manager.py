"""The controller manager: it enqueues keys for watch events and runs reconciles in one worker pool.

The pool bounds reconciles in total, per fairness key and per controller, so that no controller and
no tenant takes all workers; controllers take turns, and so do the fairness keys inside one. Queues
fill on every replica, so that a new leader has its keys; reconciles run only inside `run`, under
the Lease. A stop takes no more keys, waits a moment for running reconciles and then cancels them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from typing_extensions import override

from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.controller.missing_bodies import run_with_bodies
from compute_operator_kit.controller.reconcile import (
    NoSpans,
    ReconcileContext,
    ReconcileOutcome,
    ResultLabel,
    Spans,
    run_reconcile,
)
from compute_operator_kit.controller.runner import ControllerRunner, RunnerDeps
from compute_operator_kit.controller.spec import Controller
from compute_operator_kit.controller.workqueue import Priority, QueuedKey
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.clock import ZERO, Random
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import ChangeHandler, PlaneListener, join_handlers
from compute_operator_kit.telemetry.logs import bound_keys

GRACE: Final = timedelta(seconds=8)  # operations.md 2
GAUGES_EVERY: Final = timedelta(seconds=5)
GAUGES_APART: Final = timedelta(seconds=1)
# While many planes are listed, pages arrive all the time; a plane that never answers must not delay
# the reconciles of others.
NEXT_PAGE_WITHIN: Final = timedelta(milliseconds=500)
CHECK_WHILE_LISTING: Final = timedelta(milliseconds=100)
BUSY_FOR: Final = timedelta(milliseconds=250)  # a worker is free between two reconciles
SORTED_AT_ONCE: Final = 64  # keys of first lists; a few milliseconds of work


@dataclass(frozen=True, slots=True)
class Workers:
    """Concurrent reconciles, in total and of one fairness key."""

    total: int = 32
    per_fairness_key: int = 4


@dataclass(frozen=True, slots=True)
class ManagerDeps:
    """Dependencies of a `Manager`."""

    deps: ApplyDeps
    random: Random
    measures: MetricsPort = field(default_factory=NoMetrics)
    spans: Spans = field(default_factory=NoSpans)
    workers: Workers = field(default_factory=Workers)


class Manager(PlaneListener):
    """All controllers of one process."""

    def __init__(self, controllers: Iterable[Controller], runtime: ManagerDeps) -> None:
        self._runtime = runtime
        self._deps = runtime.deps
        self._has_work = asyncio.Event()
        runner_deps = RunnerDeps(
            apply=runtime.deps,
            random=runtime.random,
            notify=self._has_work.set,
            note_listing=self._note_listing,
            measures=runtime.measures,
        )
        self._runners = {each.name: ControllerRunner(each, runner_deps) for each in controllers}
        self._rotation = list(self._runners.values())
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: Counter[str] = Counter()
        self._active: Counter[str] = Counter()
        self._synced_planes: set[PlaneName] = set()  # planes with complete caches
        self._gauges_at: timedelta | None = None
        self._has_stale_gauges = False
        self._is_stopping = False
        self._listed_at = runtime.deps.clock.monotonic()  # when a first list last progressed
        self._was_listing = False  # at the last check: whether to check again soon
        self._begun: deque[timedelta] = deque(maxlen=runtime.workers.total)  # last reconciles
        self._busy_at: timedelta | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = ZERO
        runtime.deps.planes.listen(self)

    # plane events ----------------------------------------------------------------------------

    @override
    def change_handler(self, role: Role, kind: Kind) -> ChangeHandler:
        return join_handlers(runner.change_handler(role, kind) for runner in self._rotation)

    @override
    def synced(self, plane: Plane, kind: Kind) -> None:
        self._note_listing()
        self._release(plane, kind)
        self._enqueue_if_synced(plane)

    @override
    def opened(self, plane: Plane, kind: Kind) -> None:
        self._synced_planes.discard(plane.name)  # when it is complete, keys are enqueued again

    @override
    def attempted(self, plane: Plane, kind: Kind) -> None:
        self._release(plane, kind)

    @override
    def closed(self, plane: Plane, kind: Kind) -> None:
        self._release(plane, kind)  # a key that still needs it opens it again
        self._enqueue_if_synced(plane)

    def _release(self, plane: Plane, kind: Kind) -> None:
        for runner in self._rotation:
            runner.on_synced(plane, kind)

    def _enqueue_if_synced(self, plane: Plane) -> None:
        """Enqueues the keys of a plane when all its open caches have become complete."""
        engaged = self._deps.planes.find(plane.name)
        if engaged is None or not engaged.is_synced:
            self._synced_planes.discard(plane.name)  # a kind that was served is not any more
            return
        if plane.name in self._synced_planes:
            return
        self._synced_planes.add(plane.name)
        for runner in self._rotation:
            runner.enqueue_on_engage(plane.name)

    @override
    def recovered(self, plane: Plane) -> None:
        for runner in self._rotation:
            runner.on_recovered(plane.name)

    @override
    def write_permitted(self, plane: Plane) -> None:
        for runner in self._rotation:
            runner.on_write_permitted(plane.name)

    @override
    def resumed(self, plane: Plane) -> None:
        for runner in self._rotation:
            runner.on_resumed(plane.name)

    @override
    def disengaged(self, plane: Plane) -> None:
        self._synced_planes.discard(plane.name)
        for runner in self._rotation:
            runner.on_disengaged(plane.name)

    # queue and workers -----------------------------------------------------------------------

    def has_controller(self, name: str) -> bool:
        return name in self._runners

    def enqueue(self, controller: str, key: ObjectKey, priority: Priority = Priority.HIGH) -> None:
        """Enqueues a key for a reason without a watch event, such as an answer of a service."""
        runner = self._runners.get(controller)
        if runner is None:
            raise InvariantError(f"waking {key}: there is no controller {controller!r}")
        runner.enqueue(key, priority)

    @property
    def is_busy(self) -> bool:
        """Whether all workers are busy, or were within `BUSY_FOR`, or as many reconciles began in
        that time.
        """
        if len(self._tasks) >= self._runtime.workers.total:
            return True
        if self._busy_at is None:
            return False
        return self._deps.clock.monotonic() - self._busy_at < BUSY_FOR

    def stop(self) -> None:
        """Takes no more keys; `run` returns when running reconciles have ended or are cancelled."""
        self._is_stopping = True
        self._has_work.set()

    async def run(self) -> None:
        """Runs reconciles until `stop`; when cancelled (the Lease is lost), it cancels running ones
        at once.
        """
        for runner in self._rotation:
            limit = runner.controller.workers or self._runtime.workers.total
            self._runtime.measures.gauge(
                names.MAX_CONCURRENT, limit, controller=runner.controller.name
            )
        try:
            while not self._is_stopping:
                self._has_work.clear()  # first: a key added from here on is taken or sets it again
                is_sorted = self._sort_by_staleness()
                now = self._deps.clock.monotonic()
                self._start_all(now, only_urgent=not is_sorted or self._is_listing(now))
                self._set_timer(now)
                await (self._has_work.wait() if is_sorted else asyncio.sleep(0))
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=GRACE.total_seconds())
        finally:
            self._cancel_timer()
            await self._abort()

    async def _abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _set_timer(self, now: timedelta) -> None:
        """Runs the loop again at the next due time of a queue, and every few seconds for gauges.

        A queue without a free worker is left out: its timer may be over already, and the loop would
        spin; a reconcile that ends runs the loop anyway. A timer that fires early is kept: one
        extra round costs less than setting the timer in every round.
        """
        due_at = now + (CHECK_WHILE_LISTING if self._was_listing else GAUGES_EVERY)
        if self._has_stale_gauges and self._gauges_at is not None:
            due_at = min(due_at, self._gauges_at + GAUGES_APART)
        for runner in filter(self._has_worker, self._rotation):
            due = runner.queue.next_due()
            if due is not None and due < due_at:
                due_at = due
        if self._timer is not None and self._fires_at <= due_at:
            return
        self._cancel_timer()
        self._fires_at = due_at
        delay = max(ZERO, due_at - now).total_seconds()
        self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._has_work.set()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # reconciles ------------------------------------------------------------------------------

    def _sort_by_staleness(self) -> bool:
        """Sorts a few keys of first lists by staleness; whether none is left to sort."""
        left = [runner.sort_by_staleness(SORTED_AT_ONCE) for runner in self._rotation]
        return not any(left)

    def _note_listing(self) -> None:
        self._listed_at = self._deps.clock.monotonic()

    def _is_listing(self, now: timedelta) -> bool:
        """Whether planes are being listed. Until that ends, only urgent keys run: an out-of-date
        key of the last plane would otherwise wait for all unchanged keys of the others.
        """
        is_listing = self._deps.planes.starting > 0 and now - self._listed_at < NEXT_PAGE_WITHIN
        self._was_listing = is_listing
        return is_listing

    def _start_all(self, now: timedelta, *, only_urgent: bool) -> None:
        while self._start_one(now, only_urgent=only_urgent):
            pass
        self._update_gauges(now)

    def _update_gauges(self, now: timedelta) -> None:
        """At most once per `GAUGES_APART`: a scrape comes every few seconds, and setting gauges
        costs a third of a reconcile that finds nothing to do.
        """
        is_soon = self._gauges_at is not None and now - self._gauges_at < GAUGES_APART
        self._has_stale_gauges = is_soon
        if is_soon:
            return  # `_set_timer` runs the loop again for it
        self._gauges_at = now
        for runner in self._rotation:
            runner.update_gauges(now)

    def _start_one(self, now: timedelta, *, only_urgent: bool) -> bool:
        """Gives one worker to the first controller, in turn, that has a key to reconcile."""
        for position, runner in enumerate(self._rotation):
            if not runner.queue.has_any(now) or not self._has_worker(runner):
                continue
            is_held = only_urgent and runner.controller.is_out_of_date is not None
            queued = runner.get(self._has_room, only_urgent=is_held)
            if queued is not None:
                del self._rotation[position]
                self._rotation.append(runner)
                self._start(runner, queued)
                return True
        return False

    def _has_worker(self, runner: ControllerRunner) -> bool:
        if len(self._tasks) >= self._runtime.workers.total:
            return False
        limit = runner.controller.workers
        return limit is None or self._active[runner.controller.name] < limit

    def _has_room(self, fairness_key: str) -> bool:
        return self._running[fairness_key] < self._runtime.workers.per_fairness_key

    def _start(self, runner: ControllerRunner, queued: QueuedKey[ObjectKey]) -> None:
        self._running[queued.fairness_key] += 1
        self._active[runner.controller.name] += 1
        task = asyncio.create_task(self._reconcile(runner, queued), name=f"pass:{queued.key}")
        self._tasks.add(task)
        self._note_begun()

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._running[queued.fairness_key] -= 1
            if not self._running[queued.fairness_key]:
                del self._running[queued.fairness_key]  # or keys of tenants that are gone pile up
            self._active[runner.controller.name] -= 1
            self._has_work.set()

        task.add_done_callback(ended)

    def _note_begun(self) -> None:
        now, total = self._deps.clock.monotonic(), self._runtime.workers.total
        self._begun.append(now)
        is_rush = len(self._begun) == total and now - self._begun[0] < BUSY_FOR
        if is_rush or len(self._tasks) >= total:
            self._busy_at = now

    async def _reconcile(self, runner: ControllerRunner, queued: QueuedKey[ObjectKey]) -> None:
        controller, key = runner.controller, queued.key
        identity = f"{int(self._runtime.random.random() * 2**32):08x}"
        work = ReconcileContext(
            caches=self._deps.planes,
            session=runner.applier.begin(key),
            clock=self._deps.clock,
            spans=self._runtime.spans,
            deferred=runner.take_deferred(key),
        )
        began = self._deps.clock.monotonic()
        try:
            with (
                bound_keys(controller=controller.name, plane=key.plane, reconcileID=identity),
                self._runtime.spans.reconcile(controller.name, key) as span,
            ):
                outcome = await run_reconcile(
                    lambda: run_with_bodies(
                        lambda: controller.reconcile(key, work), work.session, self._deps.planes
                    ),
                    runner.deadline,
                )
                span.set_outcome(outcome.outcome)
                runner.finish(key, outcome)
        finally:
            ended = self._deps.clock.monotonic()
            runner.end(key, ended)
        self._count(controller, outcome, waited=queued.waited, took=ended - began)

    def _count(
        self,
        controller: Controller,
        outcome: ReconcileOutcome,
        *,
        waited: timedelta,
        took: timedelta,
    ) -> None:
        measures, name = self._runtime.measures, controller.name
        seconds = took.total_seconds()
        measures.count(names.RECONCILE_TOTAL, controller=name, result=outcome.label)
        measures.observe(names.RECONCILE_SECONDS, seconds, controller=name)
        measures.observe(names.QUEUE_SECONDS, waited.total_seconds(), name=name, controller=name)
        measures.observe(names.QUEUE_WORK_SECONDS, seconds, name=name, controller=name)
        if outcome.errors:
            measures.count(names.QUEUE_RETRIES, name=name, controller=name)
        if outcome.label is ResultLabel.ERROR:
            measures.count(names.RECONCILE_ERRORS, controller=name)
        if outcome.is_terminal:
            measures.count(names.RECONCILE_TERMINAL_ERRORS, controller=name)
        if outcome.is_bug:
            measures.count(names.RECONCILE_PANICS, controller=name)
