from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest

from compute_api_types import conditions, reasons
from compute_api_types.conditions import (
    AVAILABLE,
    PROGRAMMED,
    QUOTA_GRANTED,
    READY,
    Condition,
    ConditionStatus,
    Statement,
    merge,
    merge_documents,
    provisional,
    rank,
    summarise,
)
from compute_api_types.problems import MalformedObjectError
from compute_api_types.testing import a_condition
from compute_api_types.wire import JsonObject, JsonValue

NOW = datetime(2026, 6, 20, 9, 30, 0, 999_999, tzinfo=UTC)
THEN = "2026-06-20T09:00:00Z"
NOW_TEXT = "2026-06-20T09:30:00Z"


def a_statement(
    condition_type: str = READY,
    status: ConditionStatus = "True",
    reason: str = "Available",
    message: str = "Instance is ready",
    observed_generation: int | None = 2,
) -> Statement:
    return Statement(condition_type, status, reason, message, observed_generation)


# --- merge ----------------------------------------------------------------------------------------


def test_a_new_type_comes_last_and_begins_now() -> None:
    foreign = a_condition(PROGRAMMED, since=THEN)
    assert merge((foreign,), (a_statement(),), NOW) == (
        foreign,
        Condition(
            type=READY,
            status="True",
            reason="Available",
            message="Instance is ready",
            last_transition_time=NOW_TEXT,
            observed_generation=2,
        ),
    )


def test_the_first_condition_of_an_object_without_any_begins_now() -> None:
    assert merge(None, (a_statement(),), NOW)[0].last_transition_time == NOW_TEXT


def test_the_time_stays_while_only_reason_message_or_generation_change() -> None:
    existing = (a_condition(READY, "False", "PendingQuota", "old", since=THEN),)
    (merged,) = merge(
        existing, (a_statement(READY, "False", "SchedulingGatesPresent", "new"),), NOW
    )
    assert (merged.reason, merged.message, merged.observed_generation) == (
        "SchedulingGatesPresent",
        "new",
        2,
    )
    assert merged.last_transition_time == THEN


@pytest.mark.parametrize("before", ["False", "Unknown"])
def test_the_time_moves_when_the_status_does(before: ConditionStatus) -> None:
    (merged,) = merge((a_condition(READY, before, since=THEN),), (a_statement(),), NOW)
    assert merged.last_transition_time == NOW_TEXT


def test_the_time_leaves_1970_with_the_first_change_of_status() -> None:
    existing = (conditions.defaulted(READY, reasons.PENDING, "Waiting for controller"),)
    (unchanged,) = merge(existing, (a_statement(READY, "Unknown", "Pending"),), NOW)
    assert unchanged.last_transition_time == "1970-01-01T00:00:00Z"
    (changed,) = merge(existing, (a_statement(),), NOW)
    assert changed.last_transition_time == NOW_TEXT


def test_foreign_types_stay_as_and_where_they_are_duplicates_included() -> None:
    foreign = a_condition("Foreign", "False", since="2026-06-20T09:00:00.123+02:00")
    again = a_condition("Foreign", "True")
    existing = (foreign, a_condition(READY), again)
    merged = merge(existing, (a_statement(),), NOW)
    assert (merged[0], merged[2]) == (foreign, again)
    assert [each.type for each in merged] == ["Foreign", READY, "Foreign"]


def test_a_second_entry_of_our_own_type_is_removed_and_the_first_keeps_its_place() -> None:
    first = a_condition(READY, "True", since=THEN)
    second = a_condition(READY, "False", since=NOW_TEXT)
    merged = merge((first, a_condition(PROGRAMMED), second), (a_statement(),), NOW)
    assert [each.type for each in merged] == [READY, PROGRAMMED]
    assert merged[0].last_transition_time == THEN


def test_a_statement_without_generation_leaves_none_behind() -> None:
    existing = (a_condition(READY, observed_generation=7),)
    (merged,) = merge(existing, (a_statement(observed_generation=None),), NOW)
    assert merged.observed_generation is None


