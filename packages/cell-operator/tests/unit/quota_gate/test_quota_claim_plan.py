"""What is done about the claim found in a slot (quota.md B3, B6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_cell_operator.quota_gate.findings import (
    ClaimDenied,
    ClaimInvalid,
    Granted,
    HeldByOtherCell,
    HeldByOtherService,
    Said,
    Shortage,
    Undecided,
    Unevaluated,
)
from compute_cell_operator.quota_gate.found import (
    Different,
    Found,
    Holder,
    Holding,
    Leaving,
    Lookup,
    Nothing,
    OtherService,
    Recorded,
    Refused,
    Strange,
    Waiting,
    derive_holder,
)
from compute_cell_operator.quota_gate.plan import (
    AdoptClaim,
    ClaimPlan,
    ClaimStep,
    Postpone,
    Postponed,
    Recreated,
    ReleaseClaim,
    RequestClaim,
    Slot,
    is_slot_wanted,
    plan_claim,
)
from compute_cell_operator.quota_gate.size import Size
from compute_operator_kit.keys import Uid

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
SIZE = Size(1000, 2048).requests
WAITING = Slot(Uid("i-1"), SIZE)
STARTED = Slot(Uid("i-1"), SIZE, is_started=True, had_claim=True)
TENANTS = Strange("c-1", "default", "instance-web-0", "")
ANOTHERS = Strange("c-1", "default", "instance-web-0", "lhr-1")
STORAGE = OtherService("default", "instance-web-0", "storage.example.com/gib")
LOST = Postpone(Recreated.LOST, NOW + timedelta(seconds=10))
RELEASE = ReleaseClaim("c-1")


def a_different(holder: Holder, *, same_size: bool = True) -> Different:
    return Different("c-1", holder, is_same_size=same_size)


@pytest.mark.spec("OU-03", "AT-13")
@pytest.mark.parametrize(
    ("found", "waiting", "started"),
    [
        pytest.param(Nothing(), (RequestClaim(),), (LOST,), id="absent"),
        pytest.param(
            TENANTS,
            (RELEASE, RequestClaim(Recreated.FOREIGN)),
            (RELEASE, RequestClaim(Recreated.FOREIGN)),
            id="a tenant's",
        ),
        pytest.param(ANOTHERS, (), (), id="another cell's"),
        pytest.param(STORAGE, (), (), id="another service's"),
        pytest.param(a_different(Holder.LIVE), (), (), id="of a live one"),
        pytest.param(a_different(Holder.LIVE, same_size=False), (), (), id="of a live one, size"),
        pytest.param(a_different(Holder.UNKNOWN), (), (), id="of nobody knows whom"),
        pytest.param(
            a_different(Holder.GONE, same_size=False),
            (RELEASE, RequestClaim(Recreated.SIZE_CHANGED)),
            (),
            id="other size",
        ),
        pytest.param(
            a_different(Holder.OURSELVES, same_size=False),
            (RELEASE, RequestClaim(Recreated.SIZE_CHANGED)),
            (),
            id="changed after its grant",
        ),
        pytest.param(
            a_different(Holder.GONE), (AdoptClaim("c-1"),), (AdoptClaim("c-1"),), id="of a gone one"
        ),
        pytest.param(
            a_different(Holder.NOBODY), (RELEASE, RequestClaim()), (RELEASE, LOST), id="no UID"
        ),
        pytest.param(
            a_different(Holder.UNRECORDED),
            (AdoptClaim("c-1"),),
            (AdoptClaim("c-1"),),
            id="of this slot, no UID",
        ),
        pytest.param(
            a_different(Holder.UNRECORDED, same_size=False),
            (RELEASE, RequestClaim(Recreated.SIZE_CHANGED)),
            (),
            id="of this slot, no UID, other size",
        ),
        pytest.param(Leaving(), (), (), id="releasing"),
        pytest.param(Waiting(NOW), (), (), id="pending"),
        pytest.param(Holding("yours"), (), (), id="granted"),
        pytest.param(
            Refused("c-1", "no"),
            (RELEASE, Postpone(Recreated.DENIED)),
            (RELEASE, Postpone(Recreated.LOST)),
            id="denied",
        ),
        pytest.param(
            Refused("c-1", "bad", is_invalid=True),
            (RELEASE, Postpone(Recreated.DENIED)),
            (RELEASE, Postpone(Recreated.LOST)),
            id="invalid",
        ),
    ],
)
def test_every_row_of_the_table_has_its_steps(
    found: Found, waiting: tuple[ClaimStep, ...], started: tuple[ClaimStep, ...]
) -> None:
    assert plan_claim(found, WAITING, NOW).steps == waiting
    assert plan_claim(found, STARTED, NOW).steps == started


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Nothing(), Undecided()),
        (TENANTS, Undecided()),
        (ANOTHERS, HeldByOtherCell("default", "instance-web-0", "lhr-1")),
        (STORAGE, HeldByOtherService("default", "instance-web-0", "storage.example.com/gib")),
        (a_different(Holder.GONE), Undecided()),
        (Leaving(), Undecided()),
        (Waiting(NOW), Unevaluated(NOW)),
        (Holding("yours"), Granted("yours")),
        (Refused("c-1", "bad", is_invalid=True), ClaimInvalid("bad")),
        (
            Refused("c-1", "no", shortages=(Shortage("x/vcpus", "2 left"),)),
            ClaimDenied("no", (Shortage("x/vcpus", "2 left"),)),
        ),
    ],
)
def test_what_is_found_is_what_is_known_meanwhile(found: Found, said: Said) -> None:
    assert plan_claim(found, WAITING, NOW).said == said


@pytest.mark.parametrize(
    "found",
    [
        Nothing(),
        TENANTS,
        ANOTHERS,
        STORAGE,
        a_different(Holder.UNRECORDED),
        a_different(Holder.GONE),
        a_different(Holder.NOBODY),
        a_different(Holder.GONE, same_size=False),
        Waiting(NOW),
        Holding("yours"),
        Leaving(),
    ],
)
def test_nothing_is_made_adopted_or_taken_for_a_terminating_instance(found: Found) -> None:
    going = Slot(Uid("i-1"), SIZE, is_terminating=True)
    assert plan_claim(found, going, NOW).steps == ()


def test_what_a_refused_claim_reserves_is_given_back_for_a_terminating_one_too() -> None:
    going = Slot(Uid("i-1"), SIZE, is_terminating=True)
    assert plan_claim(Refused("c-1", "no"), going, NOW).steps == (RELEASE,)


def postponed(seconds: int, because: Recreated, requests: dict[str, int] | None = None) -> Slot:
    until = NOW + timedelta(seconds=seconds)
    wait = Postponed(until, because, dict(SIZE) if requests is None else requests)
    started = because is Recreated.LOST
    return Slot(Uid("i-1"), SIZE, is_started=started, had_claim=started, postponed=wait)


@pytest.mark.parametrize("because", [Recreated.DENIED, Recreated.LOST])
def test_a_claim_is_asked_for_again_when_its_time_has_come_and_not_before(
    because: Recreated,
) -> None:
    assert plan_claim(Nothing(), postponed(1, because), NOW) == ClaimPlan(Undecided())
    due = plan_claim(Nothing(), postponed(0, because), NOW)
    assert due == ClaimPlan(Undecided(), (RequestClaim(because),))


def test_another_size_than_the_denied_one_is_asked_for_at_once() -> None:
    denied = postponed(600, Recreated.DENIED, requests=dict(Size(4000, 2048).requests))
    assert plan_claim(Nothing(), denied, NOW).steps == (RequestClaim(),)


def test_a_loss_is_waited_out_whatever_the_size() -> None:
    lost = postponed(5, Recreated.LOST, requests={})
    assert plan_claim(Nothing(), lost, NOW).steps == ()


def test_a_started_instance_that_never_had_a_claim_gets_one_without_a_loss() -> None:
    never = Slot(Uid("i-1"), SIZE, is_started=True)
    assert plan_claim(Nothing(), never, NOW).steps == (RequestClaim(),)


# --- who the recorded UID is ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "looked_up", "holder"),
    [
        (Recorded("ns-a", ""), None, Holder.UNRECORDED),
        (Recorded("ns-b", ""), None, Holder.NOBODY),
        (Recorded("", ""), None, Holder.NOBODY),
        (Recorded("ns-a", "i-1"), None, Holder.OURSELVES),
        (Recorded("ns-a", "i-0"), None, Holder.GONE),
        (Recorded("ns-b", "i-9"), None, Holder.UNKNOWN),
        (Recorded("ns-b", "i-9"), Lookup(None), Holder.GONE),
        (Recorded("ns-b", "i-9"), Lookup(Uid("i-10")), Holder.GONE),
        (Recorded("ns-b", "i-9"), Lookup(Uid("i-9")), Holder.LIVE),
    ],
)
def test_a_recorded_uid_is_gone_only_where_that_is_proven(
    recorded: Recorded, looked_up: Lookup | None, holder: Holder
) -> None:
    assert derive_holder(recorded, "ns-a", Uid("i-1"), looked_up) is holder


# --- wanted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ordinal", "desired", "wanted"),
    [(0, 1, True), (1, 1, False), (0, 0, False), (0, None, False), (None, 3, False)],
)
def test_a_slot_is_wanted_while_its_deployment_wants_it(
    ordinal: int | None, desired: int | None, wanted: bool
) -> None:
    assert is_slot_wanted(ordinal, desired) is wanted
