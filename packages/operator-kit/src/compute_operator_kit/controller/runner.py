"""The runner of one controller: its workqueue, blocked and failed keys, and deferred writes.

It decides whether a key may be reconciled now and when it is requeued. A key that may not run waits
for one event (`blocked_keys.py`) and does not poll; polling keys of a plane that is away would keep
all workers busy. `manager.py` runs the reconciles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from compute_operator_kit.apply.applier import Applier
from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.apply.write_expectations import AwaitedWrite, WriteExpectations
from compute_operator_kit.cache.lister import Change
from compute_operator_kit.controller.blocked_keys import BlockedKeys, Cache
from compute_operator_kit.controller.failed_keys import FailedKeys
from compute_operator_kit.controller.needed_caches import find_incomplete
from compute_operator_kit.controller.reconcile import ReconcileOutcome, ResultLabel, call_safely
from compute_operator_kit.controller.spec import RESYNC_JITTER, Controller, DroppedChange, Mapper
from compute_operator_kit.controller.workqueue import FairQueue, Priority, QueuedKey
from compute_operator_kit.core import metrics as names
from compute_operator_kit.core.backoff import Retry, plan_retry
from compute_operator_kit.core.clock import ZERO, Random
from compute_operator_kit.core.errors import (
    BreakerOpenError,
    ReconcileError,
    UnavailableError,
)
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.core.objects import BodyLeftOutError
from compute_operator_kit.core.timeouts import Deadline
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import soonest
from compute_operator_kit.planes.engaged_plane import EngagedPlane, Plane
from compute_operator_kit.planes.registry import SINGLE_ROLES, ChangeHandler

NOTHING_DEFERRED: Final = Plan()
MOST_CHANGES: Final = 16  # while one reconcile runs; more than it writes to watched objects


@dataclass(frozen=True, slots=True)
class RunnerDeps:
    """Dependencies of a `ControllerRunner`."""

    apply: ApplyDeps
    random: Random
    notify: Callable[[], None]  # a key was added to the queue
    note_listing: Callable[[], None] = lambda: None  # a first list progresses
    measures: MetricsPort = field(default_factory=NoMetrics)


class ControllerRunner:
    """Queue, write expectations and failures of one controller."""

    def __init__(self, controller: Controller, deps: RunnerDeps) -> None:
        self.controller = controller
        self.queue: FairQueue[ObjectKey] = FairQueue(controller.rate_limit)
        self.deadline = Deadline(controller.deadline.total_seconds())
        self._resync = controller.resync // timedelta(microseconds=1)
        self._deps = deps
        self._planes = deps.apply.planes
        self._clock = deps.apply.clock
        self._expectations = WriteExpectations(self._planes.find_store)
        self.applier = Applier(deps.apply, controller.owner, self._expectations)
        self._failed = FailedKeys(controller.retry)
        self._blocked = BlockedKeys()
        self._unsorted: dict[ObjectKey, None] = {}  # of first lists: may be out of date
        # Writes that the last reconcile of a key deferred, until an event enqueues the key.
        self._deferred: dict[ObjectKey, Plan] = {}
        # Changes of keys that are being reconciled; compared with its writes when that has ended.
        self._changes: dict[ObjectKey, list[tuple[Change, Priority]]] = {}
        self._added = 0

    # enqueueing ------------------------------------------------------------------------------

    def enqueue(self, key: ObjectKey, priority: Priority = Priority.HIGH) -> None:
        """Adds a key to the queue; a key that is in it already is reconciled once."""
        self._deferred.pop(key, None)
        self._add(key, priority)

    def _add(self, key: ObjectKey, priority: Priority = Priority.HIGH) -> None:
        if self.queue.is_ready(key, priority):
            return  # most events of a burst, and all events of a replica that does not lead
        if self._planes.find(key.plane) is None:
            return  # `fairness_key` may read that plane's caches; the next engage lists all again
        fairness_key = self.controller.fairness_key(key, self._planes)
        now = self._clock.monotonic()
        if self.queue.add(key, fairness_key, now=now, priority=priority):
            self._added += 1
            self._deps.notify()

    def change_handler(self, role: Role, kind: Kind) -> ChangeHandler | None:
        """The function to call for changes of this kind; None if the controller watches none."""
        mappers = [w.map for w in self.controller.watches if w.role is role and w.kind == kind]
        if not mappers:
            return None

        def handle_change(change: Change) -> None:
            priority = Priority.HIGH
            if change.is_initial:
                priority = Priority.LOW
                self._deps.note_listing()
            for mapper in mappers:
                call_safely(self.controller.name, self._map, mapper, change, priority)

        return handle_change

    def _map(self, mapper: Mapper, change: Change, priority: Priority) -> None:
        for key in dict.fromkeys(mapper(change, self._planes)):  # a write is recognised once
            if isinstance(key, DroppedChange):
                self._count_dropped(key)
            elif self.queue.is_processing(key):
                self._note_change(key, change, priority)
            elif not self._expectations.recognise(key, change):
                self.enqueue(key, priority)

    def _note_change(self, key: ObjectKey, change: Change, priority: Priority) -> None:
        """Keeps a change of a key that is being reconciled: it may be a write of that reconcile,
        because response and watch event arrive in either order.
        """
        changes = self._changes.setdefault(key, [])
        if len(changes) < MOST_CHANGES:
            # Only versions are compared; sixteen bodies per key would take too much memory.
            changes.append((change.without_bodies(), priority))
        else:
            self.enqueue(key, priority)

    def _count_dropped(self, dropped: DroppedChange) -> None:
        if self.controller.dropped_metric:
            self._deps.measures.count(
                self.controller.dropped_metric,
                controller=self.controller.name,
                reason=dropped.reason,
            )

    def on_synced(self, plane: Plane, kind: Kind) -> None:
        """A cache became complete, its first list was tried, or it was closed: keys that waited for
        it are enqueued.
        """
        for cache in ((plane.name, kind), (plane.role, kind)):
            for key, priority in self._blocked.take_unsynced(cache).items():
                self.enqueue(key, priority)

    def enqueue_on_engage(self, plane: PlaneName) -> None:
        """All caches of a plane are complete: enqueues the controller's keys of it."""

        def enqueue_keys() -> None:
            keys = tuple(self.controller.keys_on_engage(plane, self._planes))
            self._enqueue_all(keys, Priority.LOW)
            self._unsorted.update(dict.fromkeys(keys))

        call_safely(self.controller.name, enqueue_keys)
        engaged = self._planes.find(plane)
        if engaged is not None and engaged.plane.role in SINGLE_ROLES:
            # Keys of other planes are compared with objects of this one.
            self._unsorted.update(dict.fromkeys(self.queue.low_priority_keys()))
        if self.controller.is_out_of_date is None:
            self._unsorted.clear()

    def sort_by_staleness(self, at_most: int) -> bool:
        """Raises the priority of out-of-date keys of first lists; whether more keys are left.

        At most `at_most` per call: the end of a hub's first list adds ten thousand keys.
        """
        while self._unsorted and at_most:
            key, _ = self._unsorted.popitem()
            if self.queue.is_low_priority(key):
                at_most -= 1
                call_safely(self.controller.name, self._promote_if_out_of_date, key)
        return bool(self._unsorted)

    def _promote_if_out_of_date(self, key: ObjectKey) -> None:
        engaged, is_out_of_date = self._planes.find(key.plane), self.controller.is_out_of_date
        if engaged is None or is_out_of_date is None or self._find_missing(engaged) is not None:
            return
        try:
            is_promoted = is_out_of_date(key, self._planes)
        except BodyLeftOutError:
            is_promoted = False  # only a reconcile reads it from the plane
        if is_promoted:
            self.enqueue(key, Priority.OUT_OF_DATE)

    def on_recovered(self, plane: PlaneName) -> None:
        """A plane answers again: its parked keys are enqueued, after their own back-off."""
        now = self._clock.monotonic()
        for key, due in self._blocked.take_parked(plane).items():
            if due <= now:
                self.enqueue(key)
            elif self._planes.find(key.plane) is not None:
                # A plane that answers reads and fails writes must not reset the back-off.
                self.queue.add_at(key, self.controller.fairness_key(key, self._planes), due=due)
                self._deps.notify()

    def on_write_permitted(self, plane: PlaneName) -> None:
        """A suspended project gets one write: one parked key makes it."""
        self._enqueue_all(self._blocked.take_suspended(plane, 1), Priority.HIGH)

    def on_resumed(self, plane: PlaneName) -> None:
        """A project accepts writes again: its parked keys are enqueued."""
        self._enqueue_all(self._blocked.take_suspended(plane), Priority.HIGH)

    def on_disengaged(self, plane: PlaneName) -> None:
        """A plane is gone: its keys are dropped; keys of other planes that waited for it run."""

        def is_gone(key: ObjectKey) -> bool:
            return key.plane == plane

        self.queue.forget(is_gone)
        self.applier.forget(is_gone)
        self._failed.forget(is_gone)
        for key in [key for key in self._deferred if is_gone(key)]:
            del self._deferred[key]
        self._expectations.forget(is_gone)
        self._enqueue_all(self._blocked.leave(plane, is_gone), Priority.HIGH)

    def _enqueue_all(self, keys: Iterable[ObjectKey], priority: Priority) -> None:
        for key in keys:
            self.enqueue(key, priority)

    # dequeueing ------------------------------------------------------------------------------

    def get(
        self, may_run: Callable[[str], bool], *, only_urgent: bool = False
    ) -> QueuedKey[ObjectKey] | None:
        """The next key that may be reconciled now; keys that may not are blocked or dropped."""
        while True:
            now = self._clock.monotonic()
            queued = self.queue.get(now, may_run, only_urgent=only_urgent)
            if queued is None or self._may_reconcile(queued.key, queued.priority):
                return queued
            self.queue.done(queued.key, now=now, was_reconciled=False)

    def take_deferred(self, key: ObjectKey) -> Plan:
        """Writes that the last reconcile deferred; none if the key was enqueued since."""
        return self._deferred.pop(key, NOTHING_DEFERRED)

    def _may_reconcile(self, key: ObjectKey, priority: Priority) -> bool:
        engaged = self._planes.find(key.plane)
        if engaged is None:
            return False  # dropped: the plane's next engage lists everything again
        missing = self._find_missing(engaged)
        if missing is not None:
            self._blocked.await_cache(missing, key, priority)
            if not isinstance(missing[0], Role):
                self._planes.require(missing[0], missing[1])
            return False
        if engaged.lane.is_open:
            self._blocked.park_unless_parked(key.plane, key, ZERO)
            return False
        awaited = self._expectations.find_unmet(key)
        if awaited is not None:
            self._deps.measures.count(names.STALE_SKIPS, controller=self.controller.name)
            self._hold(key, awaited)
            return False
        return True

    def _find_missing(self, engaged: EngagedPlane) -> Cache | None:
        return find_incomplete(self.controller.watches, engaged, self._planes)

    def _hold(self, key: ObjectKey, awaited: AwaitedWrite) -> None:
        """Blocks the key until the store has seen its write; added again, it still waits once."""
        if not self._blocked.hold(key):
            return

        def release() -> None:
            self._blocked.release(key)
            self._add(key)  # not `enqueue`: an own write does not supersede deferred writes

        awaited.store.when_met(awaited.expectation, release)

    # after a reconcile -----------------------------------------------------------------------

    def end(self, key: ObjectKey, now: timedelta) -> None:
        """A reconcile has ended: the key may be taken again, at once if it was enqueued since."""
        self.queue.done(key, now=now)
        for change, priority in self._changes.pop(key, ()):
            if not self._expectations.recognise(key, change):
                self.enqueue(key, priority)

    def finish(self, key: ObjectKey, outcome: ReconcileOutcome) -> None:
        """Remembers the failures of a reconcile and requeues its key."""
        if self._planes.find(key.plane) is None:
            self._failed.succeed(key)
            self._expectations.clear(key)
            return
        self._park_suspended(key, outcome)
        wait = outcome.wait
        if outcome.errors:
            retry = self._plan_retry(key, outcome)
            wait = soonest((wait, retry))
            if retry is None and outcome.label is ResultLabel.SUCCESS:
                return  # all planes of its errors are gone: no retry
        elif not outcome.is_refused:  # a write that was refused before and not retried still fails
            self._failed.succeed(key)
        if wait is None and self._has_ended(key):
            return
        if outcome.deferred and not self.queue.is_dirty(key):
            self._deferred[key] = outcome.deferred
        self._requeue(key, wait)

    def _park_suspended(self, key: ObjectKey, outcome: ReconcileOutcome) -> None:
        """Parks the key for the projects that refused its writes. A key that needed no write did
        not probe: the next one does.
        """
        for plane in self._blocked.forget_suspended(key):
            engaged = self._planes.find(plane)
            if engaged is not None and engaged.lane.suspension.has_permit:
                self.on_write_permitted(plane)
        for name in outcome.suspended:
            engaged = self._planes.find(PlaneName(name))
            if engaged is None:
                continue
            if engaged.lane.suspension.is_suspended:
                self._blocked.suspend(engaged.plane.name, key)
            else:  # it resumed while this reconcile ran
                self.enqueue(key)

    def _has_ended(self, key: ObjectKey) -> bool:
        """Whether the key's object is gone. Such a key is not requeued: an event enqueues it again,
        and keys of deleted objects would pile up.
        """
        store = self._planes.find_store(key.plane, key.kind)
        if store is None or not store.is_synced:
            return False
        return store.entry(key.namespace, key.name) is None

    def _plan_retry(self, key: ObjectKey, outcome: ReconcileOutcome) -> timedelta | None:
        chance = self._deps.random.random()
        attempts = self._failed.attempts_of(key)
        retry = self._failed.fail(key, outcome, chance)
        near = [error for error in outcome.errors if not self._park(key, error, retry)]
        if len(near) == len(outcome.errors):
            return retry.delay
        # Errors of planes that answer are retried without waiting for the parked plane.
        return plan_retry(near, attempts, self.controller.retry, chance).delay if near else None

    def _park(self, key: ObjectKey, error: ReconcileError, retry: Retry) -> bool:
        """Parks the key if the error is from a plane that does not answer; whether it was parked.

        One probe serves all parked keys: the plane's answer enqueues them, not a timer for each.
        """
        away = self._planes.find(PlaneName(error.plane))
        if not isinstance(error, UnavailableError) or away is None or not away.lane.is_open:
            return False
        now = self._clock.monotonic()
        if isinstance(error, BreakerOpenError):  # not sent: the back-off does not grow
            self._blocked.park_unless_parked(away.plane.name, key, now)
        else:
            self._blocked.park(away.plane.name, key, now + (retry.delay or ZERO))
        return True

    def _requeue(self, key: ObjectKey, wait: timedelta | None) -> None:
        chance = 2.0 * self._deps.random.random() - 1.0
        # In whole microseconds: multiplying a `timedelta` by a float costs as much as the rest.
        resync = timedelta(0, 0, int(self._resync * (1.0 + RESYNC_JITTER * chance)))
        is_soon = wait is not None and wait < resync
        self.queue.add_at(
            key,
            self.controller.fairness_key(key, self._planes),
            due=self._clock.monotonic() + (wait if wait is not None and is_soon else resync),
            priority=Priority.HIGH if is_soon else Priority.LOW,
        )

    # metrics ---------------------------------------------------------------------------------

    def update_gauges(self, now: timedelta) -> None:
        """Sets the queue's metrics; not on every change, because changes are many."""
        labels = {"name": self.controller.name, "controller": self.controller.name}
        measures = self._deps.measures
        ages = [(now - since).total_seconds() for _, since in self.queue.processing()]
        measures.gauge(names.QUEUE_DEPTH, len(self.queue), **labels)
        measures.gauge(names.QUEUE_UNFINISHED_SECONDS, sum(ages), **labels)
        measures.gauge(names.QUEUE_LONGEST_SECONDS, max(ages, default=0.0), **labels)
        measures.gauge(names.ACTIVE_WORKERS, len(ages), controller=self.controller.name)
        if self._added:
            measures.count(names.QUEUE_ADDS, self._added, **labels)
            self._added = 0
