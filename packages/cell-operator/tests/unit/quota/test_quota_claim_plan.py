"""The steps for the claim of a slot (quota.md B3, B6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compute_api_types.sizes import Size
from compute_cell_operator.quota.observe import derive_holder
from compute_cell_operator.quota.plan import (
    AdoptClaim,
    ClaimStep,
    Postpone,
    Postponed,
    QuotaSlot,
    Recreated,
    ReleaseClaim,
    RequestClaim,
    is_slot_wanted,
    plan_claim,
)
from compute_cell_operator.quota.project_ref import (
    ClaimSubject,
    InstanceRef,
    ProjectUnresolvable,
)
from compute_cell_operator.quota.result import (
    AdmissionRejected,
    BackendUnavailable,
    ClaimAbsent,
    ClaimDenied,
    ClaimGranted,
    ClaimHolder,
    ClaimInvalid,
    ClaimMismatched,
    ClaimPending,
    ClaimReleasing,
    ClaimState,
    ClaimUnlabelled,
    Disabled,
    HeldByOtherCell,
    HeldByOtherService,
    NamespaceNotFound,
    NoResult,
    ProjectNotFound,
    Shortage,
    SizeUnknown,
)
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Absent

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
SIZE = Size(1000, 2048).requests
WAITING = QuotaSlot(Uid("i-1"), SIZE, "c-1")
STARTED = replace(WAITING, is_started=True, had_claim=True)
ANOTHERS = HeldByOtherCell("default", "instance-web-0", "lhr-1")
STORAGE = HeldByOtherService("default", "instance-web-0", "storage.example.com/gib")
LOST = Postpone(Recreated.LOST, NOW + timedelta(seconds=10))
RELEASE = ReleaseClaim("c-1")


def a_mismatch(holder: ClaimHolder, *, same_size: bool = True) -> ClaimMismatched:
    return ClaimMismatched(holder, is_same_size=same_size)


@pytest.mark.spec("OU-03", "AT-13")
@pytest.mark.parametrize(
    ("state", "waiting", "started"),
    [
        pytest.param(ClaimAbsent(), (RequestClaim(),), (LOST,), id="absent"),
        pytest.param(
            ClaimUnlabelled(),
            (RELEASE, RequestClaim(Recreated.FOREIGN)),
            (RELEASE, RequestClaim(Recreated.FOREIGN)),
            id="a tenant's",
        ),
        pytest.param(ANOTHERS, (), (), id="another cell's"),
        pytest.param(STORAGE, (), (), id="another service's"),
        pytest.param(a_mismatch(ClaimHolder.LIVE), (), (), id="of a live one"),
        pytest.param(
            a_mismatch(ClaimHolder.LIVE, same_size=False), (), (), id="of a live one, size"
        ),
        pytest.param(a_mismatch(ClaimHolder.UNKNOWN), (), (), id="of an unknown one"),
        pytest.param(
            a_mismatch(ClaimHolder.GONE, same_size=False),
            (RELEASE, RequestClaim(Recreated.SIZE_CHANGED)),
            (),
            id="other size",
        ),
        pytest.param(
            a_mismatch(ClaimHolder.SELF, same_size=False),
            (RELEASE, RequestClaim(Recreated.SIZE_CHANGED)),
            (),
            id="changed after its grant",
        ),
        pytest.param(
            a_mismatch(ClaimHolder.GONE),
            (AdoptClaim("c-1"),),
            (AdoptClaim("c-1"),),
            id="of a gone one",
        ),
        pytest.param(
            a_mismatch(ClaimHolder.NONE), (RELEASE, RequestClaim()), (RELEASE, LOST), id="no UID"
        ),
        pytest.param(
            a_mismatch(ClaimHolder.UNRECORDED),
            (AdoptClaim("c-1"),),
            (AdoptClaim("c-1"),),
            id="of this slot, no UID",
        ),
        pytest.param(
            a_mismatch(ClaimHolder.UNRECORDED, same_size=False),
            (RELEASE, RequestClaim(Recreated.SIZE_CHANGED)),
            (),
            id="of this slot, no UID, other size",
        ),
        pytest.param(ClaimReleasing(), (), (), id="releasing"),
        pytest.param(ClaimPending(NOW), (), (), id="pending"),
        pytest.param(ClaimGranted("yours"), (), (), id="granted"),
        pytest.param(
            ClaimDenied("no"),
            (RELEASE, Postpone(Recreated.DENIED)),
            (RELEASE, Postpone(Recreated.LOST)),
            id="denied",
        ),
        pytest.param(
            ClaimInvalid("bad"),
            (RELEASE, Postpone(Recreated.DENIED)),
            (RELEASE, Postpone(Recreated.LOST)),
            id="invalid",
        ),
    ],
)
def test_every_row_of_the_table_has_its_steps(
    state: ClaimState, waiting: tuple[ClaimStep, ...], started: tuple[ClaimStep, ...]
) -> None:
    assert plan_claim(state, WAITING, NOW) == waiting
    assert plan_claim(state, STARTED, NOW) == started


@pytest.mark.parametrize(
    "state",
    [
        Disabled(),
        SizeUnknown("x"),
        ProjectUnresolvable("ID", "because"),
        NoResult(),
        BackendUnavailable("acme", "getting", "away"),
        NamespaceNotFound("acme", "default"),
        ProjectNotFound("acme"),
        AdmissionRejected("acme", "no"),
    ],
)
def test_a_state_without_a_claim_that_was_read_has_no_steps(state: ClaimState) -> None:
    assert plan_claim(state, WAITING, NOW) == plan_claim(state, STARTED, NOW) == ()


def test_shortages_change_no_step() -> None:
    short = ClaimDenied("no", (Shortage("x/vcpus", "2 left"),))
    assert plan_claim(short, WAITING, NOW) == plan_claim(ClaimDenied("no"), WAITING, NOW)


@pytest.mark.parametrize(
    "state",
    [
        ClaimAbsent(),
        ClaimUnlabelled(),
        ANOTHERS,
        STORAGE,
        a_mismatch(ClaimHolder.UNRECORDED),
        a_mismatch(ClaimHolder.GONE),
        a_mismatch(ClaimHolder.NONE),
        a_mismatch(ClaimHolder.GONE, same_size=False),
        ClaimPending(NOW),
        ClaimGranted("yours"),
        ClaimReleasing(),
    ],
)
def test_nothing_is_made_adopted_or_taken_for_a_terminating_instance(state: ClaimState) -> None:
    terminating = replace(WAITING, is_terminating=True)
    assert plan_claim(state, terminating, NOW) == ()


def test_what_a_refused_claim_reserves_is_given_back_for_a_terminating_one_too() -> None:
    terminating = replace(WAITING, is_terminating=True)
    assert plan_claim(ClaimDenied("no"), terminating, NOW) == (RELEASE,)
    assert plan_claim(ClaimInvalid("bad"), terminating, NOW) == (RELEASE,)


def postponed(
    seconds: int, because: Recreated, requests: dict[str, int] | None = None
) -> QuotaSlot:
    until = NOW + timedelta(seconds=seconds)
    wait = Postponed(until, because, dict(SIZE) if requests is None else requests)
    started = because is Recreated.LOST
    return replace(WAITING, is_started=started, had_claim=started, postponed=wait)


@pytest.mark.parametrize("because", [Recreated.DENIED, Recreated.LOST])
def test_a_claim_is_asked_for_again_when_its_time_has_come_and_not_before(
    because: Recreated,
) -> None:
    assert plan_claim(ClaimAbsent(), postponed(1, because), NOW) == ()
    assert plan_claim(ClaimAbsent(), postponed(0, because), NOW) == (RequestClaim(because),)


# --- a denied claim of the operator before us -----------------------------------------------------


TAKEN_OVER = replace(WAITING, is_taken_over=True)
DENIED = ClaimDenied("no")


def kept(seconds: int, *, claim: str = "c-1", is_terminating: bool = False) -> QuotaSlot:
    until = NOW + timedelta(seconds=seconds)
    wait = Postponed(until, Recreated.DENIED, dict(SIZE), kept=claim)
    return replace(TAKEN_OVER, postponed=wait, is_terminating=is_terminating)


@pytest.mark.spec("OU-03")
def test_a_denied_claim_that_was_taken_over_is_kept_until_its_next_attempt() -> None:
    keep = Postpone(Recreated.DENIED, kept="c-1")
    assert plan_claim(DENIED, TAKEN_OVER, NOW) == (keep,)
    assert plan_claim(DENIED, kept(1), NOW) == ()
    assert plan_claim(DENIED, kept(0), NOW) == (RELEASE, RequestClaim(Recreated.DENIED))


@pytest.mark.spec("OU-03")
def test_the_wait_that_a_stored_denial_resumes_does_not_end_the_keeping() -> None:
    wait = Postponed(NOW, Recreated.DENIED, dict(SIZE))
    resumed = replace(TAKEN_OVER, postponed=wait)
    keep = (Postpone(Recreated.DENIED, kept="c-1"),)
    assert plan_claim(DENIED, resumed, NOW) == keep
    assert plan_claim(DENIED, kept(0, claim="c-0"), NOW) == keep


@pytest.mark.spec("OU-03")
def test_a_kept_claim_that_is_granted_resized_or_left_is_as_any_other() -> None:
    assert plan_claim(ClaimGranted("yours"), kept(1), NOW) == ()
    other = a_mismatch(ClaimHolder.SELF, same_size=False)
    assert plan_claim(other, kept(1), NOW) == (RELEASE, RequestClaim(Recreated.SIZE_CHANGED))
    assert plan_claim(DENIED, kept(1, is_terminating=True), NOW) == (RELEASE,)
    assert plan_claim(ClaimAbsent(), kept(1), NOW) == ()


def test_a_denied_claim_under_a_started_instance_is_released_at_once_after_a_takeover_too() -> None:
    started = replace(STARTED, is_taken_over=True)
    assert plan_claim(DENIED, started, NOW) == (RELEASE, Postpone(Recreated.LOST))


def test_another_size_than_the_denied_one_is_asked_for_at_once() -> None:
    denied = postponed(600, Recreated.DENIED, requests=dict(Size(4000, 2048).requests))
    assert plan_claim(ClaimAbsent(), denied, NOW) == (RequestClaim(),)


def test_a_loss_is_waited_out_whatever_the_size() -> None:
    lost = postponed(5, Recreated.LOST, requests={})
    assert plan_claim(ClaimAbsent(), lost, NOW) == ()


def test_a_started_instance_that_never_had_a_claim_gets_one_without_a_loss() -> None:
    never = replace(WAITING, is_started=True)
    assert plan_claim(ClaimAbsent(), never, NOW) == (RequestClaim(),)


# --- the holder of a claim ------------------------------------------------------------------------

INSTANCE = InstanceRef("ns-a", "web-0", Uid("i-1"))


@pytest.mark.parametrize(
    ("subject", "live_uid", "holder"),
    [
        (ClaimSubject("ns-a", ""), None, ClaimHolder.UNRECORDED),
        (ClaimSubject("ns-b", ""), None, ClaimHolder.NONE),
        (ClaimSubject("", ""), None, ClaimHolder.NONE),
        (ClaimSubject("ns-a", "i-1"), None, ClaimHolder.SELF),
        (ClaimSubject("ns-a", "i-0"), None, ClaimHolder.GONE),
        (ClaimSubject("ns-b", "i-9"), None, ClaimHolder.UNKNOWN),
        (ClaimSubject("ns-b", "i-9"), Absent(), ClaimHolder.GONE),
        (ClaimSubject("ns-b", "i-9"), Uid("i-10"), ClaimHolder.GONE),
        (ClaimSubject("ns-b", "i-9"), Uid("i-9"), ClaimHolder.LIVE),
    ],
)
def test_a_recorded_uid_is_gone_only_where_that_is_proven(
    subject: ClaimSubject, live_uid: Uid | Absent | None, holder: ClaimHolder
) -> None:
    assert derive_holder(subject, INSTANCE, live_uid) is holder


# --- wanted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ordinal", "desired", "wanted"),
    [(0, 1, True), (1, 1, False), (0, 0, False), (0, None, False), (None, 3, False)],
)
def test_a_slot_is_wanted_while_its_deployment_wants_it(
    ordinal: int | None, desired: int | None, wanted: bool
) -> None:
    assert is_slot_wanted(ordinal, desired) is wanted
