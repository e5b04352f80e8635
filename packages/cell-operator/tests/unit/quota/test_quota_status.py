"""`QuotaGranted` for each state of a claim (quota.md B4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.quota.project_ref import ProjectUnresolvable
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
    ProjectSuspended,
    Shortage,
    SizeUnknown,
    opens_gate,
)
from compute_cell_operator.quota.status import (
    FAILURES,
    StoredQuotaState,
    is_denial,
    needs_event,
    report_quota,
)

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
PENDING = ClaimPending(NOW - timedelta(seconds=29))
OVERDUE = ClaimPending(NOW - timedelta(seconds=30))
WAITING = ("Unknown", "PendingEvaluation", "Waiting for quota evaluation", None)
UNDECIDED: list[ClaimState] = [
    NoResult(),
    ClaimAbsent(),
    ClaimReleasing(),
    ClaimUnlabelled(),
    ClaimMismatched(ClaimHolder.GONE, is_same_size=True),
]
AWAY = BackendUnavailable("acme", "getting", "timed out")
DENIED = ReportedCondition("QuotaGranted", "False", "QuotaExceeded", "no room", 1)

ROWS: list[tuple[ClaimState, str, str, str, str | None]] = [
    (
        Disabled(),
        "True",
        "QuotaDisabled",
        "Quota enforcement is disabled by configuration",
        None,
    ),
    (
        ProjectUnresolvable("ID", "because"),
        "False",
        "QuotaProjectIDUnresolvable",
        "Could not resolve project ID: because",
        "project_id_unresolvable",
    ),
    (
        ProjectUnresolvable("namespace", "because"),
        "False",
        "QuotaProjectIDUnresolvable",
        "Could not resolve project namespace: because",
        "project_id_unresolvable",
    ),
    (
        BackendUnavailable("acme", "building", "no file"),
        "False",
        "QuotaBackendUnavailable",
        'Failed to build quota client for project "acme": no file',
        "backend_unavailable",
    ),
    (
        AWAY,
        "False",
        "QuotaBackendUnavailable",
        "Quota backend unreachable getting ResourceClaim: timed out",
        "backend_unavailable",
    ),
    (
        BackendUnavailable("acme", "creating", "502"),
        "False",
        "QuotaBackendUnavailable",
        "Quota backend unreachable creating ResourceClaim: 502",
        "backend_unavailable",
    ),
    (
        BackendUnavailable("acme", "adopting", "502"),
        "False",
        "QuotaBackendUnavailable",
        "Quota backend unreachable adopting ResourceClaim: 502",
        "backend_unavailable",
    ),
    (
        SizeUnknown("x/y"),
        "False",
        "UnknownInstanceType",
        'Instance type "x/y" is unknown and no explicit size is given',
        "misconfigured",
    ),
    *((state, *WAITING) for state in UNDECIDED),
    (PENDING, *WAITING),
    (
        OVERDUE,
        "Unknown",
        "QuotaNoBudget",
        "ResourceClaim is pending: the quota service has not evaluated it yet",
        "no_budget",
    ),
    (
        NamespaceNotFound("acme", "default"),
        "False",
        "QuotaNamespaceNotFound",
        'Quota claim namespace "default" not found on project "acme" control plane',
        "namespace_not_found",
    ),
    (
        ProjectNotFound("acme"),
        "False",
        "QuotaProjectNotFound",
        'Milo project "acme" not found',
        "project_not_found",
    ),
    (
        AdmissionRejected("acme", "no such type"),
        "False",
        "QuotaMisconfigured",
        'Quota admission rejected ResourceClaim for project "acme": no such type',
        "misconfigured",
    ),
    (
        ProjectSuspended(),
        "Unknown",
        "PendingEvaluation",
        "Project is suspended; quota is asked for when it resumes",
        None,
    ),
    (
        HeldByOtherCell("default", "instance-web-0", "lhr-1"),
        "False",
        "QuotaMisconfigured",
        'ResourceClaim "default/instance-web-0" belongs to cell "lhr-1"',
        "misconfigured",
    ),
    (
        HeldByOtherService("default", "instance-web-0", "storage.example.com/gib"),
        "False",
        "QuotaMisconfigured",
        (
            'ResourceClaim "default/instance-web-0" belongs to another service: it asks for '
            '"storage.example.com/gib"; delete it or give the Workload another name'
        ),
        "misconfigured",
    ),
    (ClaimGranted("all yours"), "True", "QuotaAvailable", "all yours", None),
    (ClaimGranted("held", is_held=True), "True", "QuotaAvailable", "held", None),
    (ClaimInvalid("bad claim"), "False", "ValidationFailed", "bad claim", None),
    (
        ClaimDenied("denied.", (Shortage("compute.datumapis.com/vcpus", "2 of 4 left"),)),
        "False",
        "QuotaExceeded",
        "denied. vcpus: 2 of 4 left",
        None,
    ),
]


def an_instance(
    stored: ReportedCondition | None = None, *, started: bool = False
) -> StoredQuotaState:
    return StoredQuotaState(stored, generation=4, is_started=started)


@pytest.mark.parametrize(("state", "status", "reason", "message", "failure"), ROWS)
def test_every_state_has_its_words(
    state: ClaimState, status: str, reason: str, message: str, failure: str | None
) -> None:
    statement = report_quota(state, an_instance(), NOW)
    assert (statement.status, statement.reason, statement.message) == (status, reason, message)
    assert statement.observed_generation == 4
    assert FAILURES.get(statement.reason) == failure


def test_the_rows_cover_every_state_there_is() -> None:
    assert {type(row[0]) for row in ROWS} == set(get_args(ClaimState))


@pytest.mark.parametrize("state", [row[0] for row in ROWS])
def test_only_a_grant_or_the_switch_opens_a_gate(state: ClaimState) -> None:
    assert opens_gate(state) == isinstance(state, ClaimGranted | Disabled)
    if opens_gate(state):
        assert report_quota(state, an_instance(), NOW).status == "True"
    else:
        assert report_quota(state, an_instance(), NOW).status != "True"


@pytest.mark.spec("Q-26")
def test_pending_is_worth_a_word_only_after_thirty_seconds() -> None:
    early, late = (report_quota(state, an_instance(), NOW) for state in (PENDING, OVERDUE))
    assert (early.status, early.reason) == ("Unknown", "PendingEvaluation")
    assert (late.status, late.reason) == ("Unknown", "QuotaNoBudget")
    first = ReportedCondition("QuotaGranted", "Unknown", "PendingEvaluation", "")
    assert not needs_event(early, None)
    assert not needs_event(early, first)
    assert needs_event(late, first)


# --- over the table -------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [row[0] for row in ROWS if not isinstance(row[0], ClaimGranted)])
@pytest.mark.parametrize("reason", ["QuotaAvailable", "QuotaDisabled"])
def test_a_started_instance_keeps_its_words(state: ClaimState, reason: str) -> None:
    stored = ReportedCondition("QuotaGranted", "True", reason, "as before", 3)
    statement = report_quota(state, an_instance(stored, started=True), NOW)
    assert (statement.status, statement.reason, statement.message) == ("True", reason, "as before")
    assert statement.observed_generation == 4


def test_a_started_instance_moves_from_disabled_to_available_and_not_back() -> None:
    stored = ReportedCondition("QuotaGranted", "True", "QuotaDisabled", "off")
    moved = report_quota(ClaimGranted("now yours"), an_instance(stored, started=True), NOW)
    assert (moved.status, moved.reason, moved.message) == ("True", "QuotaAvailable", "now yours")
    kept = ReportedCondition("QuotaGranted", "True", "QuotaAvailable", "first words")
    again = report_quota(ClaimGranted("other words"), an_instance(kept, started=True), NOW)
    assert again.message == "first words"


def test_an_outage_takes_no_earlier_grant_away_and_opens_nothing() -> None:
    stored = ReportedCondition("QuotaGranted", "True", "QuotaAvailable", "granted", 3)
    statement = report_quota(AWAY, an_instance(stored), NOW)
    assert (statement.status, statement.reason) == ("True", "QuotaAvailable")
    assert not opens_gate(AWAY)


def test_another_word_than_an_outage_does_take_a_grant_from_what_has_not_started() -> None:
    stored = ReportedCondition("QuotaGranted", "True", "QuotaAvailable", "granted", 3)
    for state in UNDECIDED:
        assert report_quota(state, an_instance(stored), NOW).status == "Unknown"
    assert report_quota(ClaimDenied("no"), an_instance(stored), NOW).status == "False"


@pytest.mark.parametrize("state", [AWAY, *UNDECIDED, PENDING])
@pytest.mark.parametrize("reason", ["QuotaExceeded", "ValidationFailed"])
def test_a_denial_stays_while_nothing_new_is_known(state: ClaimState, reason: str) -> None:
    stored = ReportedCondition("QuotaGranted", "False", reason, "no room", 4)
    statement = report_quota(state, an_instance(stored), NOW)
    assert (statement.status, statement.reason, statement.message) == ("False", reason, "no room")
    assert not needs_event(statement, stored)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (OVERDUE, "QuotaNoBudget"),
        (ClaimGranted("yours"), "QuotaAvailable"),
        (ProjectNotFound("acme"), "QuotaProjectNotFound"),
    ],
)
def test_a_denial_gives_way_to_news(state: ClaimState, reason: str) -> None:
    assert report_quota(state, an_instance(DENIED), NOW).reason == reason


@pytest.mark.parametrize(("generation", "status"), [(7, "True"), (8, "Unknown")])
def test_a_grant_that_was_judged_stays_while_nothing_is_known_yet(
    generation: int, status: str
) -> None:
    """A process that has just started: the same generation stays, a resize has to be judged."""
    stored = ReportedCondition("QuotaGranted", "True", "QuotaAvailable", "granted", 7)
    instance = StoredQuotaState(stored, generation, is_started=False)
    for state in UNDECIDED:
        assert report_quota(state, instance, NOW).status == status
        assert not opens_gate(state)


def test_another_refusal_than_a_denial_does_not_stay() -> None:
    stored = ReportedCondition("QuotaGranted", "False", "QuotaBackendUnavailable", "away")
    assert not is_denial(stored)
    assert report_quota(NoResult(), an_instance(stored), NOW).reason == "PendingEvaluation"


def test_an_event_comes_once_per_change_of_status_or_reason() -> None:
    away = report_quota(AWAY, an_instance(), NOW)
    assert needs_event(away, None)
    assert needs_event(away, DENIED)
    assert not needs_event(
        away, ReportedCondition("QuotaGranted", "False", away.reason, "other words")
    )
    assert not needs_event(report_quota(ClaimGranted("x"), an_instance(), NOW), DENIED)
