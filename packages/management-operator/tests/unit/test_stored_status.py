"""A status of any shape is read; a member of a wrong type reads as empty."""

from __future__ import annotations

import pytest

from compute_management_operator.stored_status import (
    NO_STATUS,
    StoredCondition,
    find_condition,
    read_conditions,
    read_status,
)
from compute_operator_kit.core.json import Json, JsonObject

READY: JsonObject = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "message": "Instance is ready",
    "lastTransitionTime": "2026-06-20T08:00:00Z",
    "observedGeneration": 4,
}
AS_READ = StoredCondition(
    "Ready", "True", "Available", "Instance is ready", "2026-06-20T08:00:00Z", 4
)


def test_conditions_are_read_in_their_order() -> None:
    entries: list[Json] = [{"type": "Available"}, READY]
    assert read_conditions({"conditions": entries}) == (
        StoredCondition("Available", "", ""),
        AS_READ,
    )


@pytest.mark.fault("F1")
@pytest.mark.parametrize("entry", [None, 3, "Ready", [], {}, {"type": 3}, {"status": "True"}])
def test_an_entry_without_a_type_is_left_out(entry: Json) -> None:
    assert read_conditions({"conditions": [entry, READY]}) == (AS_READ,)


@pytest.mark.fault("F1")
@pytest.mark.parametrize("conditions", [None, "Ready", READY])
def test_conditions_that_are_no_list_are_none(conditions: Json) -> None:
    assert read_conditions({"conditions": conditions}) == ()
    assert find_condition({"conditions": conditions}, "Ready") is None


@pytest.mark.fault("F1")
def test_a_member_of_a_wrong_type_is_empty() -> None:
    odd: JsonObject = {**dict.fromkeys(READY, True), "type": "Ready"}
    assert read_conditions({"conditions": [odd]}) == (StoredCondition("Ready", "", ""),)


def test_the_first_condition_of_a_type_is_found() -> None:
    later: JsonObject = {**READY, "status": "False"}
    assert find_condition({"conditions": ["odd", READY, later]}, "Ready") == AS_READ
    assert find_condition({"conditions": [READY]}, "Available") is None


def test_a_status_keeps_the_json_for_what_is_passed_on() -> None:
    document: JsonObject = {"replicas": 1, "conditions": ["odd", READY]}
    status = read_status(document)
    assert status.document is document
    assert status.conditions == (AS_READ,)
    assert status.condition_documents == ["odd", READY]
    assert read_status({}) is NO_STATUS
