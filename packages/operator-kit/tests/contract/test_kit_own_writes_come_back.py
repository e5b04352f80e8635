"""The watch event of an own write arrives before or after the response.

With `ignore_own_event` it does not enqueue the root; all other events do. Until the cache has a
write of a key, the key is not reconciled again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from simulated_operators.one_controller import (
    HUB,
    START,
    THING,
    LateEvents,
    Options,
    SlowAnswers,
    a_thing,
    at_work,
)

from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.runner import MOST_CHANGES
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.intents import Delete, Ensure, OwnedFields, Plan
from compute_sim_planes.time.clock import VirtualClock, run

ROOT: Final = a_thing("root")
CHILD: Final = a_thing("child")
SECOND: Final = timedelta(seconds=1)
WHEN_ANSWERS_COME: Final = {
    "before the event": timedelta(),
    "after the event": timedelta(milliseconds=300),
}


def count_reconciles(delay: timedelta, *, ignore_own_event: bool) -> tuple[int, int]:
    """Reconciles of the root until its child is created, and after another writer edits it."""
    reconciles, counts = [0], list[int]()

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        reconciles[0] += 1
        child = work.caches.lister(HUB, THING).get(CHILD.namespace, CHILD.name)
        if key == ROOT and isinstance(child, Absent):
            desired = OwnedFields(replace={"data": {"a": "b"}})
            created = Ensure(CHILD, desired, "Absent", ignore_own_event=ignore_own_event)
            await work.session.apply(Plan.of(created))
        return Result()

    async def main(clock: VirtualClock) -> None:
        options = Options(
            map=lambda _, __: (ROOT,), wrap=lambda transport: SlowAnswers(transport, clock, delay)
        )
        async with at_work(clock, reconcile, options) as fixture:
            await fixture.make(ROOT)
            await clock.sleep(SECOND)
            counts.append(reconciles[0])
            await fixture.other_client.patch_merge(CHILD, {"data": {"a": "c"}})
            await clock.sleep(SECOND)
            counts.append(reconciles[0])

    run(main, seed=1, start=START)
    return counts[0], counts[1]


@pytest.mark.parametrize("when", WHEN_ANSWERS_COME)
def test_an_ignored_own_event_does_not_enqueue_and_an_edit_does(when: str) -> None:
    assert count_reconciles(WHEN_ANSWERS_COME[when], ignore_own_event=True) == (1, 2)


@pytest.mark.parametrize("when", WHEN_ANSWERS_COME)
def test_the_event_of_any_other_write_enqueues(when: str) -> None:
    assert count_reconciles(WHEN_ANSWERS_COME[when], ignore_own_event=False) == (2, 3)


def test_a_change_beyond_those_that_are_remembered_enqueues_the_key_all_the_same() -> None:
    """Own events fill the memory of a reconcile before another writer's change arrives."""
    reconciles, counts = [0], list[int]()
    children = [a_thing(f"child-{number}") for number in range(MOST_CHANGES)]
    desired = OwnedFields(replace={"data": {"a": "b"}})

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        reconciles[0] += 1
        if key == ROOT and reconciles[0] == 1:
            created = (Ensure(one, desired, "Absent", ignore_own_event=True) for one in children)
            await work.session.apply(Plan.of(*created))
        return Result()

    async def main(clock: VirtualClock) -> None:
        options = Options(
            map=lambda _, __: (ROOT,),
            # The response to the last create holds the reconcile until the change has arrived.
            wrap=lambda transport: SlowAnswers(transport, clock, SECOND),
        )
        async with at_work(clock, reconcile, options) as fixture:
            await fixture.make(ROOT)
            await clock.sleep((MOST_CHANGES - 0.5) * SECOND)
            counts.append(reconciles[0])
            await fixture.other_client.patch_merge(children[0], {"data": {"a": "c"}})
            await clock.sleep(5 * SECOND)
            counts.append(reconciles[0])

    run(main, seed=1, start=START)
    assert counts == [1, 2]


def test_a_key_that_deleted_an_object_waits_until_the_cache_shows_it() -> None:
    """The object is still cached, and the key is enqueued: without the wait it deletes twice."""
    deletes = [0]

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        child = work.caches.lister(HUB, THING).get(CHILD.namespace, CHILD.name)
        if key == ROOT and isinstance(child, Snapshot):
            deletes[0] += 1
            await work.session.apply(Plan.of(Delete(CHILD, child.metadata.uid, "Unwanted")))
        return Result()

    async def main(clock: VirtualClock) -> None:
        options = Options(wrap=lambda transport: LateEvents(transport, clock, 5 * SECOND))
        async with at_work(clock, reconcile, options) as fixture:
            await fixture.make(CHILD)
            await clock.sleep(6 * SECOND)
            fixture.enqueue(ROOT.name)
            await clock.sleep(SECOND)
            assert deletes == [1]
            fixture.enqueue(ROOT.name)
            await clock.sleep(10 * SECOND)

    run(main, seed=1, start=START)
    assert deletes == [1]
