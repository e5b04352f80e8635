"""What is kept of a slot between reconciles, and what ends with its Instance."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compute_api_types import labels
from compute_api_types.sizes import Size
from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.quota.observe import InstanceFacts
from compute_cell_operator.quota.plan import Postpone, Recreated
from compute_cell_operator.quota.project_ref import ClaimRef, InstanceRef
from compute_cell_operator.quota.result import (
    BackendUnavailable,
    ClaimAbsent,
    ClaimDenied,
    ClaimGranted,
    ClaimReleasing,
    NoResult,
)
from compute_cell_operator.quota.state import REMEMBERED_RELEASES, SlotState, SlotTable
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_quota_client import Absent, FoundClaim, Granted, Pending
from compute_quota_client.testing import a_found_claim

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
REF = ClaimRef("acme", "shop", "instance-web-0")


def an_instance(
    uid: str = "u1",
    cores: int = 1000,
    *,
    is_started: bool = False,
    denied_since: datetime | None = None,
    is_taken_over: bool = False,
) -> InstanceFacts:
    return InstanceFacts(
        ref=InstanceRef(NS, "web-0", Uid(uid)),
        size=Size(cores, 2048),
        is_started=is_started,
        is_terminating=False,
        had_claim=False,
        denied_since=denied_since,
        owner=None,
        is_taken_over=is_taken_over,
    )


def a_slot(instance: InstanceFacts | None = None) -> SlotState:
    slot = SlotState(KEY)
    slot.occupy(instance or an_instance(), NOW)
    return slot


def a_table() -> SlotTable:
    return SlotTable(lambda _: None)


def a_claim(
    uid: str = "claim", *, recorded: str = "u1", age: timedelta | None = None
) -> FoundClaim:
    created = NOW - (age or timedelta())
    return replace(
        a_found_claim(), uid=uid, annotations={labels.INSTANCE_UID: recorded}, created_at=created
    )


# --- the Instance in the slot ---------------------------------------------------------------------


def test_a_successor_inherits_neither_result_nor_wait_nor_count() -> None:
    slot = a_slot()
    slot.set_result(an_instance(), ClaimGranted("yes"))
    slot.postpone(Postpone(Recreated.DENIED), an_instance().requests, NOW)
    slot.occupy(an_instance("u2"), NOW)
    assert slot.result is None
    assert slot.postponed is None
    assert slot.attempts.count == 0
    assert slot.attempts.uid == "u2"


def test_the_same_instance_keeps_what_is_known_of_it() -> None:
    slot = a_slot()
    slot.set_result(an_instance(), ClaimAbsent())
    slot.occupy(an_instance(is_started=True), NOW)
    assert slot.has_result_for(an_instance())


def test_a_stored_denial_goes_on_where_a_former_process_left_it() -> None:
    slot = a_slot(an_instance(denied_since=NOW - timedelta(minutes=2)))
    assert slot.postponed is not None
    assert slot.postponed.because is Recreated.DENIED
    assert slot.postponed.until > NOW + timedelta(minutes=1)
    assert slot.attempts.count == 3  # 30 s and 60 s are over


KEEP = Postpone(Recreated.DENIED, kept="claim")


@pytest.mark.spec("OU-03")
@pytest.mark.parametrize("age", [None, timedelta(0), timedelta(seconds=40), timedelta(days=30)])
def test_a_claim_that_was_taken_over_denied_is_kept_for_more_than_ten_minutes(
    age: timedelta | None,
) -> None:
    denied_since = NOW - age if age is not None else None
    instance = an_instance(denied_since=denied_since, is_taken_over=True)
    slot = a_slot(instance)
    counted = slot.attempts.count
    slot.postpone(KEEP, instance.requests, NOW)
    assert slot.postponed is not None
    assert slot.postponed.kept == "claim"
    assert timedelta(minutes=15) < slot.postponed.until - NOW <= timedelta(minutes=27)
    # The denial was counted with its age: keeping its claim is no further one.
    assert slot.attempts.count == max(1, counted)
    assert slot.describe(instance, "claim").is_taken_over


@pytest.mark.spec("OU-03")
def test_a_claim_that_this_process_requested_is_not_taken_over() -> None:
    instance = an_instance(is_taken_over=True)
    slot = a_slot(instance)
    slot.note_request()
    assert not slot.describe(instance, "claim").is_taken_over
    successor = an_instance("u2", is_taken_over=True)
    slot.occupy(successor, NOW)
    assert slot.describe(successor, "claim").is_taken_over
    assert not slot.describe(an_instance("u2"), "claim").is_taken_over


@pytest.mark.spec("OU-03")
def test_a_kept_claim_that_is_granted_ends_the_wait_and_another_claim_does_not() -> None:
    slot = a_slot(an_instance(is_taken_over=True))
    slot.postpone(KEEP, an_instance().requests, NOW)
    slot.note_verdict(Granted(a_claim("other"), "yes"), NOW)
    assert slot.postponed is not None
    slot.note_verdict(Granted(a_claim(), "yes"), NOW)
    assert slot.postponed is None
    assert slot.attempts.count == 0


def test_the_last_verdict_survives_the_instance_it_was_made_for() -> None:
    slot = a_slot()
    slot.note_claim(a_claim())
    slot.vacate()
    slot.occupy(an_instance("u2"), NOW)
    assert isinstance(slot.verdict, Granted)


# --- results --------------------------------------------------------------------------------------


def test_a_result_holds_for_one_instance_and_one_size() -> None:
    slot = a_slot()
    slot.set_result(an_instance(), ClaimGranted("yes"))
    assert slot.has_result_for(an_instance())
    assert not slot.has_result_for(an_instance("u2"))
    assert not slot.has_result_for(an_instance(cores=2000))


def test_only_a_result_that_is_reported_otherwise_is_a_change() -> None:
    slot = a_slot()
    assert slot.set_result(an_instance(), ClaimAbsent())
    assert not slot.set_result(an_instance(), ClaimAbsent())
    assert not slot.set_result(an_instance(), ClaimReleasing())
    assert slot.set_result(an_instance(), BackendUnavailable("acme", "getting", "away"))


def test_a_denial_is_kept_instead_of_a_state_that_is_no_news() -> None:
    slot, denied = a_slot(), ClaimDenied("no")
    away = BackendUnavailable("acme", "getting", "away")
    assert slot.keep_denial(an_instance(), away) == away
    slot.set_result(an_instance(), denied)
    for state in (away, NoResult(), ClaimAbsent(), ClaimReleasing()):
        assert slot.keep_denial(an_instance(), state) == denied
    assert slot.keep_denial(an_instance(), ClaimGranted("yes")) == ClaimGranted("yes")
    assert slot.keep_denial(an_instance("u2"), away) == away
    assert slot.keep_denial(an_instance(cores=2000), away) == away


@pytest.mark.parametrize(
    ("is_held", "recorded", "is_due"),
    [(True, "u0", True), (True, "u1", False), (False, "u0", False)],
)
def test_an_adoption_is_due_while_a_held_grant_records_a_predecessor(
    is_held: bool, recorded: str, is_due: bool
) -> None:
    slot = a_slot()
    slot.note_claim(a_claim(recorded=recorded))
    slot.set_result(an_instance(), ClaimGranted("yes", is_held=is_held))
    assert slot.is_adoption_due is is_due


# --- claims ---------------------------------------------------------------------------------------


def test_a_released_claim_does_not_count_when_a_watch_shows_it_late() -> None:
    slot = a_slot()
    slot.note_claim(a_claim("old"))
    slot.note_release("old")
    assert slot.verdict is None
    slot.note_claim(a_claim("old"))
    assert slot.verdict is None
    slot.note_claim(a_claim("new"))
    assert slot.verdict is not None


def test_releases_are_remembered_to_a_bound() -> None:
    slot = a_slot()
    for number in range(20):
        slot.note_release(f"c{number}")
    assert slot.released == tuple(f"c{number}" for number in range(20))[-REMEMBERED_RELEASES:]


def test_losses_count_on_until_a_claim_has_stood_for_an_hour() -> None:
    slot = a_slot()
    step = Postpone(Recreated.LOST, NOW + timedelta(seconds=10))
    slot.postpone(step, an_instance().requests, NOW)
    assert slot.postponed is not None
    assert slot.postponed.until == NOW + timedelta(seconds=10)
    slot.note_request()
    slot.note_claim(a_claim(age=timedelta(minutes=59)))
    slot.note_verdict(Absent(), NOW)
    assert slot.attempts.count == 1
    slot.note_claim(a_claim(age=timedelta(hours=1)))
    slot.note_verdict(Absent(), NOW)
    assert slot.attempts.count == 0


def test_a_grant_ends_a_series_of_denials_and_no_series_of_losses() -> None:
    granted = Granted(a_claim(), "yes")
    for because, left in ((Recreated.DENIED, 0), (Recreated.LOST, 1)):
        slot = a_slot()
        slot.postpone(Postpone(because), an_instance().requests, NOW)
        slot.note_verdict(granted, NOW)
        assert slot.attempts.count == left


def test_a_pending_claim_ends_nothing() -> None:
    slot = a_slot()
    slot.postpone(Postpone(Recreated.DENIED), an_instance().requests, NOW)
    slot.note_verdict(Pending(a_claim(), NOW), NOW)
    assert slot.attempts.count == 1


def test_refusals_of_another_size_do_not_count() -> None:
    slot = a_slot()
    for _ in range(3):
        slot.postpone(Postpone(Recreated.DENIED), an_instance().requests, NOW)
    slot.postpone(Postpone(Recreated.DENIED), an_instance(cores=2000).requests, NOW)
    assert slot.attempts.count == 1


def test_what_is_due_is_the_wait_or_else_the_slow_retry() -> None:
    slot = a_slot()
    assert slot.due is None
    slot.retry_at = NOW
    assert slot.due == NOW
    slot.postpone(Postpone(Recreated.LOST, NOW + timedelta(seconds=10)), {}, NOW)
    assert slot.due == NOW + timedelta(seconds=10)


# --- the table ------------------------------------------------------------------------------------


def test_a_slot_is_indexed_by_key_claim_deployment_and_namespace_until_it_is_forgotten() -> None:
    table = a_table()
    slot = table.open(KEY)
    table.set_claim(slot, REF)
    assert table.open(KEY) is slot
    assert table.of_claim(REF) is slot
    assert table.of_deployment(NS, "web") == (KEY,)
    assert table.in_namespace(NS) == (KEY,)
    table.forget(KEY)
    table.forget(KEY)
    assert (table.find(KEY), table.of_claim(REF)) == (None, None)
    assert (table.of_deployment(NS, "web"), table.in_namespace(NS)) == ((), ())
    assert len(table) == 0


def test_a_check_marks_the_slot_and_enqueues_its_key() -> None:
    enqueued: list[ObjectKey] = []
    table = SlotTable(enqueued.append)
    table.check(KEY)
    assert table.open(KEY).needs_check
    assert enqueued == [KEY]


def test_a_claim_that_moved_is_indexed_where_it_is_now() -> None:
    table = a_table()
    slot = table.open(KEY)
    table.set_claim(slot, REF)
    moved = ClaimRef("other", "shop", "instance-web-0")
    table.set_claim(slot, moved)
    assert table.of_claim(REF) is None
    assert table.of_claim(moved) is slot


def test_a_name_that_is_no_slots_has_no_deployment() -> None:
    table = a_table()
    odd = ObjectKey(CELL, INSTANCE, NS, "odd")
    table.open(odd)
    assert table.in_namespace(NS) == (odd,)
    table.forget(odd)
    assert len(table) == 0
