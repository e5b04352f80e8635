"""The claim that is wanted, and how verdicts and errors are read (quota.md B3, B4, B6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compute_cell_operator.quota_gate.backoff import Attempts, has_stood, postpone, resume
from compute_cell_operator.quota_gate.claim import (
    Occupant,
    derive_claim,
    is_covered,
    read_subject,
)
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.findings import (
    AdmissionRejected,
    BackendUnavailable,
    NamespaceNotFound,
    ProjectNotFound,
    Said,
    Shortage,
    Step,
)
from compute_cell_operator.quota_gate.found import (
    Different,
    Found,
    Holder,
    Holding,
    Leaving,
    Nothing,
    OtherService,
    Recorded,
    Refused,
    Strange,
    Waiting,
)
from compute_cell_operator.quota_gate.observe import (
    observe_claim,
    observe_failure,
    read_recorded,
)
from compute_cell_operator.quota_gate.plan import Postpone, Recreated
from compute_cell_operator.quota_gate.size import Size
from compute_operator_kit.keys import Uid
from compute_quota_client import (
    Absent,
    Allocation,
    FoundClaim,
    Granted,
    GrantedCondition,
    ObjectRef,
    QuotaAuthError,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaRejectedError,
    QuotaUnavailableError,
    ResourceRequest,
    judge,
)

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
SIZE = Size(1000, 2048)
WANTED = derive_claim(
    "dfw-1", Payer("acme", "default", NS[3:]), Occupant(NS, "web-0", Uid("i-1")), SIZE
)
YES = GrantedCondition("True", "QuotaAvailable", "yours")
NO = GrantedCondition("False", "QuotaExceeded", "no")


STORED = (
    ResourceRequest("compute.datumapis.com/instances", 1),
    ResourceRequest("storage.example.com/gib", 1),
)


def a_found(
    granted: GrantedCondition | None = YES, *, status: str = "Granted", uid: str = "i-1"
) -> FoundClaim:
    """The wanted claim as the server has it."""
    return FoundClaim(
        namespace=WANTED.namespace,
        name=WANTED.name,
        uid="c-1",
        resource_version="5",
        created_at=NOW,
        deleting_since=None,
        labels=WANTED.written_labels(),
        annotations={"compute.datumapis.com/instance-uid": uid},
        requests=tuple(ResourceRequest(kind, n) for kind, n in WANTED.requests.items()),
        consumer=WANTED.consumer,
        resource=WANTED.claiming_resource,
        granted=granted,
        allocations=tuple(
            Allocation(kind, status, n, "", f"of {n}") for kind, n in WANTED.requests.items()
        ),
    )


def test_the_claim_is_as_the_specification_draws_it() -> None:
    assert (WANTED.namespace, WANTED.name) == ("default", "instance-web-0")
    assert WANTED.written_labels() == {
        "compute.datumapis.com/source-cluster": "dfw-1",
        "compute.datumapis.com/instance-namespace": NS,
    }
    assert WANTED.written_annotations() == {"compute.datumapis.com/instance-uid": "i-1"}
    project = ObjectRef("resourcemanager.miloapis.com", "Project", "acme")
    assert (WANTED.consumer, WANTED.claiming_resource) == (project, project)
    assert list(WANTED.requests.items()) == [
        ("compute.datumapis.com/instances", 1),
        ("compute.datumapis.com/vcpus", 1000),
        ("compute.datumapis.com/memory", 2048),
    ]
    assert dict(WANTED.owner) == {"compute.datumapis.com/source-cluster": "dfw-1"}
    assert dict(WANTED.subject) == {
        "compute.datumapis.com/instance-namespace": NS,
        "compute.datumapis.com/instance-uid": "i-1",
    }


def test_the_claim_as_written_is_the_claim_as_wanted() -> None:
    assert isinstance(judge(a_found(), WANTED), Granted)
    assert dict(read_subject(a_found())) == dict(WANTED.subject)
    assert read_recorded(a_found()) == Recorded(NS, "i-1")
    assert read_recorded(replace(a_found(), labels={}, annotations={})) == Recorded("", "")


# --- verdicts into our values ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        (a_found(), Holding("yours")),
        (a_found(None), Waiting(NOW)),
        (
            a_found(GrantedCondition("False", "ValidationFailed", "bad")),
            Refused("c-1", "bad", is_invalid=True),
        ),
        (replace(a_found(), deleting_since=NOW), Leaving()),
        (replace(a_found(), labels={}), Strange("c-1", "default", "instance-web-0", "")),
        (
            replace(a_found(), labels={"compute.datumapis.com/source-cluster": "lhr-1"}),
            Strange("c-1", "default", "instance-web-0", "lhr-1"),
        ),
        (a_found(uid="i-0"), Different("c-1", Holder.GONE, is_same_size=True)),
        (
            replace(a_found(), labels={}, requests=STORED),
            OtherService("default", "instance-web-0", "storage.example.com/gib"),
        ),
        # Whatever it is labelled.
        (
            replace(a_found(), requests=STORED),
            OtherService("default", "instance-web-0", "storage.example.com/gib"),
        ),
        (
            replace(
                a_found(),
                labels={"compute.datumapis.com/source-cluster": "lhr-1"},
                requests=STORED,
            ),
            Strange("c-1", "default", "instance-web-0", "lhr-1"),
        ),
        (
            replace(a_found(uid="i-0"), requests=()),
            Different("c-1", Holder.GONE, is_same_size=False),
        ),
        (
            replace(a_found(), allocations=()),
            Different("c-1", Holder.GONE, is_same_size=False),
        ),
    ],
)
def test_a_verdict_becomes_a_value_of_ours(found: FoundClaim, seen: Found) -> None:
    assert observe_claim(judge(found, WANTED), Holder.GONE) == seen


def test_an_absent_claim_is_nothing() -> None:
    assert observe_claim(Absent(), Holder.NOBODY) == Nothing()


def test_a_denial_names_only_what_is_short() -> None:
    denied = a_found(NO, status="Denied")
    fits, *short = denied.allocations
    mixed = replace(denied, allocations=(replace(fits, status="Granted"), *short))
    assert observe_claim(judge(mixed, WANTED), Holder.NOBODY) == Refused(
        "c-1", "no", shortages=tuple(Shortage(one.resource_type, one.message) for one in short)
    )


@pytest.mark.parametrize("step", ["getting", "creating", "adopting"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (QuotaNamespaceNotFoundError, NamespaceNotFound),
        (QuotaProjectNotFoundError, ProjectNotFound),
        (QuotaUnavailableError, BackendUnavailable),
        (QuotaAuthError, BackendUnavailable),
        (QuotaRejectedError, AdmissionRejected),
    ],
)
def test_an_error_is_told_by_what_it_was_and_what_was_tried(
    kind: type[QuotaError], said: type[Said], step: Step
) -> None:
    is_refused_read = kind is QuotaRejectedError and step == "getting"
    found = observe_failure(kind("went wrong"), step, "acme", "default")
    assert isinstance(found, BackendUnavailable if is_refused_read else said)


# --- held grants ----------------------------------------------------------------------------------


@pytest.mark.parametrize("uid", ["i-1", "i-0"])
def test_a_grant_of_this_slot_covers_its_instance_and_the_successor(uid: str) -> None:
    assert is_covered(judge(a_found(uid=uid)), WANTED)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(a_found(NO), id="denied"),
        pytest.param(a_found(None), id="pending"),
        pytest.param(replace(a_found(), deleting_since=NOW), id="releasing"),
        pytest.param(replace(a_found(), name="instance-web-1"), id="another slot"),
        pytest.param(replace(a_found(), namespace="other"), id="another namespace"),
        pytest.param(replace(a_found(), annotations={}), id="nobody recorded"),
        pytest.param(
            replace(
                a_found(), labels={**WANTED.written_labels(), **dict.fromkeys(WANTED.owner, "x")}
            ),
            id="another cell",
        ),
        pytest.param(
            replace(
                a_found(), labels={**WANTED.owner, "compute.datumapis.com/instance-namespace": "n"}
            ),
            id="another cell namespace",
        ),
        pytest.param(
            replace(a_found(), requests=a_found().requests[:1], allocations=a_found().allocations),
            id="another size",
        ),
        pytest.param(replace(a_found(), consumer=ObjectRef("g", "Project", "x")), id="consumer"),
        pytest.param(replace(a_found(), resource=ObjectRef("g", "Project", "x")), id="resource"),
        pytest.param(replace(a_found(), allocations=()), id="not allocated"),
    ],
)
def test_anything_else_covers_nothing(found: FoundClaim) -> None:
    assert not is_covered(judge(found), WANTED)


# --- when to ask again ----------------------------------------------------------------------------


def test_denials_wait_longer_each_time_within_their_jitter() -> None:
    attempts, waits = Attempts(Uid("i-1")), list[float]()
    for _ in range(7):
        wait, attempts = postpone(Postpone(Recreated.DENIED), attempts, SIZE.requests, NOW)
        waits.append((wait.until - NOW).total_seconds())
        assert (wait.because, wait.requests) == (Recreated.DENIED, SIZE.requests)
    for waited, around in zip(waits, [30, 60, 120, 240, 480, 600, 600], strict=True):
        assert around * 0.8 <= waited <= around * 1.2
    assert attempts.count == 7


def test_only_the_first_loss_has_the_short_wait() -> None:
    soon = Postpone(Recreated.LOST, NOW + timedelta(seconds=10))
    first, attempts = postpone(soon, Attempts(Uid("i-1")), SIZE.requests, NOW)
    assert first.until == NOW + timedelta(seconds=10)
    second, attempts = postpone(soon, attempts, SIZE.requests, NOW)
    assert timedelta(seconds=24) <= second.until - NOW <= timedelta(seconds=36)
    third, _ = postpone(Postpone(Recreated.LOST), attempts, SIZE.requests, NOW)
    assert timedelta(seconds=48) <= third.until - NOW <= timedelta(seconds=72)


def test_a_restarted_process_goes_on_with_the_schedule_and_never_asks_early() -> None:
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
