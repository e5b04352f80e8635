"""The status of a projection: the hub's, sanitised, without a cell's generations."""

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

from compute_api_types import labels
from compute_management_operator.hub.hearing.verdicts import Hearing
from compute_management_operator.hub.projection.observe import HubInstance, ObservedInstance
from compute_management_operator.hub.projection.plan import plan
from compute_management_operator.hub.projection.status import derive_status, report
from compute_management_operator.stored_status import NO_STATUS, read_status
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode, member_list
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Delete, Ensure, OwnedFields, Plan, SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

EARLIER = "2026-06-20T08:30:00Z"
READY: JsonObject = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "message": "Instance is ready",
    "lastTransitionTime": "2026-06-20T08:00:00Z",
    "observedGeneration": 4,
}


def reported(seen: ObservedInstance) -> Plan:
    """The status after the plan of the same moment was applied."""
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


def test_status_of_an_existing_projection_is_written_on_the_observed_version() -> None:
    (written,) = reported(a_moment(projection=a_projection()))
    assert isinstance(written, SetStatus)
    assert (written.uid, written.resource_version) == (Uid("uid-on-acme"), "12")


@pytest.mark.parametrize(
    "seen",
    [
        a_moment(source=Absent(), projection=a_projection()),
        a_moment(deployment=Absent()),
        a_moment(projection=a_projection(is_deleting=True)),
    ],
)
def test_no_status_is_written_where_nothing_is_shown(seen: ObservedInstance) -> None:
    assert reported(seen) == Plan()


def test_mark_on_the_hub_and_a_removal_are_no_projection() -> None:
    others = Applied(
        (
            Outcome(Ensure(SOURCE, OwnedFields(), "r", uid=Uid("u")), Effect.WRITTEN),
            Outcome(Delete(PROJECTED, Uid("u"), "r"), Effect.WRITTEN),
        )
    )
    assert report(a_moment(), others, NOW) == Plan()


def test_conditions_of_no_shape_are_left_out() -> None:
    source = a_source(status={"conditions": ["odd", READY]})
    status = derive_status(source, NO_STATUS, NOW)
    in_order = replace(source, status=read_status(a_status(READY)))
    assert status["conditions"] == derive_status(in_order, NO_STATUS, NOW)["conditions"]


@pytest.mark.spec("OU-03")
def test_a_retired_condition_of_a_former_operator_is_not_shown() -> None:
    running: JsonObject = {**READY, "type": "Running", "reason": "Running"}
    status = derive_status(a_source(status=a_status(running, READY)), NO_STATUS, NOW)
    assert status == derive_status(a_source(status=a_status(READY)), NO_STATUS, NOW)


# --- being deleted --------------------------------------------------------------------------------

TERMINATING = ("False", "Terminating", "Instance is being deleted")


def ready_of(source: HubInstance, stored: JsonObject) -> tuple[object, ...]:
    shown = member_list(derive_status(source, read_status(stored), NOW), "conditions")
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
    reported: JsonObject = {**READY, "status": "False", "reason": "ImageUnavailable"}
    source = a_source(status=a_status(reported), is_deleting=True)
    assert ready_of(source, {}) == (*TERMINATING, "2026-06-20T08:00:00Z")
    assert ready_of(source, a_status(READY)) == (*TERMINATING, "2026-06-20T08:00:00Z")


@pytest.mark.spec("AT-19")
def test_other_conditions_of_a_copy_that_is_being_deleted_stay() -> None:
    other: JsonObject = {**READY, "type": "Programmed"}
    source = a_source(status=a_status(other, READY), is_deleting=True)
    shown = member_list(derive_status(source, NO_STATUS, NOW), "conditions")
    assert [one["type"] for one in shown if isinstance(one, dict)] == ["Programmed", "Ready"]


@pytest.mark.spec("DS-02")
def test_an_instance_of_a_dark_cell_is_unknown() -> None:
    source = a_source(status=a_status(READY))
    cell = source.metadata.labels[labels.CELL]
    dark = Hearing(dark=frozenset({cell}))
    (written,) = reported(replace(a_moment(source=source), hearing=dark))
    assert isinstance(written, SetStatus)
    (ready,) = member_list(decode_json_object(encode(written.status)), "conditions")
    assert isinstance(ready, dict)
    assert (ready["status"], ready["reason"]) == ("Unknown", "CellUnreachable")
    message = 'City "DFW" has not been heard of; this instance may still run'
    assert ready["message"] == message
    (heard,) = reported(replace(a_moment(source=source), hearing=Hearing(heard=frozenset({cell}))))
    assert reported(a_moment(source=source)) == Plan.of(heard)
