"""The mirrored status of a deployment in a city that cannot be heard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from management_builders.federation import (
    NOW,
    a_condition,
    a_copy,
    a_deployment,
    a_moment,
    a_report,
)

from compute_api_types import reasons
from compute_management_operator.hub.federation.observe import (
    ObservedDeployment,
    ProjectDeployment,
    read_deployment_status,
)
from compute_management_operator.hub.federation.status import report
from compute_management_operator.hub.hearing.verdicts import NOT_JUDGED, Hearing
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode, member_list
from compute_operator_kit.intents.intents import Plan, RecordEvent, SetStatus
from compute_operator_kit.intents.outcomes import Applied

DARK = Hearing(dark=frozenset({"dfw-1"}))
HEARD = Hearing(heard=frozenset({"dfw-1"}))
MESSAGE = 'City "DFW" has not been heard of; its instances may still run'
WAITING = 'City "DFW" has not been heard of; nothing can start there until it is back'
OLD = "2026-06-20T08:00:00Z"
TYPES = ("Available", "ReplicasReady", "Ready")
GOOD = [a_condition(each, "True", "Fine") for each in TYPES]


def a_dark_moment(
    hearing: Hearing, *, cells: str | None = "dfw-1", stored: JsonObject | None = None
) -> ObservedDeployment:
    deployment: ProjectDeployment = a_deployment()
    if stored is not None:
        deployment = replace(deployment, status=read_deployment_status(stored))
    copy = a_copy(status=a_report(*(GOOD if cells else ()), cells=cells, ready=2), created=OLD)
    seen = a_moment(deployment=deployment, copy=copy)
    return replace(seen, known=replace(seen.known, hearing=hearing))


def reported(seen: ObservedDeployment) -> Plan:
    return report(seen, Applied(), NOW)


def written_in(planned: Plan) -> JsonObject:
    (status,) = [intent for intent in planned if isinstance(intent, SetStatus)]
    return decode_json_object(encode(status.status))


def events_in(planned: Plan) -> list[tuple[str, str, str]]:
    return [
        (intent.type, intent.reason, intent.message)
        for intent in planned
        if isinstance(intent, RecordEvent)
    ]


def conditions_of(status: JsonObject) -> list[tuple[object, ...]]:
    return [
        (one["type"], one["status"], one["reason"], one["message"], one["lastTransitionTime"])
        for one in member_list(status, "conditions")
        if isinstance(one, dict)
    ]


def unknown(message: str, since: str = "2026-06-20T09:00:00Z") -> list[tuple[object, ...]]:
    return [(each, "Unknown", reasons.CELL_UNREACHABLE, message, since) for each in TYPES]


@pytest.mark.spec("DS-02")
@pytest.mark.spec("DS-04")
def test_a_dark_city_is_unknown_and_nothing_of_it_is_counted_as_ready() -> None:
    planned = reported(a_dark_moment(DARK))
    status = written_in(planned)
    assert conditions_of(status) == unknown(MESSAGE)
    assert (status["readyReplicas"], status["replicas"], status["desiredReplicas"]) == (0, 2, 2)
    assert events_in(planned) == [("Warning", "CellUnreachable", MESSAGE)]


@pytest.mark.spec("DS-02")
def test_equal_input_gives_an_equal_status_and_no_second_event() -> None:
    stored = written_in(reported(a_dark_moment(DARK)))
    again = report(a_dark_moment(DARK, stored=stored), Applied(), NOW.replace(hour=23))
    assert written_in(again) == stored
    assert events_in(again) == []


@pytest.mark.spec("DS-05")
def test_without_a_verdict_the_stored_status_stays() -> None:
    stored = written_in(reported(a_dark_moment(DARK)))
    planned = report(a_dark_moment(NOT_JUDGED, stored=stored), Applied(), NOW.replace(hour=23))
    assert written_in(planned) == stored
    assert events_in(planned) == []


@pytest.mark.spec("DS-02")
def test_a_city_that_is_heard_again_is_what_it_was() -> None:
    stored = written_in(reported(a_dark_moment(DARK)))
    planned = report(a_dark_moment(HEARD, stored=stored), Applied(), NOW.replace(hour=23))
    status = written_in(planned)
    since = "2026-06-20T08:30:00Z"
    assert conditions_of(status) == [(each, "True", "Fine", "", since) for each in TYPES]
    assert status["readyReplicas"] == 2
    assert events_in(planned) == [("Normal", "CellReachable", 'City "DFW" is heard of again')]


@pytest.mark.spec("DS-02")
def test_no_event_while_the_project_accepts_no_status() -> None:
    seen = replace(a_dark_moment(DARK), is_project_suspended=True)
    assert events_in(reported(seen)) == []


@pytest.mark.spec("DS-02")
def test_of_several_cells_one_dark_leaves_available_and_the_counters() -> None:
    hearing = Hearing(heard=frozenset({"dfw-2"}), dark=frozenset({"dfw-1"}))
    status = written_in(reported(a_dark_moment(hearing, cells="dfw-1, dfw-2")))
    assert [each[:2] for each in conditions_of(status)] == [
        ("Available", "True"),
        ("ReplicasReady", "Unknown"),
        ("Ready", "Unknown"),
    ]
    assert status["readyReplicas"] == 2


@pytest.mark.spec("DS-02")
def test_without_a_report_nothing_can_start_in_a_dark_city() -> None:
    status = written_in(reported(a_dark_moment(DARK, cells="")))
    assert conditions_of(status) == unknown(WAITING)
    stored = status
    assert reported(a_dark_moment(NOT_JUDGED, cells="", stored=stored)) == Plan()
    waiting = written_in(reported(a_dark_moment(HEARD, cells="", stored=stored)))
    assert {each[1:3] for each in conditions_of(waiting)} == {("False", "InstancesProvisioning")}
