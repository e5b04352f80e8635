"""One reconcile of an Instance: status, gate, finalizers, events (cell.md 8, 10, 14)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cell_builders.instances import (
    AVAILABLE,
    PROGRAMMED,
    QUOTA,
    SINCE,
    a_condition,
    an_instance_seen,
    the_schema_defaults,
)

from compute_api_types.meta import EPOCH
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.instance_facts import read_denied_since
from compute_cell_operator.planes import DEPLOYMENT
from compute_cell_operator.quota.result import (
    BackendUnavailable,
    ClaimDenied,
    ClaimGranted,
    ClaimState,
    Disabled,
    NoResult,
)
from compute_operator_kit.core.json import JsonObject, decode_json_object, encode, member_list
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.intents.intents import (
    RecordEvent,
    RemoveFinalizer,
    RemoveGate,
    RequeueAfter,
    SetStatus,
)

NOW = datetime(2026, 6, 20, 9, 0, 10, tzinfo=UTC)
NOW_TEXT = "2026-06-20T09:00:10Z"
AWAY = BackendUnavailable("acme", "getting", "timed out")
DENIED = ClaimDenied("no room")
RETIRED = ("compute.datumapis.com/instance-controller", "quota.compute.datumapis.com/claim-cleanup")
SETTLED_READY = a_condition("Ready", "True", "Available", "Instance is ready")


def write_of(seen: ObservedInstance) -> SetStatus:
    (written,) = [intent for intent in plan(seen, NOW) if isinstance(intent, SetStatus)]
    return written


def entries_of(seen: ObservedInstance) -> list[JsonObject]:
    status = decode_json_object(encode(write_of(seen).status))
    return [entry for entry in member_list(status, "conditions") if isinstance(entry, dict)]


def entry_of(seen: ObservedInstance, kind: str) -> JsonObject:
    (entry,) = [entry for entry in entries_of(seen) if entry.get("type") == kind]
    return entry


def gates_of(seen: ObservedInstance) -> list[RemoveGate]:
    return [intent for intent in plan(seen, NOW) if isinstance(intent, RemoveGate)]


def events_of(seen: ObservedInstance) -> list[RecordEvent]:
    return [intent for intent in plan(seen, NOW) if isinstance(intent, RecordEvent)]


# --- the stored document --------------------------------------------------------------------------


@pytest.mark.parametrize("state", [ClaimGranted("x"), DENIED, AWAY, NoResult(), Disabled()])
def test_nothing_but_our_two_entries_changes(state: ClaimState) -> None:
    theirs: JsonObject = {**a_condition("Other", "False", "Why", "a\nb", None), "extra": [1]}
    programmed = a_condition("Programmed", "Unknown", "Odd", "x" * 4000, None)
    available = a_condition("Available", "True", "Available", "y", 1)
    ours = a_condition("Ready", "Unknown", "Pending")
    seen = an_instance_seen(
        programmed, ours, theirs, available, theirs, state=state, status={"networkInterfaces": [{}]}
    )
    written = entries_of(seen)
    assert [entry["type"] for entry in written] == [
        *("Programmed", "Ready", "Other", "Available", "Other", "QuotaGranted")
    ]
    assert [written[0], *written[2:5]] == [programmed, theirs, available, theirs]
    assert write_of(seen).status["networkInterfaces"] == [{}]


def test_a_second_entry_of_ours_is_dropped_and_a_second_one_of_others_stays() -> None:
    first, second = (a_condition("Ready", "False", reason) for reason in ("A", "B"))
    seen = an_instance_seen(first, PROGRAMMED, second, PROGRAMMED)
    kinds = [entry["type"] for entry in entries_of(seen)]
    assert kinds == ["Ready", "Programmed", "Programmed", "QuotaGranted"]


def test_a_huge_message_with_control_characters_is_written_as_a_legal_one() -> None:
    loud = a_condition("Programmed", "False", "ImageUnavailable", "bad\x00\n" + "x" * 2**20)
    message = entry_of(an_instance_seen(loud), "Ready")["message"]
    assert isinstance(message, str)
    assert len(message) == 1024
    assert message.startswith("bad  x")


@pytest.mark.spec("C-56")
def test_the_time_moves_exactly_with_the_status() -> None:
    stays = an_instance_seen(
        a_condition("Ready", "False", "Other", "", 1),
        a_condition("QuotaGranted", "Unknown", "PendingEvaluation", "", 1),
        state=NoResult(),
        generation=2,
    )
    for kind in ("Ready", "QuotaGranted"):
        assert entry_of(stays, kind)["lastTransitionTime"] == SINCE
    moves = an_instance_seen(
        PROGRAMMED,
        AVAILABLE,
        a_condition("Ready", "False", "Other"),
        a_condition("QuotaGranted", "Unknown", "PendingEvaluation"),
    )
    for kind in ("Ready", "QuotaGranted"):
        assert entry_of(moves, kind)["lastTransitionTime"] == NOW_TEXT


@pytest.mark.spec("C-56")
def test_the_time_moves_away_from_the_default_of_1970_with_the_status_too() -> None:
    seen = an_instance_seen(*the_schema_defaults(), state=NoResult())
    assert entry_of(seen, "Ready")["lastTransitionTime"] == NOW_TEXT  # Unknown → False
    assert entry_of(seen, "QuotaGranted")["lastTransitionTime"] == EPOCH  # Unknown → Unknown


@pytest.mark.spec("C-56")
def test_a_new_condition_begins_now() -> None:
    for kind in ("Ready", "QuotaGranted"):
        assert entry_of(an_instance_seen(), kind)["lastTransitionTime"] == NOW_TEXT


@pytest.mark.spec("C-56")
@pytest.mark.parametrize("generation", [1, 2, 9])
def test_both_carry_the_generation_that_was_read(generation: int) -> None:
    seen = an_instance_seen(QUOTA, SETTLED_READY, PROGRAMMED, AVAILABLE, generation=generation)
    for kind in ("Ready", "QuotaGranted"):
        assert entry_of(seen, kind)["observedGeneration"] == generation


def test_a_settled_instance_is_written_as_it_is_stored() -> None:
    seen = an_instance_seen(PROGRAMMED, AVAILABLE, SETTLED_READY, QUOTA)
    assert write_of(seen).status == seen.instance.status.document
    assert plan(seen, NOW).intents == (write_of(seen),)


def test_a_started_instance_is_not_touched_by_an_outage() -> None:
    seen = an_instance_seen(PROGRAMMED, AVAILABLE, SETTLED_READY, QUOTA, state=AWAY)
    assert write_of(seen).status == seen.instance.status.document


# --- what may be held back ------------------------------------------------------------------------


def test_a_waiting_status_is_provisional_and_a_denial_is_not() -> None:
    assert write_of(an_instance_seen(gates=("Quota",), state=NoResult())).may_defer
    assert not write_of(an_instance_seen(gates=("Quota",), state=DENIED)).may_defer


def test_the_write_that_the_gate_waits_for_is_never_held() -> None:
    assert not write_of(an_instance_seen(gates=("Quota",))).may_defer
    older = a_condition("QuotaGranted", "True", "QuotaAvailable", "", 1)
    assert not write_of(an_instance_seen(older, gates=("Quota",), generation=2)).may_defer
    # The grant is stored: only the rest of the status waits.
    assert write_of(an_instance_seen(QUOTA, gates=("Network", "Quota"))).may_defer


def test_the_loss_of_ready_and_terminating_are_never_held() -> None:
    assert not write_of(an_instance_seen(SETTLED_READY, QUOTA, AVAILABLE)).may_defer
    assert not write_of(an_instance_seen(QUOTA, terminating=True)).may_defer


def test_an_instance_that_comes_up_is_provisional_although_it_was_available_before() -> None:
    programming = a_condition("Programmed", "False", "ProgrammingInProgress")
    seen = an_instance_seen(programming, AVAILABLE, QUOTA)
    assert write_of(seen).may_defer


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [ClaimGranted("x"), ClaimGranted("x", is_held=True), Disabled()])
def test_the_gate_goes_with_the_write_that_stores_the_grant(state: ClaimState) -> None:
    seen = an_instance_seen(gates=("Network", "Quota"), state=state, generation=3)
    (gate,) = gates_of(seen)
    assert (gate.gate, gate.uid, gate.generation) == ("Quota", "i-1", 3)
    assert gate.after == write_of(seen)


def test_the_gate_of_a_stored_grant_waits_for_no_write() -> None:
    (gate,) = gates_of(an_instance_seen(QUOTA, gates=("Network", "Quota")))
    assert gate.after is None


def test_a_grant_stored_for_an_older_generation_is_stored_again_first() -> None:
    seen = an_instance_seen(QUOTA, gates=("Quota",), generation=2)
    (gate,) = gates_of(seen)
    assert gate.after == write_of(seen)


@pytest.mark.parametrize("state", [NoResult(), AWAY, DENIED])
def test_a_stored_grant_opens_nothing_without_the_result_of_this_reconcile(
    state: ClaimState,
) -> None:
    assert gates_of(an_instance_seen(QUOTA, gates=("Quota",), state=state)) == []


@pytest.mark.parametrize("gates", [(), None, ("Network",)])
def test_without_the_gate_there_is_nothing_to_do(gates: tuple[str, ...] | None) -> None:
    assert gates_of(an_instance_seen(gates=gates)) == []


# --- going, and what an older operator left -------------------------------------------------------


def test_a_terminating_instance_is_reported_and_otherwise_left_alone() -> None:
    quota = a_condition("QuotaGranted", "False", "QuotaExceeded", "no room")
    seen = an_instance_seen(quota, gates=("Quota",), terminating=True, generation=5)
    assert plan(seen, NOW).intents == (write_of(seen),)
    assert entry_of(seen, "QuotaGranted") == quota
    assert entry_of(seen, "Ready")["reason"] == "Terminating"


@pytest.mark.parametrize("terminating", [False, True])
def test_finalizers_of_the_older_operator_go_and_others_stay(terminating: bool) -> None:
    seen = an_instance_seen(finalizers=("theirs", *RETIRED), terminating=terminating)
    removed = [intent for intent in plan(seen, NOW) if isinstance(intent, RemoveFinalizer)]
    assert tuple(intent.finalizer for intent in removed) == RETIRED
    assert {intent.uid for intent in removed} == {"i-1"}


# --- looks and events -----------------------------------------------------------------------------


def looks_of(seen: ObservedInstance, now: datetime = NOW) -> list[tuple[str, timedelta]]:
    waits = [intent for intent in plan(seen, now) if isinstance(intent, RequeueAfter)]
    return [(wait.reason, wait.retry_after) for wait in waits]


def test_an_undecided_instance_is_looked_at_again_by_its_age() -> None:
    seen = an_instance_seen(gates=("Quota",), state=NoResult())
    assert looks_of(seen) == [("PendingEvaluation", timedelta(seconds=1))]
    assert looks_of(seen, NOW + timedelta(hours=1))[0][1] == timedelta(seconds=300)
    assert looks_of(an_instance_seen(gates=("Quota",), state=DENIED))[0][0] == "QuotaExceeded"
    assert looks_of(an_instance_seen(gates=("Quota",))) == []


@pytest.mark.parametrize("born", ["", "yesterday", "2036-01-01T00:00:00Z"])
def test_an_instance_of_no_age_is_young(born: str) -> None:
    seen = an_instance_seen(state=NoResult(), born=born)
    assert looks_of(seen) == [("PendingEvaluation", timedelta(seconds=1))]


def test_a_refusal_is_recorded_once_and_after_its_write() -> None:
    seen = an_instance_seen(gates=("Quota",), state=DENIED)
    (event,) = events_of(seen)
    key = seen.instance.key
    assert (event.reason, event.message, event.type) == ("QuotaExceeded", "no room", "Warning")
    assert event.action == "ClaimingQuota"
    assert event.after == write_of(seen)
    assert event.related == ObjectKey(key.plane, DEPLOYMENT, key.namespace, "web")
    assert event.related_uid == "d-1"
    stored = a_condition("QuotaGranted", "False", "QuotaExceeded", "no room")
    assert events_of(an_instance_seen(stored, gates=("Quota",), state=DENIED)) == []


def test_the_removed_gate_is_recorded_after_its_removal() -> None:
    seen = an_instance_seen(gates=("Quota",), owner="Other")
    (event,) = events_of(seen)
    assert (event.reason, event.type) == ("QuotaGranted", "Normal")
    assert event.action == "RemovingSchedulingGate"
    assert [event.after] == gates_of(seen)
    assert (event.related, event.related_uid) == (None, None)


def test_a_network_failure_is_recorded_once() -> None:
    refusal = ReportedCondition("Ready", "False", "NetworkFailedToCreate", "no addresses left")
    seen = an_instance_seen(gates=("Network",), refusal=refusal)
    (event,) = events_of(seen)
    assert (event.reason, event.action) == ("NetworkFailedToCreate", "ProvisioningNetwork")
    stored = a_condition("Ready", "False", "NetworkFailedToCreate")
    assert events_of(an_instance_seen(stored, gates=("Network",), refusal=refusal)) == []


# --- since when it is denied ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "since"),
    [
        ([a_condition("QuotaGranted", "False", "X")], datetime(2026, 6, 20, 9, 0, 5, tzinfo=UTC)),
        ([a_condition("QuotaGranted", "True", "X")], None),
        ([{"type": "QuotaGranted", "status": "False", "lastTransitionTime": "x"}], None),
        (["junk", a_condition("Ready", "False", "X")], None),
        ([], None),
    ],
)
def test_since_when_it_is_denied_is_read_from_what_is_stored(
    entries: list[JsonObject], since: datetime | None
) -> None:
    assert read_denied_since({"conditions": list(entries)}) == since
