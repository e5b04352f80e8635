"""A status of any shape from a cell becomes a valid one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_api_types.conditions import Condition
from compute_management_operator.hub.sanitise import (
    LARGEST_COUNTER,
    MOST_CONDITIONS,
    MOST_INTERFACES,
    REASON_PATTERN,
    TYPE_PATTERN,
    sanitise_deployment_status,
    sanitise_instance_status,
)
from compute_management_operator.stored_status import (
    StoredCondition,
    StoredStatus,
    read_conditions,
    read_status,
)
from compute_operator_kit.core.json import Json, JsonObject, member_list

NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
STAMP = "2026-06-20T09:00:00Z"


def a_condition(**changed: Json) -> JsonObject:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "message": "fine",
        "lastTransitionTime": "2026-06-20T08:00:00Z",
        **changed,
    }


def sanitised(
    *entries: Json, stored: JsonObject | None = None, now: datetime = NOW
) -> tuple[StoredCondition, ...]:
    status = read_status({"conditions": [*entries]})
    return sanitise_instance_status(status, read_status(stored or {}), now).conditions


def only(*entries: Json, stored: JsonObject | None = None) -> StoredCondition:
    (condition,) = sanitised(*entries, stored=stored)
    return condition


def deployment_of(status: JsonObject) -> JsonObject:
    return sanitise_deployment_status(read_status(status), StoredStatus(), NOW).rest


def instance_of(status: JsonObject) -> JsonObject:
    return sanitise_instance_status(read_status(status), StoredStatus(), NOW).rest


def test_what_is_in_order_passes_as_it_is() -> None:
    entry = a_condition(observedGeneration=4)
    assert (only(entry),) == read_conditions({"conditions": [entry]})


@pytest.mark.spec("M-78")
def test_message_is_cut_and_has_no_control_characters() -> None:
    long = only(a_condition(message="x" * 5000)).message
    assert len(long) == 1024
    assert long.endswith("...")
    assert only(a_condition(message="a\x00b\x1b[31m\nc")).message == "a b [31m c"


@pytest.mark.spec("M-78")
@pytest.mark.parametrize("reason", ["", "no spaces", "1st", "x" * 129, 7, None])
def test_reason_that_is_none_becomes_unknown(reason: Json) -> None:
    assert only(a_condition(reason=reason)).reason == "Unknown"


@pytest.mark.parametrize("status", ["true", "Maybe", "", 1, None])
def test_status_that_is_none_becomes_unknown(status: Json) -> None:
    assert only(a_condition(status=status)).status == "Unknown"


@pytest.mark.parametrize("kind", ["", "no spaces", "-x", "x" * 317, 3, None])
def test_type_that_is_none_is_dropped(kind: Json) -> None:
    assert sanitised(a_condition(type=kind), "odd", None) == ()


def test_first_of_duplicates_counts_and_there_are_at_most_sixteen() -> None:
    assert only(a_condition(), a_condition(status="False")).status == "True"
    many = [a_condition(type=f"T{number}") for number in range(40)]
    assert len(sanitised(*many)) == MOST_CONDITIONS


def test_generation_that_is_none_is_left_out() -> None:
    assert only(a_condition(observedGeneration=-1)).observed_generation == 0


@pytest.mark.parametrize("time", ["", "yesterday", "2026-06-20", None, 5, "2026-06-20T09:05:01Z"])
def test_time_that_cannot_be_is_replaced_by_now_once(time: Json) -> None:
    first = only(a_condition(lastTransitionTime=time))
    assert first.last_transition_time == STAMP
    stored: JsonObject = {"conditions": ["odd", a_condition(lastTransitionTime="kept")]}
    again = only(a_condition(lastTransitionTime=time), stored=stored)
    assert again.last_transition_time == "kept"
    flipped = only(a_condition(lastTransitionTime=time, status="False"), stored=stored)
    assert flipped.last_transition_time == STAMP


def test_time_a_little_ahead_is_a_clock_that_differs() -> None:
    ahead = "2026-06-20T09:05:00Z"
    assert only(a_condition(lastTransitionTime=ahead)).last_transition_time == ahead


@pytest.mark.spec("M-78")
@pytest.mark.parametrize("count", [-1, LARGEST_COUNTER + 1, "7", None, 1.5, True])
def test_counter_that_cannot_be_is_zero(count: Json) -> None:
    assert deployment_of({"replicas": count})["replicas"] == 0
    assert deployment_of({"replicas": 7})["replicas"] == 7


def test_every_counter_is_always_there() -> None:
    status = deployment_of({})
    assert [status[name] for name in sorted(status) if name.endswith("eplicas")] == [0] * 5


def test_location_is_whole_or_absent() -> None:
    whole: JsonObject = {"name": "us-dallas-1", "namespace": ""}
    assert deployment_of({"location": whole})["location"] == whole
    odds: list[Json] = [{"name": "x"}, "x", {"name": 1, "namespace": ""}]
    for odd in odds:
        assert "location" not in deployment_of({"location": odd})


@pytest.mark.spec("M-78")
def test_address_that_does_not_parse_is_dropped() -> None:
    good: JsonObject = {"networkIP": "10.0.0.4", "externalIP": "2001:db8::1"}
    bad: JsonObject = {"networkIP": "10.0.0.400", "externalIP": 7, "other": "stays"}
    status: JsonObject = {
        "networkInterfaces": [{"assignments": good}, {"assignments": bad}, {}, "odd"]
    }
    assert instance_of(status)["networkInterfaces"] == [
        {"assignments": good},
        {"assignments": {"other": "stays"}},
        {},
    ]


def test_there_are_at_most_sixteen_interfaces() -> None:
    status: JsonObject = {"networkInterfaces": [{} for _ in range(99)]}
    safe = instance_of(status)
    assert len(member_list(safe, "networkInterfaces")) == MOST_INTERFACES


def test_observed_template_is_a_text_or_absent() -> None:
    reported: JsonObject = {"controller": {"observedTemplateHash": "v1-abc"}}
    assert instance_of(reported)["controller"] == reported["controller"]
    odds: list[Json] = [{}, {"observedTemplateHash": 7}, "x"]
    for odd in odds:
        assert "controller" not in instance_of({"controller": odd})


def test_field_of_a_newer_cell_passes() -> None:
    assert instance_of({"news": 1})["news"] == 1


HOSTILE = "a\u202e\u2066\u200bb\u2028\x1b\x00\x9bc"
HARMLESS = "ab    c"


@pytest.mark.spec("AT-18")
def test_location_carries_no_character_that_cannot_be_seen() -> None:
    reported: JsonObject = {"location": {"name": HOSTILE, "namespace": HOSTILE, "x": [HOSTILE]}}
    safe = deployment_of(reported)
    assert safe["location"] == {"name": HARMLESS, "namespace": HARMLESS, "x": [HARMLESS]}


@pytest.mark.spec("AT-18")
def test_interfaces_carry_no_character_that_cannot_be_seen() -> None:
    entry: JsonObject = {
        "name": HOSTILE,
        "assignments": {"networkIP": "fe80::1%\x1b[2J", "externalIP": "::1", HOSTILE: HOSTILE},
    }
    safe = instance_of({"networkInterfaces": [entry]})
    assert safe["networkInterfaces"] == [
        {"name": HARMLESS, "assignments": {"externalIP": "::1", HARMLESS: HARMLESS}}
    ]


@pytest.mark.spec("AT-18")
def test_every_other_text_carries_no_character_that_cannot_be_seen() -> None:
    reported: JsonObject = {
        "controller": {"observedTemplateHash": HOSTILE},
        "news": {HOSTILE: [HOSTILE, 7, None, True]},
        "observedTemplateUID": HOSTILE,
    }
    expected: JsonObject = {
        "controller": {"observedTemplateHash": HARMLESS},
        "news": {HARMLESS: [HARMLESS, 7, None, True]},
        "observedTemplateUID": HARMLESS,
    }
    for safe in (instance_of(reported), deployment_of(reported)):
        assert {name: safe[name] for name in expected} == expected


@pytest.mark.spec("AT-18")
def test_text_of_an_unknown_field_is_bounded_in_length_and_depth() -> None:
    deep: Json = "x"
    for _ in range(40):
        deep = [deep]
    safe = instance_of({"news": "x" * 5000, "deep": deep})
    assert safe["news"] == "x" * 1021 + "..."
    assert str(safe["deep"]).count("[") <= 17


def test_patterns_are_those_of_the_schema() -> None:
    patterns = [
        str(part) for field in ("type", "reason") for part in Condition.model_fields[field].metadata
    ]
    assert any(TYPE_PATTERN in pattern for pattern in map(_unescaped, patterns))
    assert any(REASON_PATTERN in pattern for pattern in map(_unescaped, patterns))


def _unescaped(text: str) -> str:
    return text.replace("\\\\", "\\")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10**7) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
NAMED = st.sampled_from(["type", "status", "reason", "message", "lastTransitionTime"])
ENTRIES = st.dictionaries(NAMED, JSON | st.sampled_from(["Ready", "True", "Available"]))


@given(entries=st.lists(ENTRIES | JSON, max_size=20))
def test_any_conditions_come_out_valid_and_the_second_time_unchanged(entries: list[Json]) -> None:
    first = sanitised(*entries)
    documents: list[Json] = [_document(one) for one in first]
    for document in documents:
        Condition.build(document)
    later = NOW + timedelta(hours=1)
    assert sanitised(*entries, stored={"conditions": documents}, now=later) == first


def _document(condition: StoredCondition) -> JsonObject:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
        "observedGeneration": condition.observed_generation,
    }


@pytest.mark.parametrize("value", ["true", 1, None, {}])
def test_a_suspension_that_is_no_bool_is_dropped(value: Json) -> None:
    assert "suspended" not in deployment_of({"suspended": value})
    assert "suspended" not in instance_of({"suspended": value})
    controller: JsonObject = {"observedTemplateHash": "v1-1", "suspendedObserved": value}
    assert instance_of({"controller": controller})["controller"] == {"observedTemplateHash": "v1-1"}


def test_a_suspension_is_passed_on() -> None:
    assert deployment_of({"suspended": True})["suspended"] is True
    controller: JsonObject = {"observedTemplateHash": "v1-1", "suspendedObserved": True}
    shown = instance_of({"suspended": True, "controller": controller})
    assert (shown["suspended"], shown["controller"]) == (True, controller)
