"""The outcomes of a session."""

from __future__ import annotations

from datetime import timedelta

from compute_operator_kit.apply.applier import Applier
from compute_operator_kit.apply.context import ApplyDeps
from compute_operator_kit.apply.write_expectations import WriteExpectations
from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.interface import FieldOwner, KubeClient
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.intents.intents import (
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_operator_kit.testing.fakes import FakeClock, FixedRandom, a_key

KEY = a_key()


def no_connection(plane: Plane, lane: FlowControl) -> KubeClient:
    raise AssertionError(f"nobody connects to {plane.name} here: {lane}")


async def test_session_knows_what_became_of_all_its_plans() -> None:
    clock = FakeClock()
    planes = Planes(no_connection, (), RegistryDeps(clock, FixedRandom()))
    applier = Applier(
        ApplyDeps(planes, clock), FieldOwner("c", "m"), WriteExpectations(planes.find_store)
    )
    session = applier.begin(KEY)
    assert list(session.so_far.outcomes) == []
    first, second = (
        RequeueAfter(KEY, "A", timedelta(seconds=2)),
        RecordEvent(KEY, Uid("u"), "B", "b", "Doing"),
    )
    await session.apply(Plan.of(first))
    told = await session.apply(Plan.of(second))
    assert [outcome.intent for outcome in told.outcomes] == [second]
    carried_out: list[Intent] = [one.intent for one in session.so_far.outcomes]
    assert carried_out == [first, second]
    assert session.so_far.wait == timedelta(seconds=2)


def test_what_is_held_back_goes_with_the_events_about_it_and_nothing_else() -> None:
    held = Ensure(KEY, OwnedFields(), "Absent", may_defer=True)
    told, other = (
        RecordEvent(KEY, Uid("u"), "Made", "made", "Doing", after=held),
        RecordEvent(KEY, Uid("u"), "B", "b", "Doing"),
    )
    done = RequeueAfter(KEY, "A", timedelta(seconds=2))
    outcomes = (
        Outcome(held, Effect.HELD, wait=timedelta(seconds=1)),
        Outcome(told, Effect.SKIPPED),
        Outcome(other, Effect.NOTED),
        Outcome(done, Effect.NOTED),
    )
    assert Applied(outcomes).held == Plan.of(held, told)
    assert Applied(outcomes[1:]).held == Plan()
