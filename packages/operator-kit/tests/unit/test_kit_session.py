"""What a pass can tell about itself when it ends."""

from __future__ import annotations

from datetime import timedelta

from compute_operator_kit.apply import Applier
from compute_operator_kit.apply.desk import Means
from compute_operator_kit.intents import Emit, Ensure, Intent, Owned, Plan, Wait
from compute_operator_kit.keys import Uid
from compute_operator_kit.kube import Kube, Writer
from compute_operator_kit.lane import Lane
from compute_operator_kit.outcomes import Applied, Effect, Outcome
from compute_operator_kit.planes import Plane, Planes, Setting
from compute_operator_kit.testing import FakeClock, FixedRandom, a_key
from compute_operator_kit.write_gate import WriteGate

KEY = a_key()


def no_connection(plane: Plane, lane: Lane) -> Kube:
    raise AssertionError(f"nobody connects to {plane.name} here: {lane}")


async def test_session_knows_what_became_of_all_its_plans() -> None:
    clock = FakeClock()
    planes = Planes(no_connection, (), Setting(clock, FixedRandom()))
    applier = Applier(Means(planes, clock), Writer("c", "m"), WriteGate(planes.find_store))
    session = applier.begin(KEY)
    assert list(session.so_far.outcomes) == []
    first, second = Wait(KEY, "A", timedelta(seconds=2)), Emit(KEY, Uid("u"), "B", "b", "Doing")
    await session.apply(Plan.of(first))
    told = await session.apply(Plan.of(second))
    assert [outcome.intent for outcome in told.outcomes] == [second]
    carried_out: list[Intent] = [one.intent for one in session.so_far.outcomes]
    assert carried_out == [first, second]
    assert session.so_far.wait == timedelta(seconds=2)


def test_what_is_held_back_goes_with_the_events_about_it_and_nothing_else() -> None:
    held = Ensure(KEY, Owned(), "Absent", provisional=True)
    told, other = (
        Emit(KEY, Uid("u"), "Made", "made", "Doing", after=held),
        Emit(KEY, Uid("u"), "B", "b", "Doing"),
    )
    done = Wait(KEY, "A", timedelta(seconds=2))
    outcomes = (
        Outcome(held, Effect.HELD, wait=timedelta(seconds=1)),
        Outcome(told, Effect.SKIPPED),
        Outcome(other, Effect.NOTED),
        Outcome(done, Effect.NOTED),
    )
    assert Applied(outcomes).held == Plan.of(held, told)
    assert Applied(outcomes[1:]).held == Plan()
