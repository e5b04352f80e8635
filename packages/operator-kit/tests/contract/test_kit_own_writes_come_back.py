"""What a pass wrote comes back through the watch, before its answer or after it.

A write that the pass called final is not looked at again; everything else is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from simulated_operators.one_controller import (
    HUB,
    START,
    THING,
    Conditions,
    SlowAnswers,
    a_thing,
    at_work,
)

from compute_operator_kit.intents import Ensure, Owned, Plan
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent
from compute_operator_kit.reconcile import Pass, Result
from compute_sim_planes.clock import VirtualClock, run

ROOT: Final = a_thing("root")
CHILD: Final = a_thing("child")
SECOND: Final = timedelta(seconds=1)
WHEN_ANSWERS_COME: Final = {
    "before the event": timedelta(),
    "after the event": timedelta(milliseconds=300),
}


def count_passes(delay: timedelta, *, is_final: bool) -> tuple[int, int]:
    """On the root: until its child is made, and after somebody has edited that child."""
    passes, found = [0], list[int]()

    async def reconcile(key: ObjectKey, work: Pass) -> Result:
        passes[0] += 1
        child = work.caches.view(HUB, THING).get(CHILD.namespace, CHILD.name)
        if key == ROOT and isinstance(child, Absent):
            wanted = Owned(whole={"data": {"a": "b"}})
            made = Ensure(CHILD, wanted, "Absent", is_final=is_final)
            await work.session.apply(Plan.of(made))
        return Result()

    async def main(clock: VirtualClock) -> None:
        given = Conditions(
            map=lambda _, __: (ROOT,), way=lambda way: SlowAnswers(way, clock, delay)
        )
        async with at_work(clock, reconcile, given) as stage:
            await stage.make(ROOT)
            await clock.sleep(SECOND)
            found.append(passes[0])
            await stage.stranger.patch_merge(CHILD, {"data": {"a": "c"}})
            await clock.sleep(SECOND)
            found.append(passes[0])

    run(main, seed=1, start=START)
    return found[0], found[1]


@pytest.mark.parametrize("when", WHEN_ANSWERS_COME)
def test_a_final_write_is_not_looked_at_again_and_an_edit_of_it_is(when: str) -> None:
    assert count_passes(WHEN_ANSWERS_COME[when], is_final=True) == (1, 2)


@pytest.mark.parametrize("when", WHEN_ANSWERS_COME)
def test_any_other_write_is_looked_at_when_it_comes_back(when: str) -> None:
    assert count_passes(WHEN_ANSWERS_COME[when], is_final=False) == (2, 3)
