"""A deferred write is sent as it was planned, unless an event enqueues its key before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import pytest
from simulated_operators.one_controller import (
    HUB,
    SOON,
    START,
    THING,
    Fixture,
    LateEvents,
    Options,
    SlowAnswers,
    a_thing,
    at_work,
)

from compute_operator_kit.cache.store import Caches
from compute_operator_kit.controller.reconcile import (
    ReconcileContext,
    Result,
    run_steps,
    send_deferred,
)
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.intents import (
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
)
from compute_operator_kit.intents.outcomes import Applied
from compute_sim_planes.time.clock import VirtualClock, run

ROOT: Final = a_thing("root")
CHILD: Final = a_thing("child")
BESIDE: Final = a_thing("beside")
DEFERRED_FOR: Final = timedelta(milliseconds=200)
Meanwhile: TypeAlias = Callable[[Fixture], Awaitable[None]]
EDIT: Final = {"data": {"by": "a stranger"}}


def create_child(how_often: int) -> Plan:
    """Deferred; its data is how often the root was observed, and an Event depends on it."""
    desired = OwnedFields(replace={"data": {"observed": str(how_often)}})
    created = Ensure(CHILD, desired, "Absent", may_defer=True, ignore_own_event=True)
    event = RecordEvent(ROOT, Uid("x"), "Made", "It is made", "Making", after=created)
    return Plan.of(created, event)


@dataclass
class ChildReconciler:
    """Creates the child of the root; `besides` is planned in the same reconcile."""

    besides: Plan = field(default_factory=Plan)
    observed_times: int = 0
    reconciles: int = 0

    def observe(self, key: ObjectKey, caches: Caches) -> int | None:
        self.observed_times += key == ROOT
        child = caches.lister(HUB, THING).get(CHILD.namespace, CHILD.name)
        return self.observed_times if key == ROOT and isinstance(child, Absent) else None

    def plan(self, observed: int, now: datetime) -> Plan:  # noqa: ARG002
        return self.besides if observed == 1 else Plan()

    def report(self, observed: int, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return create_child(observed)

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        self.reconciles += key == ROOT
        return await (send_deferred(work) if work.deferred else run_steps(self, key, work))


async def leave_alone(fixture: Fixture) -> None:
    """No event."""


async def edit_root(fixture: Fixture) -> None:
    await fixture.other_client.patch_merge(ROOT, EDIT)


async def enqueue_root(fixture: Fixture) -> None:
    fixture.enqueue(ROOT.name)


def observed_when_created(
    steps: ChildReconciler, meanwhile: Meanwhile = leave_alone, delay: timedelta = ZERO
) -> str:
    """How often the root was observed for the write that was sent in the end."""
    counts: list[str] = []

    async def main(clock: VirtualClock) -> None:
        options = Options(wrap=lambda transport: SlowAnswers(transport, clock, delay))
        async with at_work(clock, steps.reconcile, options) as fixture:
            await fixture.make(ROOT)
            await clock.sleep(SOON)
            assert isinstance(await fixture.other_client.get(CHILD), Absent), "deferred"
            await meanwhile(fixture)
            await clock.sleep(DEFERRED_FOR * 4)
            created = await fixture.other_client.get(CHILD)
            assert isinstance(created, Snapshot)
            data = created.decode()["data"]
            assert isinstance(data, dict)
            counts.append(str(data["observed"]))

    run(main, seed=1, start=START)
    return counts[0]


def test_it_is_sent_as_it_was_if_nothing_changed() -> None:
    steps = ChildReconciler()
    assert observed_when_created(steps) == "1"
    assert (steps.reconciles, steps.observed_times) == (2, 1)


@pytest.mark.parametrize("enqueue", [edit_root, enqueue_root])
def test_an_event_before_it_is_sent_has_it_planned_again(enqueue: Meanwhile) -> None:
    assert observed_when_created(ChildReconciler(), enqueue) == "2"


@pytest.mark.parametrize("enqueue", [edit_root, enqueue_root])
def test_an_event_during_the_reconcile_has_it_planned_again(enqueue: Meanwhile) -> None:
    slow = Ensure(BESIDE, OwnedFields(replace={"data": {}}), "Absent", ignore_own_event=True)
    assert observed_when_created(ChildReconciler(Plan.of(slow)), enqueue, delay=DEFERRED_FOR) == "2"


@pytest.mark.parametrize("soon", [DEFERRED_FOR * 3 / 4, DEFERRED_FOR * 3])
def test_another_wait_has_it_planned_again(soon: timedelta) -> None:
    assert (
        observed_when_created(ChildReconciler(Plan.of(RequeueAfter(ROOT, "Waiting", soon)))) == "2"
    )


def test_it_is_sent_as_it_was_although_the_cache_was_late_to_see_another_write() -> None:
    steps = ChildReconciler(
        Plan.of(Ensure(BESIDE, OwnedFields(replace={"data": {}}), "Absent", ignore_own_event=True))
    )
    created: list[bool] = []

    async def main(clock: VirtualClock) -> None:
        options = Options(wrap=lambda transport: LateEvents(transport, clock, DEFERRED_FOR * 2))
        async with at_work(clock, steps.reconcile, options) as fixture:
            await fixture.make(ROOT)
            await clock.sleep(DEFERRED_FOR * 2 + DEFERRED_FOR * 3 / 2)
            created.append(isinstance(await fixture.other_client.get(CHILD), Snapshot))
            await clock.sleep(DEFERRED_FOR * 2)
            created.append(isinstance(await fixture.other_client.get(CHILD), Snapshot))

    run(main, seed=1, start=START)
    assert created == [False, True], "its time was over before the cache had seen the other one"
    assert (steps.reconciles, steps.observed_times) == (2, 1)
