"""The desired claim, and how verdicts and errors become states (quota.md B3, B4, B6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compute_api_types.sizes import Size
from compute_cell_operator.quota.claim import (
    derive_claim,
    is_covered,
    read_subject,
    read_subject_values,
)
from compute_cell_operator.quota.observe import observe_claim, observe_failure
from compute_cell_operator.quota.plan import Postpone, Recreated
from compute_cell_operator.quota.project_ref import BillingProject, ClaimSubject, InstanceRef
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
    FailedStep,
    HeldByOtherCell,
    HeldByOtherService,
    NamespaceNotFound,
    ProjectNotFound,
    ProjectSuspended,
    Shortage,
)
from compute_cell_operator.quota.retry import ClaimAttempts, has_stood, postpone, resume
from compute_operator_kit.core.keys import Uid
from compute_quota_client import (
    Absent,
    Allocation,
    FoundClaim,
    Granted,
    GrantedCondition,
    ObjectRef,
    Operation,
    QuotaAuthError,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaProjectSuspendedError,
    QuotaRejectedError,
    QuotaUnavailableError,
    ResourceRequest,
    judge,
)

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
SIZE = Size(1000, 2048)
BILLING = BillingProject("acme", "default", NS[3:])
DESIRED = derive_claim("dfw-1", BILLING, InstanceRef(NS, "web-0", Uid("i-1")), SIZE)
YES = GrantedCondition("True", "QuotaAvailable", "yours")
NO = GrantedCondition("False", "QuotaExceeded", "no")


STORED = (
    ResourceRequest("compute.datumapis.com/instances", 1),
    ResourceRequest("storage.example.com/gib", 1),
)


def a_claim(
    granted: GrantedCondition | None = YES, *, status: str = "Granted", uid: str = "i-1"
) -> FoundClaim:
    """The desired claim as the server has it."""
    return FoundClaim(
        namespace=DESIRED.namespace,
        name=DESIRED.name,
        uid="c-1",
        resource_version="5",
        created_at=NOW,
        deleting_since=None,
        labels=DESIRED.written_labels(),
        annotations={"compute.datumapis.com/instance-uid": uid},
        requests=tuple(ResourceRequest(kind, n) for kind, n in DESIRED.requests.items()),
        consumer=DESIRED.consumer,
        resource=DESIRED.claiming_resource,
        granted=granted,
        allocations=tuple(
            Allocation(kind, status, n, "", f"of {n}") for kind, n in DESIRED.requests.items()
        ),
    )


def test_the_claim_is_as_the_specification_draws_it() -> None:
    assert (DESIRED.namespace, DESIRED.name) == ("default", "instance-web-0")
    assert DESIRED.written_labels() == {
        "compute.datumapis.com/source-cluster": "dfw-1",
        "compute.datumapis.com/instance-namespace": NS,
    }
    assert DESIRED.written_annotations() == {"compute.datumapis.com/instance-uid": "i-1"}
    project = ObjectRef("resourcemanager.miloapis.com", "Project", "acme")
    assert (DESIRED.consumer, DESIRED.claiming_resource) == (project, project)
    assert list(DESIRED.requests.items()) == [
        ("compute.datumapis.com/instances", 1),
        ("compute.datumapis.com/vcpus", 1000),
        ("compute.datumapis.com/memory", 2048),
    ]
    assert dict(DESIRED.owner) == {"compute.datumapis.com/source-cluster": "dfw-1"}
    assert dict(DESIRED.subject) == {
        "compute.datumapis.com/instance-namespace": NS,
        "compute.datumapis.com/instance-uid": "i-1",
    }


def test_the_claim_as_written_is_the_desired_claim() -> None:
    assert isinstance(judge(a_claim(), DESIRED), Granted)
    assert dict(read_subject_values(a_claim())) == dict(DESIRED.subject)
    assert read_subject(a_claim()) == ClaimSubject(NS, "i-1")
    assert read_subject(replace(a_claim(), labels={}, annotations={})) == ClaimSubject("", "")


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        (a_claim(), ClaimGranted("yours")),
        (a_claim(None), ClaimPending(NOW)),
        (a_claim(GrantedCondition("False", "ValidationFailed", "bad")), ClaimInvalid("bad")),
        (replace(a_claim(), deleting_since=NOW), ClaimReleasing()),
        (replace(a_claim(), labels={}), ClaimUnlabelled()),
        (
            replace(a_claim(), labels={"compute.datumapis.com/source-cluster": "lhr-1"}),
            HeldByOtherCell("default", "instance-web-0", "lhr-1"),
        ),
        (a_claim(uid="i-0"), ClaimMismatched(ClaimHolder.GONE, is_same_size=True)),
        (
            replace(a_claim(), labels={}, requests=STORED),
            HeldByOtherService("default", "instance-web-0", "storage.example.com/gib"),
        ),
        # Whatever it is labelled.
        (
            replace(a_claim(), requests=STORED),
            HeldByOtherService("default", "instance-web-0", "storage.example.com/gib"),
        ),
        (
            replace(
                a_claim(),
                labels={"compute.datumapis.com/source-cluster": "lhr-1"},
                requests=STORED,
            ),
            HeldByOtherCell("default", "instance-web-0", "lhr-1"),
        ),
        (
            replace(a_claim(uid="i-0"), requests=()),
            ClaimMismatched(ClaimHolder.GONE, is_same_size=False),
        ),
        (
            replace(a_claim(), allocations=()),
            ClaimMismatched(ClaimHolder.GONE, is_same_size=False),
        ),
    ],
)
def test_a_verdict_becomes_a_state(claim: FoundClaim, state: ClaimState) -> None:
    assert observe_claim(judge(claim, DESIRED), ClaimHolder.GONE) == state


def test_an_absent_claim_is_a_state_too() -> None:
    assert observe_claim(Absent(), ClaimHolder.NONE) == ClaimAbsent()


def test_a_denial_names_only_what_is_short() -> None:
    denied = a_claim(NO, status="Denied")
    fits, *short = denied.allocations
    mixed = replace(denied, allocations=(replace(fits, status="Granted"), *short))
    assert observe_claim(judge(mixed, DESIRED), ClaimHolder.NONE) == ClaimDenied(
        "no", tuple(Shortage(one.resource_type, one.message) for one in short)
    )


@pytest.mark.parametrize(
    ("operation", "step"),
    [
        (None, "getting"),
        (Operation.GET, "getting"),
        (Operation.NAMESPACE, "getting"),
        (Operation.RELEASE, "getting"),
        (Operation.CREATE, "creating"),
        (Operation.ADOPT, "adopting"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (QuotaNamespaceNotFoundError, NamespaceNotFound),
        (QuotaProjectNotFoundError, ProjectNotFound),
        (QuotaUnavailableError, BackendUnavailable),
        (QuotaAuthError, BackendUnavailable),
        (QuotaRejectedError, AdmissionRejected),
        (QuotaProjectSuspendedError, ProjectSuspended),
    ],
)
def test_an_error_becomes_a_state_by_its_class_and_its_operation(
    kind: type[QuotaError],
    state: type[ClaimState],
    operation: Operation | None,
    step: FailedStep,
) -> None:
    is_refused_read = kind is QuotaRejectedError and step == "getting"
    observed = observe_failure(kind("went wrong", operation=operation), BILLING)
    assert isinstance(observed, BackendUnavailable if is_refused_read else state)
    if isinstance(observed, BackendUnavailable):
        assert observed == BackendUnavailable("acme", step, "went wrong")


# --- held grants ----------------------------------------------------------------------------------


@pytest.mark.parametrize("uid", ["i-1", "i-0"])
def test_a_grant_of_this_slot_covers_its_instance_and_the_successor(uid: str) -> None:
    assert is_covered(judge(a_claim(uid=uid)), DESIRED)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_claim(NO), id="denied"),
        pytest.param(a_claim(None), id="pending"),
        pytest.param(replace(a_claim(), deleting_since=NOW), id="releasing"),
        pytest.param(replace(a_claim(), name="instance-web-1"), id="another slot"),
        pytest.param(replace(a_claim(), namespace="other"), id="another namespace"),
        pytest.param(replace(a_claim(), annotations={}), id="no UID recorded"),
        pytest.param(
            replace(
                a_claim(), labels={**DESIRED.written_labels(), **dict.fromkeys(DESIRED.owner, "x")}
            ),
            id="another cell",
        ),
        pytest.param(
            replace(
                a_claim(), labels={**DESIRED.owner, "compute.datumapis.com/instance-namespace": "n"}
            ),
            id="another cell namespace",
        ),
        pytest.param(
            replace(a_claim(), requests=a_claim().requests[:1], allocations=a_claim().allocations),
            id="another size",
        ),
        pytest.param(replace(a_claim(), consumer=ObjectRef("g", "Project", "x")), id="consumer"),
        pytest.param(replace(a_claim(), resource=ObjectRef("g", "Project", "x")), id="resource"),
        pytest.param(replace(a_claim(), allocations=()), id="not allocated"),
    ],
)
def test_anything_else_covers_nothing(claim: FoundClaim) -> None:
    assert not is_covered(judge(claim), DESIRED)


# --- when to request again ------------------------------------------------------------------------


def test_denials_wait_longer_each_time_within_their_jitter() -> None:
    attempts, waits = ClaimAttempts(Uid("i-1")), list[float]()
    for _ in range(7):
        wait, attempts = postpone(Postpone(Recreated.DENIED), attempts, SIZE.requests, NOW)
        waits.append((wait.until - NOW).total_seconds())
        assert (wait.because, wait.requests) == (Recreated.DENIED, SIZE.requests)
    for waited, around in zip(waits, [30, 60, 120, 240, 480, 600, 600], strict=True):
        assert around * 0.8 <= waited <= around * 1.2
    assert attempts.count == 7


def test_only_the_first_loss_has_the_short_wait() -> None:
    soon = Postpone(Recreated.LOST, NOW + timedelta(seconds=10))
    first, attempts = postpone(soon, ClaimAttempts(Uid("i-1")), SIZE.requests, NOW)
    assert first.until == NOW + timedelta(seconds=10)
    second, attempts = postpone(soon, attempts, SIZE.requests, NOW)
    assert timedelta(seconds=24) <= second.until - NOW <= timedelta(seconds=36)
    third, _ = postpone(Postpone(Recreated.LOST), attempts, SIZE.requests, NOW)
    assert timedelta(seconds=48) <= third.until - NOW <= timedelta(seconds=72)


def test_a_restarted_process_goes_on_with_the_schedule_and_never_requests_early() -> None:
    wait, attempts = resume(Uid("i-1"), SIZE.requests, NOW - timedelta(seconds=100), NOW)
    assert attempts.count == 3
    assert NOW + timedelta(seconds=96) <= wait.until <= NOW + timedelta(seconds=144)
    assert wait.because is Recreated.DENIED
    ahead, fresh = resume(Uid("i-1"), SIZE.requests, NOW + timedelta(hours=1), NOW)
    assert fresh.count == 1
    assert ahead.until > NOW


def test_a_claim_has_stood_after_an_hour() -> None:
    assert has_stood(NOW - timedelta(hours=1), NOW)
    assert not has_stood(NOW - timedelta(minutes=59), NOW)
