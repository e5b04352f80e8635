"""What a projection says: the hub's words, made harmless, without a cell's generations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from management_builders.projection import (
    NOW,
    PROJECTED,
    SOURCE,
    a_moment,
    a_projection,
    a_source,
    a_status,
)

from compute_management_operator.projection.observe import Instance, Seen
from compute_management_operator.projection.plan import plan
from compute_management_operator.projection.status import derive_status, report
from compute_operator_kit.intents import Delete, Ensure, Owned, Plan, SetStatus
from compute_operator_kit.keys import Uid
from compute_operator_kit.objects import Absent
from compute_operator_kit.outcomes import Applied, Effect, Outcome
from compute_operator_kit.wire import JsonObject, member_list

EARLIER = "2026-06-20T08:30:00Z"
READY: JsonObject = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "message": "Instance is ready",
    "lastTransitionTime": "2026-06-20T08:00:00Z",
    "observedGeneration": 4,
}


def reported(seen: Seen) -> Plan:
    """The status after the plan of the same moment went well."""
    outcomes = tuple(Outcome(intent, Effect.WRITTEN) for intent in plan(seen, NOW))
    return report(seen, Applied(outcomes), NOW)


@pytest.mark.spec("M-65")
@pytest.mark.spec("M-78")
def test_status_is_the_hubs_without_generations() -> None:
    seen = a_moment(source=a_source(status=a_status(READY)))
    shown = {name: value for name, value in READY.items() if name != "observedGeneration"}
    (written,) = reported(seen)
    assert written == SetStatus(
        PROJECTED, None, "", {"conditions": [shown]}, reason="StatusChanged"
    )


def test_status_of_a_projection_that_is_there_is_written_on_the_version_it_was_seen_in() -> None:
    (written,) = reported(a_moment(found=a_projection()))
    assert isinstance(written, SetStatus)
    assert (written.uid, written.resource_version) == (Uid("uid-on-acme"), "12")


@pytest.mark.parametrize(
    "seen",
    [
        a_moment(source=Absent(), found=a_projection()),
        a_moment(deployment=Absent()),
        a_moment(found=a_projection(is_deleting=True)),
    ],
)
def test_nothing_is_said_about_what_is_not_shown(seen: Seen) -> None:
    assert reported(seen) == Plan()


def test_mark_on_the_hub_and_a_removal_are_no_projection() -> None:
    others = Applied(
        (
            Outcome(Ensure(SOURCE, Owned(), "r", uid=Uid("u")), Effect.WRITTEN),
            Outcome(Delete(PROJECTED, Uid("u"), "r"), Effect.WRITTEN),
        )
    )
    assert report(a_moment(), others, NOW) == Plan()


def test_conditions_of_no_shape_are_left_out() -> None:
    source = a_source(status={"conditions": ["odd", READY]})
    status = derive_status(source, {}, NOW)
    assert (
        status["conditions"]
        == derive_status(replace(source, status=a_status(READY)), {}, NOW)["conditions"]
    )


@pytest.mark.spec("OU-03")
def test_a_retired_condition_of_a_former_operator_is_not_shown() -> None:
    running: JsonObject = {**READY, "type": "Running", "reason": "Running"}
    status = derive_status(a_source(status=a_status(running, READY)), {}, NOW)
    assert status == derive_status(a_source(status=a_status(READY)), {}, NOW)


# --- being deleted --------------------------------------------------------------------------------

TERMINATING = ("False", "Terminating", "Instance is being deleted")


def ready_of(source: Instance, stored: JsonObject) -> tuple[object, ...]:
    shown = member_list(derive_status(source, stored, NOW), "conditions")
    (ready,) = [one for one in shown if isinstance(one, dict) and one["type"] == "Ready"]
    return ready["status"], ready["reason"], ready["message"], ready["lastTransitionTime"]


@pytest.mark.spec("AT-19")
@pytest.mark.parametrize("status", [a_status(READY), a_status(), {}])
def test_row_of_a_copy_that_is_being_deleted_is_terminating(status: JsonObject) -> None:
    # A finalizer holds the copy on the hub; its cell reports nothing more.
    source = a_source(status=status, is_deleting=True)
    since = "2026-06-20T09:00:00Z"
    assert ready_of(source, a_status(READY)) == (*TERMINATING, since)
    # Shown already: the time stays, and nothing is written again.
    later: JsonObject = {**READY, "status": "False", "lastTransitionTime": EARLIER}
    assert ready_of(source, a_status(later)) == (*TERMINATING, EARLIER)


@pytest.mark.spec("AT-19")
def test_time_of_a_cell_that_reports_the_deletion_itself_stays() -> None:
    told: JsonObject = {**READY, "status": "False", "reason": "ImageUnavailable"}
    source = a_source(status=a_status(told), is_deleting=True)
    assert ready_of(source, {}) == (*TERMINATING, "2026-06-20T08:00:00Z")
    assert ready_of(source, a_status(READY)) == (*TERMINATING, "2026-06-20T08:00:00Z")


@pytest.mark.spec("AT-19")
def test_other_conditions_of_a_copy_that_is_being_deleted_stay() -> None:
    other: JsonObject = {**READY, "type": "Programmed"}
    source = a_source(status=a_status(other, READY), is_deleting=True)
    shown = member_list(derive_status(source, {}, NOW), "conditions")
    assert [one["type"] for one in shown if isinstance(one, dict)] == ["Programmed", "Ready"]