def test_merging_the_same_statement_again_changes_nothing() -> None:
    once = merge((a_condition(PROGRAMMED),), (a_statement(),), NOW)
    assert merge(once, (a_statement(),), NOW + timedelta(hours=1)) == once


def test_merging_no_statement_changes_nothing() -> None:
    existing = (a_condition(READY), a_condition(READY))
    assert merge(existing, (), NOW) == existing


def test_times_are_written_in_utc_and_whole_seconds() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-5)))
    (merged,) = merge((), (a_statement(),), elsewhere)
    assert merged.last_transition_time == NOW_TEXT


INVISIBLE = {
    "bidi controls": "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff\u180e",
    "tags": "\U000e0001\U000e0041\U000e007f",
}
SPACES = {
    "separators": "\u2028\u2029",
    "C0": "\x00\x1b\x7f",
    "C1": "\x85\x9b",
    "surrogate": "\ud800",
}


@pytest.mark.spec("AT-18")
def test_characters_that_cannot_be_seen_are_removed_from_messages() -> None:
    for text in INVISIBLE.values():
        assert conditions.derive_message(f"a{text}b") == "ab"
    for text in SPACES.values():
        assert conditions.derive_message(f"a{text}b") == f"a{' ' * len(text)}b"
    kept = "Größe 3 × 4, 日本語, \u00a0, 🙂"
    assert conditions.derive_message(kept) == kept


def test_messages_carry_no_control_characters_and_are_cut() -> None:
    (merged,) = merge((), (a_statement(message="a\x00b\nc\x7fd\x85e\ud800f"),), NOW)
    assert merged.message == "a b c d e f"
    (cut,) = merge((), (a_statement(message="x" * 1_000_000),), NOW)
    assert cut.message == "x" * 1021 + "..."
    assert conditions.derive_message("x" * 1024) == "x" * 1024


def test_a_reason_that_is_none_is_our_mistake() -> None:
    with pytest.raises(MalformedObjectError):
        merge((), (a_statement(reason="not a word"),), NOW)


# --- merge on raw documents -----------------------------------------------------------------------


def raw(condition: Condition, **more: JsonValue) -> JsonObject:
    return condition.to_document() | more


def test_raw_entries_keep_fields_that_no_model_knows() -> None:
    existing: list[JsonValue] = [
        raw(a_condition("Foreign"), severity="high"),
        raw(a_condition(READY, "True", since=THEN), note="kept"),
    ]
    merged = merge_documents(existing, (a_statement(),), NOW)
    assert merged == [
        existing[0],
        {
            "type": "Ready",
            "status": "True",
            "reason": "Available",
            "message": "Instance is ready",
            "lastTransitionTime": THEN,
            "observedGeneration": 2,
            "note": "kept",
        },
    ]


def test_raw_and_typed_merge_agree() -> None:
    existing = (
        a_condition(PROGRAMMED),
        a_condition(READY, "False", since=THEN),
        a_condition(READY),
    )
    statements = (a_statement(), a_statement(QUOTA_GRANTED, "Unknown", "PendingEvaluation"))
    typed = [each.to_document() for each in merge(existing, statements, NOW)]
    assert merge_documents([each.to_document() for each in existing], statements, NOW) == typed


def test_raw_entries_that_are_no_conditions_are_left_alone() -> None:
    existing: list[JsonValue] = [None, "x", {"status": "True"}, {"type": 7}]
    merged = merge_documents(existing, (a_statement(),), NOW)
    assert merged[:4] == existing
    assert len(merged) == 5


def test_a_raw_entry_without_a_time_gets_one() -> None:
    existing: list[JsonValue] = [{"type": "Ready", "status": "True", "observedGeneration": 1}]
    (merged,) = merge_documents(existing, (a_statement(observed_generation=None),), NOW)
    assert merged == {
        "type": "Ready",
        "status": "True",
        "reason": "Available",
        "message": "Instance is ready",
        "lastTransitionTime": NOW_TEXT,
    }
    assert merge_documents(None, (), NOW) == []


