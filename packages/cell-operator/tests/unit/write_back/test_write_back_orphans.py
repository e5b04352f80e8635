"""Orphaned copies, and the refusal to delete too many of them at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.write_back.orphans import find_orphans
from compute_cell_operator.write_back.plan import plan_refusal
from compute_cell_operator.write_back.reconcile import derive_end
from compute_cell_operator.write_back.status_lag import End
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.core.keys import Kind, ObjectKey, Uid
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

KEY = ObjectKey(CELL, INSTANCE, "ns", "web-0")
OPERATOR = ObjectKey(CELL, Kind("apps", "v1", "deployments", "Deployment"), "home", "operator")
MINUTE = timedelta(minutes=1)


def names(*numbers: int) -> list[tuple[str, str]]:
    return [("ns", f"web-{number}") for number in numbers]


def test_a_copy_without_its_instance_is_an_orphan() -> None:
    orphans = find_orphans(names(0, 1, 2), frozenset(names(1)))
    assert orphans.missing == frozenset(names(0, 2))
    assert orphans.total == 3


def test_the_copy_of_an_instance_that_was_seen_deleted_is_not_counted() -> None:
    orphans = find_orphans(names(0, 1, 2), frozenset(names(1)), frozenset(names(2)))
    assert orphans.missing == frozenset(names(0))
    assert orphans.total == 2


@pytest.mark.parametrize(
    ("gone", "total", "is_large"), [(9, 9, False), (10, 10, True), (10, 50, False), (11, 50, True)]
)
def test_many_are_at_least_ten_and_more_than_a_fifth(
    gone: int, total: int, *, is_large: bool
) -> None:
    orphans = find_orphans(names(*range(total)), frozenset(names(*range(gone, total))))
    assert orphans.is_large is is_large


def test_a_refusal_is_recorded_once_on_the_operator_and_waits() -> None:
    waits = RequeueAfter(KEY, "MassDeleteRefused", MINUTE)
    event, wait = plan_refusal(KEY, RemovalHeld(12, 12, MINUTE, is_news=True), OPERATOR)
    assert isinstance(event, RecordEvent)
    assert (event.key, event.reason, event.type) == (OPERATOR, "MassDeleteRefused", "Warning")
    assert event.message.startswith("12 of 12 copies on the hub")
    assert wait == waits
    assert plan_refusal(KEY, RemovalHeld(12, 12, MINUTE), OPERATOR) == Plan.of(waits)


# --- what a reconcile did about a change ----------------------------------------------------------

ENSURED = Ensure(KEY, OwnedFields(), "Absent")
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
        (Plan.of(RequeueAfter(KEY, "OwnerAbsent", MINUTE)), Effect.NOTED, End.NOTHING_TO_DO),
        (Plan.of(RequeueAfter(KEY, "Refused", MINUTE)), Effect.NOTED, End.NOTHING_TO_DO),
        (Plan.of(RequeueAfter(KEY, "NotSynced", MINUTE)), Effect.NOTED, End.NOT_YET),
    ],
)
def test_a_change_waits_until_the_hub_has_acknowledged_it(
    plan: Plan, effect: Effect, end: End
) -> None:
    applied = Applied(tuple(Outcome(intent, effect) for intent in plan))
    assert derive_end(plan, applied) is end
