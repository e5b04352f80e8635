"""`Ready` of an Instance (cell.md 9, api.md 8.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cell_builders.instances import (
    AVAILABLE,
    PROGRAMMED,
    QUOTA,
    a_condition,
    an_instance_seen,
    the_schema_defaults,
)

from compute_api_types import conditions
from compute_cell_operator.conditions import ReportedCondition, read_conditions
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.status import state_conditions, write_status
from compute_cell_operator.quota.result import (
    ClaimDenied,
    ClaimPending,
    NoResult,
    SizeUnknown,
)
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object, encode, member_list

NOW = datetime(2026, 6, 20, 9, 0, 10, tzinfo=UTC)
BOTH = ("Network", "Quota")
DENIED = ClaimDenied("no room")
REFUSAL = ReportedCondition("Ready", "False", "NetworkFailedToCreate", "no addresses left")
LISTED = ("False", "SchedulingGatesPresent", "Scheduling gates present: Network, Quota")
UNPROGRAMMED = ("False", "PendingProgramming", "Instance has not been programmed")


def status_of(seen: ObservedInstance) -> JsonObject:
    status = write_status(seen, state_conditions(seen, NOW), NOW).status
    return decode_json_object(encode(status))


def written(seen: ObservedInstance) -> dict[str, ReportedCondition]:
    status = status_of(seen)
    return {condition.type: condition for condition in reversed(read_conditions(status))}


def ready(seen: ObservedInstance) -> tuple[str, str, str]:
    condition = written(seen)["Ready"]
    assert condition.observed_generation == seen.instance.metadata.generation
    return condition.status, condition.reason, condition.message


@pytest.mark.spec("C-48")
@pytest.mark.parametrize("entries", [(), the_schema_defaults()])
def test_no_provider_has_reported_yet(entries: tuple[JsonObject, ...]) -> None:
    assert ready(an_instance_seen(*entries, state=NoResult(), generation=3)) == UNPROGRAMMED


@pytest.mark.spec("OU-03")
@pytest.mark.parametrize("gates", [BOTH, ()])
def test_the_retired_condition_is_left_as_it_is_and_has_no_effect(gates: tuple[str, ...]) -> None:
    old = a_condition("Running", "False", "ImageUnavailable")
    bare = an_instance_seen(gates=gates, state=NoResult())
    seen = an_instance_seen(old, gates=gates, state=NoResult())
    assert ready(seen) == ready(bare)
    status = status_of(seen)
    assert old in member_list(status, "conditions")


@pytest.mark.spec("C-49")
def test_gates_are_listed_in_their_order() -> None:
    assert ready(an_instance_seen(gates=BOTH, state=NoResult())) == LISTED
    assert ready(an_instance_seen(gates=("Quota", "Network")))[2].endswith("Quota, Network")


@pytest.mark.spec("C-49")
def test_a_network_failure_outranks_a_denial_and_that_the_list() -> None:
    failed = ("False", "NetworkFailedToCreate", "no addresses left")
    pending = ("False", "PendingQuota", "no room")
    assert ready(an_instance_seen(gates=BOTH, refusal=REFUSAL, state=DENIED)) == failed
    assert ready(an_instance_seen(gates=BOTH, refusal=REFUSAL)) == failed
    assert ready(an_instance_seen(gates=BOTH, state=DENIED)) == pending


def test_a_network_failure_counts_only_behind_the_network_gate() -> None:
    assert ready(an_instance_seen(gates=("Quota",), refusal=REFUSAL))[1] == "SchedulingGatesPresent"


def test_a_claim_without_evaluation_is_shown_behind_a_gate_and_blocks_nothing_without() -> None:
    overdue = ClaimPending(NOW - timedelta(minutes=1))
    assert ready(an_instance_seen(gates=("Quota",), state=overdue))[1] == "PendingQuota"
    assert ready(an_instance_seen(PROGRAMMED, AVAILABLE, state=overdue))[0] == "True"


@pytest.mark.spec("C-50")
@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_the_reason_of_programmed_is_passed_on(status: str) -> None:
    reported = a_condition("Programmed", status, "ProgrammingInProgress", "half way")
    assert ready(an_instance_seen(reported)) == (status, "ProgrammingInProgress", "half way")


def test_an_unknown_reason_is_passed_on_too() -> None:
    odd = a_condition("Programmed", "False", "Rebooting", "wait")
    assert ready(an_instance_seen(odd)) == ("False", "Rebooting", "wait")


@pytest.mark.spec("C-51")
@pytest.mark.parametrize("reason", ["ImageUnavailable", "InstanceCrashing", "ConfigurationError"])
@pytest.mark.parametrize("status", ["False", "Unknown"])
@pytest.mark.parametrize(
    ("kind", "others"),
    [
        ("Programmed", ()),
        ("Programmed", (a_condition("Available", "False", "Provisioning"),)),
        ("Available", ()),
        ("Available", (a_condition("Programmed", "False", "PendingProgramming"),)),
        ("Available", (a_condition("Programmed", "False", "ProgrammingInProgress"),)),
        ("Available", (a_condition("Programmed", "False", "Provisioning"),)),
        ("Available", (PROGRAMMED,)),
    ],
)
def test_a_broken_instance_shows_its_reason(
    reason: str, status: str, kind: str, others: tuple[JsonObject, ...]
) -> None:
    broken = a_condition(kind, status, reason, "look at this")
    for entries in ((broken, *others), (*others, broken)):
        assert ready(an_instance_seen(*entries)) == (status, reason, "look at this")


@pytest.mark.spec("C-52")
def test_programmed_and_available_is_ready() -> None:
    seen = an_instance_seen(PROGRAMMED, AVAILABLE, QUOTA)
    assert ready(seen) == ("True", "Available", "Instance is ready")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((), ("False", "Pending", "Instance is not available")),
        (
            (a_condition("Available", "Unknown", "Pending", "x"),),
            ("False", "Pending", "Instance is not available"),
        ),
        (
            (a_condition("Available", "False", "Starting", "booting"),),
            ("False", "Starting", "booting"),
        ),
        ((a_condition("Available", "Unknown", "Stopped", "x"),), ("Unknown", "Stopped", "x")),
    ],
)
def test_programmed_and_not_available_has_the_reason_of_available(
    entries: tuple[JsonObject, ...], expected: tuple[str, str, str]
) -> None:
    assert ready(an_instance_seen(PROGRAMMED, *entries)) == expected


@pytest.mark.spec("C-53")
@pytest.mark.parametrize("entries", [(), (PROGRAMMED, AVAILABLE)])
def test_denied_without_gates_blocks_even_what_runs(entries: tuple[JsonObject, ...]) -> None:
    assert ready(an_instance_seen(*entries, state=DENIED)) == ("False", "PendingQuota", "no room")
    sizeless = ready(an_instance_seen(*entries, state=SizeUnknown("x")))
    assert sizeless[:2] == ("False", "UnknownInstanceType")
    assert '"x"' in sizeless[2]


@pytest.mark.spec("C-53")
def test_waiting_for_evaluation_blocks_nothing_by_itself() -> None:
    seen = an_instance_seen(PROGRAMMED, AVAILABLE, state=NoResult())
    assert written(seen)["QuotaGranted"].reason == "PendingEvaluation"
    assert ready(seen)[0] == "True"


RANKED = sorted((reason, rank) for reason, rank in conditions.RANKS.items())


@pytest.mark.spec("C-55")
@pytest.mark.parametrize(("reason", "rank"), [*RANKED, ("NobodyKnows", 0)])
@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_conditions_of_others_surface_by_their_rank(reason: str, rank: int, status: str) -> None:
    foreign = a_condition("ReferencedDataReady", status, reason, "theirs")
    theirs = (status, reason, "theirs")
    # Behind a gate: against the list, of rank 0, and against a denial, of rank 3.
    assert ready(an_instance_seen(foreign, gates=BOTH)) == (theirs if rank > 0 else LISTED)
    denied = ready(an_instance_seen(foreign, gates=BOTH, state=DENIED))
    assert denied == (theirs if rank > 3 else ("False", "PendingQuota", "no room"))
    # Not gated: against the provider's silence, below every rank, and its word, of rank 0.
    assert ready(an_instance_seen(foreign)) == theirs
    word = a_condition("Programmed", "False", "ProgrammingInProgress", "half way")
    heard = ready(an_instance_seen(word, foreign))
    assert heard == (theirs if rank > 0 else ("False", "ProgrammingInProgress", "half way"))


@pytest.mark.spec("C-55")
def test_unknown_gates_stay_and_are_listed() -> None:
    seen = an_instance_seen(gates=("ReferencedData", "Quota"))
    assert ready(seen)[2] == "Scheduling gates present: ReferencedData, Quota"


def test_a_condition_of_others_that_is_true_or_never_competes_has_no_effect() -> None:
    true = a_condition("ReferencedDataReady", "True", "SourceNotFound")
    silent = a_condition("ReferencedDataReady", "False", "Pending")
    assert ready(an_instance_seen(true, silent)) == UNPROGRAMMED
    assert ready(an_instance_seen(true, silent, gates=BOTH)) == LISTED


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, {"type": "X", "status": "Maybe", "reason": "SourceNotFound"}]
)
def test_an_entry_that_cannot_be_read_stays_and_has_no_effect(junk: Json) -> None:
    seen = an_instance_seen(junk)
    assert ready(seen) == UNPROGRAMMED
    status = status_of(seen)
    assert member_list(status, "conditions")[0] == junk


def test_terminating_comes_before_everything() -> None:
    seen = an_instance_seen(PROGRAMMED, AVAILABLE, gates=BOTH, terminating=True, state=DENIED)
    assert ready(seen) == ("False", "Terminating", "Instance is being deleted")
