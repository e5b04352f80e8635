"""What the worker remembers of a slot, and what it forgets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compute_api_types import labels
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.claim import Occupant
from compute_cell_operator.quota_gate.findings import BackendUnavailable, Granted, Undecided
from compute_cell_operator.quota_gate.ledger import REMEMBERED_RELEASES, Ledger, Record
from compute_cell_operator.quota_gate.occupancy import Subject
from compute_cell_operator.quota_gate.place import Place
from compute_cell_operator.quota_gate.plan import Postpone, Recreated
from compute_cell_operator.quota_gate.size import Size
from compute_operator_kit.keys import ObjectKey, Uid
from compute_quota_client import Absent, FoundClaim, Pending
from compute_quota_client import Granted as GrantedClaim
from compute_quota_client.testing import a_found_claim

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, INSTANCE, NS, "web-0")
PLACE = Place("acme", "shop", "instance-web-0")


def a_subject(
    uid: str = "u1",
    cores: int = 1000,
    *,
    is_started: bool = False,
    denied_since: datetime | None = None,
) -> Subject:
    return Subject(
        occupant=Occupant(NS, "web-0", Uid(uid)),
        size=Size(cores, 2048),
        is_started=is_started,
        is_terminating=False,
        had_claim=False,
        denied_since=denied_since,
        owner=None,
    )


def a_record(subject: Subject | None = None) -> Record:
    record = Record(KEY)
    record.enter(subject or a_subject(), NOW)
    return record


def a_claim(
    uid: str = "claim", *, recorded: str = "u1", age: timedelta | None = None
) -> FoundClaim:
    created = NOW - (age or timedelta())
    return replace(
        a_found_claim(), uid=uid, annotations={labels.INSTANCE_UID: recorded}, created_at=created
    )


# --- who is in the slot ---------------------------------------------------------------------------


def test_a_successor_inherits_neither_finding_nor_wait_nor_count() -> None:
    record = a_record()
    record.find(a_subject(), Granted("yes"))
    record.postpone(Postpone(Recreated.DENIED), a_subject().requests, NOW)
    record.enter(a_subject("u2"), NOW)
    assert record.finding is None
    assert record.postponed is None
    assert record.attempts.count == 0
    assert record.attempts.uid == "u2"


def test_the_same_instance_keeps_what_is_known_of_it() -> None:
    record = a_record()
    record.find(a_subject(), Undecided())
    record.enter(a_subject(is_started=True), NOW)
    assert record.is_known(a_subject())


def test_a_stored_denial_goes_on_where_a_former_process_left_it() -> None:
    record = a_record(a_subject(denied_since=NOW - timedelta(minutes=2)))
    assert record.postponed is not None
    assert record.postponed.because is Recreated.DENIED
    assert record.postponed.until > NOW + timedelta(minutes=1)
    assert record.attempts.count == 3  # 30 s and 60 s are over


def test_the_last_verdict_survives_the_instance_it_was_made_for() -> None:
    record = a_record()
    record.note(a_claim())
    record.leave()
    record.enter(a_subject("u2"), NOW)
    assert isinstance(record.last, GrantedClaim)


# --- findings -------------------------------------------------------------------------------------


def test_a_finding_holds_for_one_instance_and_one_size() -> None:
    record = a_record()
    record.find(a_subject(), Granted("yes"))
    assert record.is_known(a_subject())
    assert not record.is_known(a_subject("u2"))
    assert not record.is_known(a_subject(cores=2000))


def test_only_what_changed_is_news() -> None:
    record = a_record()
    assert record.find(a_subject(), Undecided())
    assert not record.find(a_subject(), Undecided())
    assert record.find(a_subject(), BackendUnavailable("acme", "getting", "away"))


@pytest.mark.parametrize(
    ("is_held", "recorded", "is_due"),
    [(True, "u0", True), (True, "u1", False), (False, "u0", False)],
)
def test_an_adoption_is_due_while_a_held_grant_records_a_predecessor(
    is_held: bool, recorded: str, is_due: bool
) -> None:
    record = a_record()
    record.note(a_claim(recorded=recorded))
    record.find(a_subject(), Granted("yes", is_held=is_held))
    assert record.is_adoption_due is is_due


# --- claims ---------------------------------------------------------------------------------------


def test_a_claim_we_gave_up_is_not_believed_when_a_watch_shows_it_late() -> None:
    record = a_record()
    record.note(a_claim("old"))
    record.note_release("old")
    assert record.last is None
    record.note(a_claim("old"))
    assert record.last is None
    record.note(a_claim("new"))
    assert record.last is not None


def test_releases_are_remembered_to_a_bound() -> None:
    record = a_record()
    for number in range(20):
        record.note_release(f"c{number}")
    assert record.released == tuple(f"c{number}" for number in range(20))[-REMEMBERED_RELEASES:]


def test_losses_count_on_until_a_claim_has_stood_for_an_hour() -> None:
    record = a_record()
    step = Postpone(Recreated.LOST, NOW + timedelta(seconds=10))
    record.postpone(step, a_subject().requests, NOW)
    assert record.postponed is not None
    assert record.postponed.until == NOW + timedelta(seconds=10)
    record.note_request()
    record.note(a_claim(age=timedelta(minutes=59)))
    record.note_verdict(Absent(), NOW)
    assert record.attempts.count == 1
    record.note(a_claim(age=timedelta(hours=1)))
    record.note_verdict(Absent(), NOW)
    assert record.attempts.count == 0


def test_a_grant_ends_a_series_of_denials_and_no_series_of_losses() -> None:
    granted = GrantedClaim(a_claim(), "yes")
    for because, left in ((Recreated.DENIED, 0), (Recreated.LOST, 1)):
        record = a_record()
        record.postpone(Postpone(because), a_subject().requests, NOW)
        record.note_verdict(granted, NOW)
        assert record.attempts.count == left


def test_a_pending_claim_ends_nothing() -> None:
    record = a_record()
    record.postpone(Postpone(Recreated.DENIED), a_subject().requests, NOW)
    record.note_verdict(Pending(a_claim(), NOW), NOW)
    assert record.attempts.count == 1


def test_refusals_of_another_size_do_not_count() -> None:
    record = a_record()
    for _ in range(3):
        record.postpone(Postpone(Recreated.DENIED), a_subject().requests, NOW)
    record.postpone(Postpone(Recreated.DENIED), a_subject(cores=2000).requests, NOW)
    assert record.attempts.count == 1


def test_what_is_due_is_the_wait_or_else_the_slow_retry() -> None:
    record = a_record()
    assert record.due is None
    record.retry_at = NOW
    assert record.due == NOW
    record.postpone(Postpone(Recreated.LOST, NOW + timedelta(seconds=10)), {}, NOW)
    assert record.due == NOW + timedelta(seconds=10)


# --- finding records ------------------------------------------------------------------------------


def test_a_record_is_found_by_name_claim_deployment_and_namespace_until_it_is_forgotten() -> None:
    ledger = Ledger()
    record = ledger.open(KEY)
    ledger.place(record, PLACE)
    assert ledger.open(KEY) is record
    assert ledger.at(PLACE) is record
    assert ledger.of_deployment(NS, "web") == (KEY,)
    assert ledger.in_namespace(NS) == (KEY,)
    ledger.forget(KEY)
    ledger.forget(KEY)
    assert (ledger.find(KEY), ledger.at(PLACE)) == (None, None)
    assert (ledger.of_deployment(NS, "web"), ledger.in_namespace(NS)) == ((), ())
    assert len(ledger) == 0


def test_a_claim_that_moved_is_found_where_it_is_now() -> None:
    ledger = Ledger()
    record = ledger.open(KEY)
    ledger.place(record, PLACE)
    moved = Place("other", "shop", "instance-web-0")
    ledger.place(record, moved)
    assert ledger.at(PLACE) is None
    assert ledger.at(moved) is record


def test_a_name_that_is_no_slots_has_no_deployment() -> None:
    ledger = Ledger()
    odd = ObjectKey(CELL, INSTANCE, NS, "odd")
    ledger.open(odd)
    assert ledger.in_namespace(NS) == (odd,)
    ledger.forget(odd)
    assert len(ledger) == 0
