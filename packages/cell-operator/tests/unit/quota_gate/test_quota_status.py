"""What `QuotaGranted` says of each finding (quota.md B4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compute_cell_operator.quota_gate import findings
from compute_cell_operator.quota_gate.findings import (
    AdmissionRejected,
    BackendUnavailable,
    ClaimDenied,
    ClaimInvalid,
    Disabled,
    Granted,
    HeldByOtherCell,
    HeldByOtherService,
    NamespaceNotFound,
    ProjectNotFound,
    Said,
    Shortage,
    SizeUnknown,
    Undecided,
    Unevaluated,
    Unresolvable,
    opens_gate,
)
from compute_cell_operator.quota_gate.status import (
    FAILURES,
    Standing,
    is_denial,
    needs_event,
    report_quota,
)
from compute_cell_operator.told import Told

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
PENDING = Unevaluated(NOW - timedelta(seconds=29))
OVERDUE = Unevaluated(NOW - timedelta(seconds=30))
AWAY = BackendUnavailable("acme", "getting", "timed out")
DENIED = Told("QuotaGranted", "False", "QuotaExceeded", "no room", 1)

ROWS: list[tuple[Said, str, str, str, str | None]] = [
    (
        Disabled(),
        "True",
        "QuotaDisabled",
        "Quota enforcement is disabled by configuration",
        None,
    ),
    (
        Unresolvable("ID", "because"),
        "False",
        "QuotaProjectIDUnresolvable",
        "Could not resolve project ID: because",
        "project_id_unresolvable",
    ),
    (
        Unresolvable("namespace", "because"),
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
    (Undecided(), "Unknown", "PendingEvaluation", "Waiting for quota evaluation", None),
    (PENDING, "Unknown", "PendingEvaluation", "Waiting for quota evaluation", None),
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
    (Granted("all yours"), "True", "QuotaAvailable", "all yours", None),
    (Granted("held", is_held=True), "True", "QuotaAvailable", "held", None),
    (ClaimInvalid("bad claim"), "False", "ValidationFailed", "bad claim", None),
    (
        ClaimDenied("denied.", (Shortage("compute.datumapis.com/vcpus", "2 of 4 left"),)),
        "False",
        "QuotaExceeded",
        "denied. vcpus: 2 of 4 left",
        None,
    ),
]


def a_standing(stored: Told | None = None, *, started: bool = False) -> Standing:
    return Standing(stored, generation=4, is_started=started)


@pytest.mark.parametrize(("said", "status", "reason", "message", "failure"), ROWS)
def test_every_finding_has_its_words(
    said: Said, status: str, reason: str, message: str, failure: str | None
) -> None:
    found = report_quota(said, a_standing(), NOW)
    assert (found.status, found.reason, found.message) == (status, reason, message)
    assert found.observed_generation == 4
    assert FAILURES.get(found.reason) == failure


def test_the_rows_cover_every_finding_there_is() -> None:
    known = {found for found in vars(findings).values() if isinstance(found, type)}
    known -= {findings.Finding, Shortage, datetime}
    ours = {found for found in known if found.__module__ == findings.__name__}
    assert {type(row[0]) for row in ROWS} == ours


@pytest.mark.parametrize("said", [row[0] for row in ROWS])
def test_only_a_grant_or_the_switch_opens_a_gate(said: Said) -> None:
    assert opens_gate(said) == isinstance(said, Granted | Disabled)
    if opens_gate(said):
        assert report_quota(said, a_standing(), NOW).status == "True"
    else:
        assert report_quota(said, a_standing(), NOW).status != "True"


@pytest.mark.spec("Q-26")
def test_pending_is_worth_a_word_only_after_thirty_seconds() -> None:
    early, late = (report_quota(said, a_standing(), NOW) for said in (PENDING, OVERDUE))
    assert (early.status, early.reason) == ("Unknown", "PendingEvaluation")
    assert (late.status, late.reason) == ("Unknown", "QuotaNoBudget")
    first = Told("QuotaGranted", "Unknown", "PendingEvaluation", "")
    assert not needs_event(early, None)
    assert not needs_event(early, first)
    assert needs_event(late, first)


# --- over the table -------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [row[0] for row in ROWS if not isinstance(row[0], Granted)])
@pytest.mark.parametrize("reason", ["QuotaAvailable", "QuotaDisabled"])
def test_a_started_instance_keeps_its_words(said: Said, reason: str) -> None:
    stored = Told("QuotaGranted", "True", reason, "as before", 3)
    found = report_quota(said, a_standing(stored, started=True), NOW)
    assert (found.status, found.reason, found.message) == ("True", reason, "as before")
    assert found.observed_generation == 4


def test_a_started_instance_moves_from_disabled_to_available_and_not_back() -> None:
    stored = Told("QuotaGranted", "True", "QuotaDisabled", "off")
    moved = report_quota(Granted("now yours"), a_standing(stored, started=True), NOW)
    assert (moved.status, moved.reason, moved.message) == ("True", "QuotaAvailable", "now yours")
    kept = Told("QuotaGranted", "True", "QuotaAvailable", "first words")
    again = report_quota(Granted("other words"), a_standing(kept, started=True), NOW)
    assert again.message == "first words"


def test_an_outage_takes_no_earlier_grant_away_and_opens_nothing() -> None:
    stored = Told("QuotaGranted", "True", "QuotaAvailable", "granted", 3)
    found = report_quota(AWAY, a_standing(stored), NOW)
    assert (found.status, found.reason) == ("True", "QuotaAvailable")
    assert not opens_gate(AWAY)


def test_another_word_than_an_outage_does_take_a_grant_from_what_has_not_started() -> None:
    stored = Told("QuotaGranted", "True", "QuotaAvailable", "granted", 3)
    assert report_quota(Undecided(), a_standing(stored), NOW).status == "Unknown"
    assert report_quota(ClaimDenied("no"), a_standing(stored), NOW).status == "False"


@pytest.mark.parametrize("said", [AWAY, Undecided(), PENDING])
@pytest.mark.parametrize("reason", ["QuotaExceeded", "ValidationFailed"])
def test_a_denial_stays_while_nothing_new_is_known(said: Said, reason: str) -> None:
    stored = Told("QuotaGranted", "False", reason, "no room", 4)
    found = report_quota(said, a_standing(stored), NOW)
    assert (found.status, found.reason, found.message) == ("False", reason, "no room")
    assert not needs_event(found, stored)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (OVERDUE, "QuotaNoBudget"),
        (Granted("yours"), "QuotaAvailable"),
        (ProjectNotFound("acme"), "QuotaProjectNotFound"),
    ],
)
def test_a_denial_gives_way_to_news(said: Said, reason: str) -> None:
    assert report_quota(said, a_standing(DENIED), NOW).reason == reason


@pytest.mark.parametrize(("generation", "status"), [(7, "True"), (8, "Unknown")])
def test_a_grant_that_was_judged_stays_while_nothing_is_known_yet(
    generation: int, status: str
) -> None:
    """A process that has just started: the same generation stays, a resize has to be judged."""
    stored = Told("QuotaGranted", "True", "QuotaAvailable", "granted", 7)
    standing = Standing(stored, generation, is_started=False)
    assert report_quota(Undecided(), standing, NOW).status == status
    assert not opens_gate(Undecided())


def test_another_refusal_than_a_denial_does_not_stay() -> None:
    stored = Told("QuotaGranted", "False", "QuotaBackendUnavailable", "away")
    assert not is_denial(stored)
    assert report_quota(Undecided(), a_standing(stored), NOW).reason == "PendingEvaluation"


def test_an_event_comes_once_per_change_of_status_or_reason() -> None:
    away = report_quota(AWAY, a_standing(), NOW)
    assert needs_event(away, None)
    assert needs_event(away, DENIED)
    assert not needs_event(away, Told("QuotaGranted", "False", away.reason, "other words"))
    assert not needs_event(report_quota(Granted("x"), a_standing(), NOW), DENIED)
