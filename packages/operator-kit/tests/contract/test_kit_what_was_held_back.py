"""What a pass holds back is sent as it was, unless something wakes its key before."""

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
    Conditions,
    LateEvents,
    SlowAnswers,
    Stage,
    a_thing,
    at_work,
)

from compute_operator_kit.cache import Caches
from compute_operator_kit.clock import ZERO
from compute_operator_kit.intents import Emit, Ensure, Owned, Plan, Wait
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.reconcile import Pass, Result, pay_owed, run_steps
from compute_sim_planes.clock import VirtualClock, run

ROOT: Final = a_thing("root")
CHILD: Final = a_thing("child")
BESIDE: Final = a_thing("beside")
HELD_FOR: Final = timedelta(milliseconds=200)
Meanwhile: TypeAlias = Callable[[Stage], Awaitable[None]]
EDIT: Final = {"data": {"by": "a stranger"}}


def make_child(how_often: int) -> Plan:
    """Held back; says how often its root had been looked at, and people are told when it is so."""
    wanted = Owned(whole={"data": {"looks": str(how_often)}})
    made = Ensure(CHILD, wanted, "Absent", provisional=True, is_final=True)
    told = Emit(ROOT, Uid("x"), "Made", "It is made", "Making", after=made)
    return Plan.of(made, told)


@dataclass
class Steps:
    """Makes the child of the root; `besides` is done or waited for in the same pass."""

    besides: Plan = field(default_factory=Plan)
    looks: int = 0
    passes: int = 0

    def observe(self, key: ObjectKey, caches: Caches) -> int | None:
        self.looks += key == ROOT
        found = caches.view(HUB, THING).get(CHILD.namespace, CHILD.name)
        return self.looks if key == ROOT and isinstance(found, Absent) else None

    def plan(self, seen: int, now: datetime) -> Plan:  # noqa: ARG002
        return self.besides if seen == 1 else Plan()

    def report(self, seen: int, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return make_child(seen)

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        self.passes += key == ROOT
        return await (pay_owed(work) if work.owed else run_steps(self, key, work))


async def leave_alone(stage: Stage) -> None:
    """Nobody does anything."""


async def edit_root(stage: Stage) -> None:
    await stage.stranger.patch_merge(ROOT, EDIT)


async def call_root(stage: Stage) -> None:
    stage.wake(ROOT.name)


def looked_when_made(
    steps: Steps, meanwhile: Meanwhile = leave_alone, delay: timedelta = ZERO
) -> str:
    """How often the root had been looked at for what was sent in the end."""
    found: list[str] = []

    async def main(clock: VirtualClock) -> None:
        given = Conditions(way=lambda way: SlowAnswers(way, clock, delay))
        async with at_work(clock, steps.reconcile, given) as stage:
            await stage.make(ROOT)
            await clock.sleep(SOON)
            assert isinstance(await stage.stranger.get(CHILD), Absent), "held back"
            await meanwhile(stage)
            await clock.sleep(HELD_FOR * 4)
            made = await stage.stranger.get(CHILD)
            assert isinstance(made, Snapshot)
            data = made.decode()["data"]
            assert isinstance(data, dict)
            found.append(str(data["looks"]))

    run(main, seed=1, start=START)
    return found[0]


def test_it_is_sent_as_it_was_where_nothing_changed() -> None:
    steps = Steps()
    assert looked_when_made(steps) == "1"
    assert (steps.passes, steps.looks) == (2, 1)


@pytest.mark.parametrize("wake", [edit_root, call_root])
def test_what_wakes_the_key_before_has_it_derived_anew(wake: Meanwhile) -> None:
    assert looked_when_made(Steps(), wake) == "2"


@pytest.mark.parametrize("wake", [edit_root, call_root])
def test_what_wakes_the_key_while_the_pass_runs_has_it_derived_anew(wake: Meanwhile) -> None:
    slow = Ensure(BESIDE, Owned(whole={"data": {}}), "Absent", is_final=True)
    assert looked_when_made(Steps(Plan.of(slow)), wake, delay=HELD_FOR) == "2"


@pytest.mark.parametrize("soon", [HELD_FOR * 3 / 4, HELD_FOR * 3])
def test_what_else_was_waited_for_has_it_derived_anew(soon: timedelta) -> None:
    assert looked_when_made(Steps(Plan.of(Wait(ROOT, "Waiting", soon)))) == "2"


def test_it_is_sent_as_it_was_though_the_cache_was_late_to_see_what_else_was_written() -> None:
    steps = Steps(Plan.of(Ensure(BESIDE, Owned(whole={"data": {}}), "Absent", is_final=True)))
    made: list[bool] = []

    async def main(clock: VirtualClock) -> None:
        given = Conditions(way=lambda way: LateEvents(way, clock, HELD_FOR * 2))
        async with at_work(clock, steps.reconcile, given) as stage:
            await stage.make(ROOT)
            await clock.sleep(HELD_FOR * 2 + HELD_FOR * 3 / 2)
            made.append(isinstance(await stage.stranger.get(CHILD), Snapshot))
            await clock.sleep(HELD_FOR * 2)
            made.append(isinstance(await stage.stranger.get(CHILD), Snapshot))

    run(main, seed=1, start=START)
    assert made == [False, True], "its time was over before the cache had seen the other one"
    assert (steps.passes, steps.looks) == (2, 1)