# --- read and find --------------------------------------------------------------------------------


def test_a_raw_status_is_read_with_empty_values_for_what_is_missing() -> None:
    status: JsonObject = {
        "conditions": [
            raw(a_condition(READY, "True", "Available", "fine", observed_generation=7)),
            {"type": AVAILABLE, "status": None, "observedGeneration": True},
        ]
    }
    ready, available = conditions.read(status)
    assert ready == conditions.ObservedCondition(READY, "True", "Available", "fine", 7)
    assert ready.is_true
    assert available == conditions.ObservedCondition(AVAILABLE, "", "", "")
    assert not available.is_true


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"conditions": None},
        {"conditions": {"type": "Ready"}},
        {"conditions": [None, "x", {}, {"type": ""}, {"type": 7, "status": "True"}]},
    ],
)
def test_entries_that_are_no_objects_or_have_no_type_are_not_read(status: JsonObject) -> None:
    assert conditions.read(status) == ()


def test_the_first_of_a_type_is_found_and_absent_is_not_true() -> None:
    first = a_condition(READY, "True")
    assert conditions.find((first, a_condition(READY, "False")), READY) is first
    assert conditions.find((), READY) is None
    assert conditions.find(None, READY) is None
    assert conditions.is_true((first,), READY)
    assert not conditions.is_true((first,), AVAILABLE)
    assert not conditions.is_true((a_condition(READY, "Unknown"),), READY)


# --- rank -----------------------------------------------------------------------------------------

# The table of docs/spec/api.md 8.1, row by row.
RANK_TABLE = {
    9: ["Suspended"],
    8: ["CityCodeMismatch"],
    7: ["NameCollision", "NetworkFailedToCreate"],
    6: ["NetworkNotFound", "InstanceFailedToCreate"],
    5: [
        "ImageUnavailable",
        "InstanceCrashing",
        "ConfigurationError",
        "UnknownInstanceType",
        "SourceNotFound",
        "SourceUnauthorized",
        "SourceTooLarge",
        "SourceNameTooLong",
        "SourceNameTaken",
        "SourceNotSupported",
    ],
    4: ["CellUnreachable", "ReferencedDataNotReady", "AwaitingPropagation", "Resolving"],
    3: ["PendingQuota", "QuotaNotGranted", "QuotaExceeded"],
    2: ["NoMatchingLocation", "NetworkProvisioning"],
    1: ["InstancesProvisioning", "Provisioning"],
    0: ["SchedulingGatesPresent", "NoAvailableDeployments", "NoAvailablePlacements"],
}


@pytest.mark.spec("SU-12")
def test_the_rank_table_is_the_one_of_the_specification() -> None:
    expected = {reason: number for number, words in RANK_TABLE.items() for reason in words}
    assert dict(conditions.RANKS) == expected
    assert {reason: rank(reason) for reason in expected} == expected


def test_unknown_reasons_have_rank_0_and_two_never_compete() -> None:
    assert rank("SomethingNew") == 0
    assert rank("NodeUnreachable") == 0
    assert set(conditions.NEVER_COMPETES) == {"Pending", "PendingProgramming"}
    assert rank("Pending") < 0
    assert rank("PendingProgramming") < 0


def test_the_strictly_higher_rank_wins_and_ties_go_to_the_first() -> None:
    low = a_statement(reason="InstancesProvisioning")
    first = a_statement(reason="NoMatchingLocation", message="first")
    tie = a_statement(reason="NetworkProvisioning", message="tie")
    assert summarise((low, first, tie)) is first
    assert summarise((tie, low, first)) is tie


def test_reasons_that_never_compete_are_used_only_when_nothing_else_is_there() -> None:
    pending = a_statement(reason="Pending")
    assert summarise((pending, a_statement(reason="SomethingNew"))) != pending
    assert summarise((pending,)) is pending
    assert summarise(()) is None


