from dataclasses import replace
from datetime import UTC, datetime

import pytest

from compute_quota_client import (
    Allocation,
    Denied,
    Foreign,
    FoundClaim,
    Granted,
    GrantedCondition,
    Invalid,
    Mismatch,
    Pending,
    Releasing,
    ResourceRequest,
    judge,
    project_ref,
)
from compute_quota_client.testing import BUCKET_UID, GIB, OBJECTS, REGION, a_claim, a_found_claim

LATER = datetime(2026, 2, 1, tzinfo=UTC)


def going(claim: FoundClaim) -> FoundClaim:
    return replace(claim, deleting_since=LATER)


def of_another_region(claim: FoundClaim) -> FoundClaim:
    return replace(claim, labels={**claim.labels, REGION: "ams"})


def of_another_bucket(claim: FoundClaim) -> FoundClaim:
    return replace(claim, annotations={**claim.annotations, BUCKET_UID: "uid-0"})


def asking_for(claim: FoundClaim, *requests: tuple[str, int]) -> FoundClaim:
    return replace(claim, requests=tuple(ResourceRequest(*one) for one in requests))


@pytest.mark.spec("Q-04")
def test_a_claim_with_every_request_reserved_is_granted() -> None:
    claim = a_found_claim(state="granted")
    assert judge(claim, a_claim()) == Granted(claim, "All 2 requests have been granted")


@pytest.mark.spec("Q-04")
@pytest.mark.parametrize("state", ["pending", "new"])
def test_a_claim_that_was_not_evaluated_is_pending_since_its_creation(state: str) -> None:
    claim = a_found_claim(state="pending" if state == "pending" else "new")
    assert judge(claim, a_claim()) == Pending(claim, claim.created_at)


@pytest.mark.spec("Q-04")
def test_a_condition_that_is_unknown_decides_nothing() -> None:
    claim = replace(a_found_claim(), granted=GrantedCondition("Unknown", "Whatever", ""))
    assert judge(claim, a_claim()) == Pending(claim, claim.created_at)


@pytest.mark.spec("Q-04")
def test_a_claim_that_fails_validation_is_invalid() -> None:
    claim = a_found_claim(state="invalid")
    assert judge(claim, a_claim()) == Invalid(claim, "Not a claim")


@pytest.mark.spec("Q-04")
@pytest.mark.parametrize("reason", ["QuotaExceeded", "SomethingNew"])
def test_any_other_refusal_is_a_denial_with_its_allocations(reason: str) -> None:
    denied = a_found_claim(state="denied")
    claim = replace(denied, granted=GrantedCondition("False", reason, "why"))
    assert judge(claim, a_claim()) == Denied(claim, reason, "why", claim.allocations)


@pytest.mark.spec("Q-04")
def test_a_claim_of_another_owner_is_foreign_and_has_that_owner() -> None:
    claim = of_another_region(a_found_claim())
    assert judge(claim, a_claim()) == Foreign(claim, {REGION: "ams"})


@pytest.mark.spec("Q-04")
def test_a_claim_without_owner_is_foreign() -> None:
    claim = replace(a_found_claim(), labels={})
    assert judge(claim, a_claim()) == Foreign(claim, {REGION: None})


@pytest.mark.spec("Q-04")
def test_owner_and_subject_are_looked_up_in_labels_then_in_annotations() -> None:
    claim = a_found_claim()
    swapped = replace(
        claim, labels={BUCKET_UID: "uid-1"}, annotations={REGION: "lhr", BUCKET_UID: "uid-0"}
    )
    assert isinstance(judge(swapped, a_claim()), Granted)


@pytest.mark.spec("Q-04")
def test_a_claim_that_is_deleted_is_releasing() -> None:
    claim = going(a_found_claim())
    assert judge(claim, a_claim()) == Releasing(claim)


@pytest.mark.spec("Q-04")
def test_foreign_comes_before_releasing() -> None:
    claim = going(of_another_region(a_found_claim()))
    assert isinstance(judge(claim, a_claim()), Foreign)


@pytest.mark.spec("Q-04")
def test_releasing_comes_before_mismatch() -> None:
    claim = going(of_another_bucket(a_found_claim()))
    assert isinstance(judge(claim, a_claim()), Releasing)


