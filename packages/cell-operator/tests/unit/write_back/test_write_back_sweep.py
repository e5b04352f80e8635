"""Which copies are left over, and what is said when too many would go."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.write_back.lag import End
from compute_cell_operator.write_back.passes import derive_end
from compute_cell_operator.write_back.sweep import find_leftovers, plan_refusal
from compute_operator_kit.intents import Delete, Emit, Ensure, Owned, Plan, Wait
from compute_operator_kit.keys import Kind, ObjectKey, Uid
from compute_operator_kit.mass_delete import Held
from compute_operator_kit.outcomes import Applied, Effect, Outcome

KEY = ObjectKey(CELL, INSTANCE, "ns", "web-0")
OPERATOR = ObjectKey(CELL, Kind("apps", "v1", "deployments", "Deployment"), "home", "operator")
MINUTE = timedelta(minutes=1)


def places(*numbers: int) -> list[tuple[str, str]]:
    return [("ns", f"web-{number}") for number in numbers]


def test_a_copy_without_its_instance_is_left_over() -> None:
    found = find_leftovers(places(0, 1, 2), frozenset(places(1)))
    assert found.missing == frozenset(places(0, 2))
    assert found.total == 3


def test_one_that_was_seen_to_go_is_not_counted_at_all() -> None:
    found = find_leftovers(places(0, 1, 2), frozenset(places(1)), frozenset(places(2)))
    assert found.missing == frozenset(places(0))
    assert found.total == 2


@pytest.mark.parametrize(
    ("gone", "total", "is_large"), [(9, 9, False), (10, 10, True), (10, 50, False), (11, 50, True)]
)
def test_many_are_at_least_ten_and_more_than_a_fifth(
    gone: int, total: int, *, is_large: bool
) -> None:
    found = find_leftovers(places(*range(total)), frozenset(places(*range(gone, total))))
    assert found.is_large is is_large


def test_a_refusal_is_told_once_on_the_operator_and_waits() -> None:
    waits = Wait(KEY, "MassDeleteRefused", MINUTE)
    told, wait = plan_refusal(KEY, Held(12, 12, MINUTE, is_news=True), OPERATOR)
    assert isinstance(told, Emit)
    assert (told.key, told.reason, told.type) == (OPERATOR, "MassDeleteRefused", "Warning")
    assert told.message.startswith("12 of 12 copies on the hub")
    assert wait == waits
    assert plan_refusal(KEY, Held(12, 12, MINUTE), OPERATOR) == Plan.of(waits)


# --- how a pass left a change ---------------------------------------------------------------------

ENSURED = Ensure(KEY, Owned(), "Absent")
REPLACED = Delete(KEY, Uid("1"), "Replaced")


@pytest.mark.parametrize(
    ("plan", "effect", "end"),
    [
        (Plan.of(ENSURED), Effect.WRITTEN, End.ACKNOWLEDGED),
        (Plan.of(ENSURED), Effect.EQUAL, End.NOTHING_TO_DO),
        (Plan.of(ENSURED), Effect.HELD, End.NOT_YET),
        (Plan.of(ENSURED), Effect.FAILED, End.NOT_YET),
        (Plan.of(REPLACED), Effect.WRITTEN, End.NOT_YET),
        (Plan(), Effect.NOTED, End.NOTHING_TO_DO),
        (Plan.of(Wait(KEY, "OwnerAbsent", MINUTE)), Effect.NOTED, End.NOTHING_TO_DO),
        (Plan.of(Wait(KEY, "Refused", MINUTE)), Effect.NOTED, End.NOTHING_TO_DO),
        (Plan.of(Wait(KEY, "NotSynced", MINUTE)), Effect.NOTED, End.NOT_YET),
    ],
)
def test_a_change_waits_until_the_hub_has_acknowledged_it(
    plan: Plan, effect: Effect, end: End
) -> None:
    applied = Applied(tuple(Outcome(intent, effect) for intent in plan))
    assert derive_end(plan, applied) is end