# --- provisional ----------------------------------------------------------------------------------

GRANTED = a_statement(QUOTA_GRANTED, "True", "QuotaAvailable")
UNDECIDED = a_statement(QUOTA_GRANTED, "Unknown", "PendingEvaluation")
ON_ITS_WAY = (
    "SchedulingGatesPresent",
    "PendingProgramming",
    "Pending",
    "ProgrammingInProgress",
    "Provisioning",
    "Starting",
)


@pytest.mark.parametrize("kind", ["Workload", "WorkloadDeployment"])
@pytest.mark.parametrize("status", ["False", "Unknown"])
@pytest.mark.parametrize("reason", ["InstancesProvisioning", "NetworkProvisioning"])
def test_a_deployment_or_workload_on_its_way_is_provisional(
    kind: str, status: ConditionStatus, reason: str
) -> None:
    wanted = (a_statement(READY, status, reason),)
    assert provisional("Workload" if kind == "Workload" else "WorkloadDeployment", wanted)


@pytest.mark.parametrize("reason", sorted({*conditions.RANKS, "SomethingNew", "Terminating"}))
def test_any_other_reason_of_a_deployment_goes_out_at_once(reason: str) -> None:
    if reason not in ("InstancesProvisioning", "NetworkProvisioning"):
        assert not provisional("WorkloadDeployment", (a_statement(READY, "False", reason),))


@pytest.mark.parametrize("quota", [GRANTED, UNDECIDED])
@pytest.mark.parametrize("reason", ON_ITS_WAY)
def test_an_instance_on_its_way_is_provisional(reason: str, quota: Statement) -> None:
    assert provisional("Instance", (a_statement(READY, "False", reason), quota))


@pytest.mark.parametrize(
    "wanted",
    [
        (a_statement(READY, "False", "ImageUnavailable"), GRANTED),
        (a_statement(READY, "False", "SomethingNew"), GRANTED),
        (a_statement(READY, "False", "InstancesProvisioning"), GRANTED),
        (a_statement(READY, "False", "Terminating"), GRANTED),
        (a_statement(READY, "True", "Available"), GRANTED),
        (
            a_statement(READY, "False", "Pending"),
            a_statement(QUOTA_GRANTED, "False", "QuotaExceeded"),
        ),
        (
            a_statement(READY, "False", "Pending"),
            a_statement(QUOTA_GRANTED, "Unknown", "QuotaNoBudget"),
        ),
        (
            a_statement(READY, "False", "Pending"),
            a_statement(QUOTA_GRANTED, "False", "PendingEvaluation"),
        ),
        (a_statement(READY, "False", "Pending"),),
        (GRANTED,),
        (),
    ],
)
def test_everything_else_of_an_instance_goes_out_at_once(wanted: Sequence[Statement]) -> None:
    assert not provisional("Instance", wanted)


@pytest.mark.parametrize("lost", [READY, AVAILABLE])
def test_a_status_that_takes_a_stored_true_goes_out_at_once(lost: str) -> None:
    wanted = (a_statement(READY, "False", "InstancesProvisioning"),)
    assert not provisional("Workload", wanted, (a_condition(lost, "True"),))
    assert provisional("Workload", wanted, (a_condition(lost, "False"),))


def test_a_kept_true_does_not_hinder() -> None:
    wanted = (a_statement(READY, "False", "InstancesProvisioning"), a_statement(AVAILABLE))
    assert provisional("Workload", wanted, (a_condition(AVAILABLE, "True"),))


def test_what_a_gate_waits_for_and_a_terminating_instance_go_out_at_once() -> None:
    wanted = (a_statement(READY, "False", "SchedulingGatesPresent"), GRANTED)
    assert not provisional("Instance", wanted, opens_gate=True)
    assert not provisional("Instance", wanted, is_terminating=True)