@pytest.mark.spec("Q-04")
@pytest.mark.parametrize("state", ["granted", "denied", "pending", "invalid", "new"])
def test_mismatch_comes_before_the_result_of_the_quota_service(state: str) -> None:
    claim = a_found_claim()
    for known in ("granted", "denied", "pending", "invalid", "new"):
        if known == state:
            claim = a_found_claim(state=known)
    assert judge(of_another_bucket(claim), a_claim()) == Mismatch(
        of_another_bucket(claim), ("subject",)
    )


@pytest.mark.spec("Q-04")
def test_all_differences_are_listed_in_one_order() -> None:
    claim = replace(
        asking_for(of_another_bucket(a_found_claim()), (GIB, 51), (OBJECTS, 1000)),
        consumer=project_ref("other"),
        resource=project_ref("third"),
    )
    verdict = judge(claim, a_claim())
    assert verdict == Mismatch(claim, ("subject", "requests", "consumer", "resource"))


@pytest.mark.spec("Q-04")
def test_judged_by_itself_a_claim_is_never_foreign() -> None:
    claim = of_another_bucket(of_another_region(a_found_claim()))
    assert isinstance(judge(claim), Granted)
    assert isinstance(judge(going(claim)), Releasing)


@pytest.mark.spec("Q-05")
@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(of_another_region(a_found_claim()), id="owner"),
        pytest.param(of_another_bucket(a_found_claim()), id="subject"),
        pytest.param(asking_for(a_found_claim(), (GIB, 51), (OBJECTS, 1000)), id="amount"),
        pytest.param(asking_for(a_found_claim(), (GIB, 50)), id="a request less"),
        pytest.param(
            asking_for(a_found_claim(), (GIB, 50), (OBJECTS, 1000), ("x/y", 1)),
            id="a request more",
        ),
        pytest.param(replace(a_found_claim(), consumer=project_ref("other")), id="consumer"),
        pytest.param(replace(a_found_claim(), resource=project_ref("other")), id="resource"),
    ],
)
def test_a_granted_claim_that_differs_is_no_grant(claim: FoundClaim) -> None:
    assert not isinstance(judge(claim, a_claim()), Granted)


@pytest.mark.spec("Q-05")
def test_a_claim_raised_after_its_grant_is_a_mismatch_of_allocations() -> None:
    raised = replace(a_claim(), requests={GIB: 90, OBJECTS: 1000})
    claim = asking_for(a_found_claim(), (GIB, 90), (OBJECTS, 1000))
    assert judge(claim, raised) == Mismatch(claim, ("allocations",))
    assert judge(claim) == Mismatch(claim, ("allocations",))


@pytest.mark.spec("Q-05")
def test_a_claim_lowered_after_its_grant_is_a_mismatch_of_allocations_too() -> None:
    claim = asking_for(a_found_claim(), (GIB, 10), (OBJECTS, 1000))
    assert judge(claim) == Mismatch(claim, ("allocations",))


@pytest.mark.spec("Q-05")
@pytest.mark.parametrize("status", ["Denied", "Pending"])
def test_an_allocation_that_is_not_granted_is_none(status: str) -> None:
    claim = a_found_claim()
    allocations = (replace(claim.allocations[0], status=status), *claim.allocations[1:])
    verdict = judge(replace(claim, allocations=allocations))
    assert isinstance(verdict, Mismatch)


@pytest.mark.spec("Q-05")
def test_one_type_asked_for_twice_after_the_grant_is_no_grant() -> None:
    claim = asking_for(a_found_claim(), (GIB, 50), (GIB, 50), (OBJECTS, 1000))
    assert isinstance(judge(claim, a_claim()), Mismatch)
    assert isinstance(judge(claim), Mismatch)


@pytest.mark.spec("Q-05")
def test_a_claim_that_asks_for_nothing_any_more_is_no_grant() -> None:
    assert isinstance(judge(asking_for(a_found_claim())), Mismatch)


@pytest.mark.spec("Q-05")
def test_a_grant_without_allocations_is_no_grant() -> None:
    assert isinstance(judge(replace(a_found_claim(), allocations=())), Mismatch)


def test_an_allocation_of_a_request_that_was_dropped_does_not_matter() -> None:
    claim = asking_for(a_found_claim(), (GIB, 50))
    left_over = Allocation(OBJECTS, "Granted", 1000, "", "")
    assert left_over.resource_type in {one.resource_type for one in claim.allocations}
    assert isinstance(judge(claim), Granted)
