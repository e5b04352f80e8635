"""One controller at work: its queue, and what is remembered about its keys between passes.

Decides whether a key may be looked at now, and when it is looked at again. One that may not waits
for the event that frees it (`waiting.py`) and does not poll. Passes are run by `manager.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from compute_operator_kit import measures as names
from compute_operator_kit.apply import Applier
from compute_operator_kit.apply.desk import Means
from compute_operator_kit.backoff import Attempts, Retry, plan_retry
from compute_operator_kit.cache import Change
from compute_operator_kit.clock import ZERO, Random
from compute_operator_kit.controller import RESYNC_JITTER, Controller, Dropped, Mapper
from compute_operator_kit.deadlines import Deadline
from compute_operator_kit.errors import (
    BreakerOpenError,
    ForbiddenError,
    ReconcileError,
    RejectedError,
    UnavailableError,
)
from compute_operator_kit.intents import Plan
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.objects import BodyLeftOutError
from compute_operator_kit.outcomes import soonest
from compute_operator_kit.planes import SINGLE_ROLES, Engaged, Plane
from compute_operator_kit.reconcile import Judgement, Verdict, call_safely
from compute_operator_kit.waiting import Cache, Waiting
from compute_operator_kit.workqueue import FairQueue, Priority, Taken
from compute_operator_kit.write_gate import Awaited, WriteGate

logger = logging.getLogger(__name__)

NOTHING_OWED: Final = Plan()
MOST_HEARD: Final = 16  # while one pass runs; more than it writes to objects that wake it


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a station needs of the world around it."""

    means: Means
    random: Random
    wake: Callable[[], None]  # there may be something to take
    note_listing: Callable[[], None] = lambda: None  # a first list goes on
    measures: Measures = field(default_factory=NoMeasures)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What is remembered of a key that failed."""

    attempts: Attempts = field(default_factory=Attempts)
    reason: str = ""  # of the last failure that was logged


class Station:
    """One controller."""

    def __init__(self, controller: Controller, around: Surroundings) -> None:
        self.controller = controller
        self.queue: FairQueue[ObjectKey] = FairQueue(controller.tempo)
        self.deadline = Deadline(controller.deadline.total_seconds())
        self._resync = controller.resync // timedelta(microseconds=1)
        self._around = around
        self._planes = around.means.planes
        self._clock = around.means.clock
        self._gate = WriteGate(self._planes.find_store)
        self.applier = Applier(around.means, controller.writer, self._gate)
        self._troubles: dict[ObjectKey, _Trouble] = {}
        self._waiting = Waiting()
        self._unsorted: dict[ObjectKey, None] = {}  # of first lists: some may be behind
        # What the last pass on a key held back, as long as nothing has woken the key since.
        self._owed: dict[ObjectKey, Plan] = {}
        # Of keys in work; judged when their pass has ended.
        self._heard: dict[ObjectKey, list[tuple[Change, Priority]]] = {}
        self._added = 0

    # waking ----------------------------------------------------------------------------------

    def wake(self, key: ObjectKey, priority: Priority = Priority.FRESH) -> None:
        """Has a key looked at; as often as one likes, it is done once."""
        self._owed.pop(key, None)
        self._add(key, priority)

    def _add(self, key: ObjectKey, priority: Priority = Priority.FRESH) -> None:
        if self._planes.find(key.plane) is None:
            return  # its share may ask that plane's caches; an engagement lists everything again
        share = self.controller.share(key, self._planes)
        now = self._clock.monotonic()
        if self.queue.add(key, share, now=now, priority=priority):
            self._added += 1
            self._around.wake()

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None] | None:
        """Whom to call for changes of this kind; None if they do not concern this controller."""
        mappers = [w.map for w in self.controller.watches if w.role is role and w.kind == kind]
        if not mappers:
            return None

        def tell(change: Change) -> None:
            priority = Priority.FRESH
            if change.is_initial:
                priority = Priority.BACKGROUND
                self._around.note_listing()
            for mapper in mappers:
                call_safely(self.controller.name, self._map, mapper, change, priority)

        return tell

    def _map(self, mapper: Mapper, change: Change, priority: Priority) -> None:
        for found in dict.fromkeys(mapper(change, self._planes)):  # a write is recognised once
            if isinstance(found, Dropped):
                self._count_dropped(found)
            elif self.queue.is_in_work(found):
                self._hear(found, change, priority)
            elif not self._gate.recognise(found, change):
                self.wake(found, priority)

    def _hear(self, key: ObjectKey, change: Change, priority: Priority) -> None:
        """A change while its key is in work may be what this very pass writes: the answer to a
        write and the write itself come back in either order.
        """
        heard = self._heard.setdefault(key, [])
        if len(heard) < MOST_HEARD:
            # Versions are compared, and nothing else: sixteen bodies of each key would add up.
            heard.append((change.without_bodies(), priority))
        else:
            self.wake(key, priority)

    def _count_dropped(self, dropped: Dropped) -> None:
        if self.controller.dropped_metric:
            self._around.measures.count(
                self.controller.dropped_metric,
                controller=self.controller.name,
                reason=dropped.reason,
            )

    def on_synced(self, plane: Plane, kind: Kind) -> None:
        """A cache became complete: what waited for it may go on, or finds the next one it needs."""
        for cache in ((plane.name, kind), (plane.role, kind)):
            self._wake_all(self._waiting.take_unsynced(cache), Priority.BACKGROUND)

    def on_engaged(self, plane: PlaneName) -> None:
        """All caches of a plane are complete."""

        def wake_all() -> None:
            keys = tuple(self.controller.on_engaged(plane, self._planes))
            self._wake_all(keys, Priority.BACKGROUND)
            self._unsorted.update(dict.fromkeys(keys))

        call_safely(self.controller.name, wake_all)
        engaged = self._planes.find(plane)
        if engaged is not None and engaged.plane.role in SINGLE_ROLES:
            # Keys of other planes are compared with what this one holds.
            self._unsorted.update(dict.fromkeys(self.queue.patient()))
        if self.controller.is_behind is None:
            self._unsorted.clear()

    def sort_out(self, at_most: int) -> bool:
        """Has keys of first lists overtake where something is to be done; whether more are left.

        So many at a time: a hub that is complete at last tells about ten thousand.
        """
        while self._unsorted and at_most:
            key, _ = self._unsorted.popitem()
            if self.queue.is_patient(key):
                at_most -= 1
                call_safely(self.controller.name, self._hasten, key)
        return bool(self._unsorted)

    def _hasten(self, key: ObjectKey) -> None:
        engaged, is_behind = self._planes.find(key.plane), self.controller.is_behind
        if engaged is None or is_behind is None or self._find_incomplete(engaged) is not None:
            return
        try:
            hastens = is_behind(key, self._planes)
        except BodyLeftOutError:
            hastens = False  # only a pass asks for it
        if hastens:
            self.wake(key, Priority.BEHIND)

    def on_recovered(self, plane: PlaneName) -> None:
        """A plane answers again."""
        now = self._clock.monotonic()
        for key, due in self._waiting.take_parked(plane).items():
            if due <= now:
                self.wake(key)
            elif self._planes.find(key.plane) is not None:
                # A plane that answers reads and fails writes must not undo the back-off.
                self.queue.add_at(key, self.controller.share(key, self._planes), due=due)
                self._around.wake()

    def on_disengaged(self, plane: PlaneName) -> None:
        """A plane is gone: its keys are dropped, and what waited for it looks again without it."""

        def is_gone(key: ObjectKey) -> bool:
            return key.plane == plane

        self.queue.forget(is_gone)
        self.applier.forget(is_gone)
        for key in [key for key in self._troubles if is_gone(key)]:
            del self._troubles[key]
        for key in [key for key in self._owed if is_gone(key)]:
            del self._owed[key]
        self._gate.forget(is_gone)
        self._wake_all(self._waiting.leave(plane, is_gone), Priority.FRESH)

    def _wake_all(self, keys: Iterable[ObjectKey], priority: Priority) -> None:
        for key in keys:
            self.wake(key, priority)

    # taking ----------------------------------------------------------------------------------

    def take(
        self, may_run: Callable[[str], bool], *, only_urgent: bool = False
    ) -> Taken[ObjectKey] | None:
        """The next key that may really be looked at now; those that may not are put aside."""
        while True:
            now = self._clock.monotonic()
            taken = self.queue.take(now, may_run, only_urgent=only_urgent)
            if taken is None or self._may_be_looked_at(taken.key):
                return taken
            self.queue.done(taken.key, now=now, was_looked_at=False)

    def take_owed(self, key: ObjectKey) -> Plan:
        """What the pass before held back; nothing where something has changed since."""
        return self._owed.pop(key, NOTHING_OWED)

    def _may_be_looked_at(self, key: ObjectKey) -> bool:
        engaged = self._planes.find(key.plane)
        if engaged is None:
            return False  # dropped: the plane's next engagement lists everything again
        missing = self._find_incomplete(engaged)
        if missing is not None:
            self._waiting.await_cache(missing, key)
            return False
        if engaged.lane.is_open:
            self._waiting.park_unless_parked(key.plane, key, ZERO)
            return False
        awaited = self._gate.ensure_ready(key)
        if awaited is not None:
            self._around.measures.count(names.STALE_SKIPS, controller=self.controller.name)
            self._hold(key, awaited)
            return False
        return True

    def _hold(self, key: ObjectKey, awaited: Awaited) -> None:
        """Until the store has seen it; a key woken a thousand times meanwhile still waits once."""
        if not self._waiting.hold(key):
            return

        def release() -> None:
            self._waiting.release(key)
            self._add(key)  # what has come is ours, and the pass that wrote it counted it in

        awaited.store.when_met(awaited.expectation, release)

    def _find_incomplete(self, engaged: Engaged) -> Cache | None:
        """The first cache that a pass on a key of this plane reads and that is not complete.

        Those of its own plane, and those of planes that exist once. Of the many planes of another
        role a pass reads one or none; which, only the pass knows, and an incomplete cache answers
        `Unreadable` there.
        """
        for watch in self.controller.watches:
            if not watch.is_needed:
                continue
            if watch.role is engaged.plane.role:
                places: Iterable[Engaged] = (engaged,)
            elif watch.role in SINGLE_ROLES:
                places = self._planes.engaged(watch.role)
                if not places:
                    return (watch.role, watch.kind)
            else:
                continue
            for place in places:
                if not place.is_known(watch.kind):
                    return (place.plane.name, watch.kind)
        return None

    # settling --------------------------------------------------------------------------------

    def end(self, key: ObjectKey, now: timedelta) -> None:
        """A pass is over: the key may be taken again, at once if it has something to look at."""
        self.queue.done(key, now=now)
        for change, priority in self._heard.pop(key, ()):
            if not self._gate.recognise(key, change):
                self.wake(key, priority)

    def settle(self, key: ObjectKey, judgement: Judgement) -> None:
        """A pass ended: remembers what failed and decides when to look again."""
        if self._planes.find(key.plane) is None:
            self._forget(key)
            return
        wait = judgement.wait
        if judgement.errors:
            retry = self._retry_of(key, judgement)
            wait = soonest((wait, retry))
            if retry is None and judgement.verdict is Verdict.SUCCESS:
                return  # every plane it needs is gone: nothing to look at again
        elif not judgement.is_refused:  # what was refused and not tried again is trouble still
            self._troubles.pop(key, None)
        if wait is None and self._has_ended(key):
            return
        if judgement.owed and not self.queue.is_added_again(key):
            self._owed[key] = judgement.owed
        self._look_again(key, wait)

    def _has_ended(self, key: ObjectKey) -> bool:
        """Its object is gone and the pass left nothing to wait for: whatever concerns it again
        brings the key back, and keys that only the past knows would else add up.
        """
        store = self._planes.find_store(key.plane, key.kind)
        if store is None or not store.is_synced:
            return False
        return store.entry(key.namespace, key.name) is None

    def _retry_of(self, key: ObjectKey, judgement: Judgement) -> timedelta | None:
        before = self._troubles.get(key, _Trouble())
        chance = self._around.random.random()
        retry = plan_retry(judgement.errors, before.attempts, self.controller.retry, chance)
        self._log(judgement, before)
        worst = judgement.worst
        reason = worst.reason if worst is not None else ""
        self._troubles[key] = replace(before, attempts=retry.attempts, reason=reason)
        near = [error for error in judgement.errors if not self._is_parked(key, error, retry)]
        if len(near) == len(judgement.errors):
            return retry.delay
        # What else failed is not to wait for the far plane.
        return (
            plan_retry(near, before.attempts, self.controller.retry, chance).delay if near else None
        )

    def _is_parked(self, key: ObjectKey, error: ReconcileError, retry: Retry) -> bool:
        """Puts the key aside for a plane that does not answer.

        One probe for all keys: the plane's answer wakes them, not a timer of each.
        """
        away = self._planes.find(PlaneName(error.plane))
        if not isinstance(error, UnavailableError) or away is None or not away.lane.is_open:
            return False
        now = self._clock.monotonic()
        if isinstance(error, BreakerOpenError):  # not sent, so no reason to wait longer than before
            self._waiting.park_unless_parked(away.plane.name, key, now)
        else:
            self._waiting.park(away.plane.name, key, now + (retry.delay or ZERO))
        return True

    def _look_again(self, key: ObjectKey, wait: timedelta | None) -> None:
        chance = 2.0 * self._around.random.random() - 1.0
        # In whole microseconds: a fraction of a `timedelta` takes as long as the rest of this.
        resync = timedelta(0, 0, int(self._resync * (1.0 + RESYNC_JITTER * chance)))
        is_soon = wait is not None and wait < resync
        self.queue.add_at(
            key,
            self.controller.share(key, self._planes),
            due=self._clock.monotonic() + (wait if wait is not None and is_soon else resync),
            priority=Priority.FRESH if is_soon else Priority.BACKGROUND,
        )

    def _log(self, judgement: Judgement, before: _Trouble) -> None:
        """Once per state of a key, not once per pass; conflicts and pauses are everyday."""
        worst = judgement.worst
        if worst is None or judgement.is_bug:
            return
        level = logging.DEBUG
        if worst.reason != before.reason:
            if isinstance(worst, ForbiddenError):
                level = logging.ERROR
            elif isinstance(worst, RejectedError | UnavailableError):
                level = logging.WARNING
        logger.log(level, "Retrying", extra={"reason": worst.reason, "error": str(worst)})

    def _forget(self, key: ObjectKey) -> None:
        self._troubles.pop(key, None)
        self._gate.clear(key)

    # counting --------------------------------------------------------------------------------

    def report(self, now: timedelta) -> None:
        """What dashboards show of a queue; gathered here, because changes are many."""
        labels = {"name": self.controller.name, "controller": self.controller.name}
        measures = self._around.measures
        ages = [(now - since).total_seconds() for _, since in self.queue.working()]
        measures.gauge(names.QUEUE_DEPTH, len(self.queue), **labels)
        measures.gauge(names.QUEUE_UNFINISHED_SECONDS, sum(ages), **labels)
        measures.gauge(names.QUEUE_LONGEST_SECONDS, max(ages, default=0.0), **labels)
        measures.gauge(names.ACTIVE_WORKERS, len(ages), controller=self.controller.name)
        if self._added:
            measures.count(names.QUEUE_ADDS, self._added, **labels)
            self._added = 0
