"""No mixture of claim and condition is taken for a grant unless it is one, by a rule of its own."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_quota_client import (
    Allocation,
    Claim,
    Foreign,
    FoundClaim,
    Granted,
    GrantedCondition,
    Mismatch,
    Releasing,
    ResourceRequest,
    judge,
    project_ref,
)
from compute_quota_client.testing import BUCKET_UID, REGION, a_claim, a_found_claim

TYPES = st.sampled_from(["a/x", "a/y", "a/z"])
AMOUNTS = st.integers(min_value=1, max_value=3)
PROJECTS = st.sampled_from(["acme", "other"]).map(project_ref)
CONDITIONS = st.none() | st.builds(
    GrantedCondition,
    st.sampled_from(["True", "False", "Unknown", ""]),
    st.sampled_from(["QuotaAvailable", "PendingEvaluation", "QuotaExceeded", "ValidationFailed"]),
    st.just("message"),
)
ALLOCATIONS = st.lists(
    st.builds(
        Allocation,
        TYPES,
        st.sampled_from(["Granted", "Denied", "Pending"]),
        st.integers(min_value=0, max_value=3),
        st.just("reason"),
        st.just("message"),
    ),
    max_size=4,
).map(tuple)
REQUESTS = st.lists(st.builds(ResourceRequest, TYPES, AMOUNTS), max_size=4).map(tuple)
VALUES = st.sampled_from(["lhr", "ams", None])


@st.composite
def found_claims(draw: st.DrawFn) -> FoundClaim:
    region, bucket = draw(VALUES), draw(st.sampled_from(["uid-1", "uid-2", None]))
    return replace(
        a_found_claim(),
        labels={} if region is None else {REGION: region},
        annotations={} if bucket is None else {BUCKET_UID: bucket},
        deleting_since=draw(st.none() | st.just(datetime(2026, 1, 1, tzinfo=UTC))),
        requests=draw(REQUESTS),
        consumer=draw(PROJECTS),
        resource=draw(PROJECTS),
        granted=draw(CONDITIONS),
        allocations=draw(ALLOCATIONS),
    )


def wanting(requests: dict[str, int]) -> Claim:
    return replace(a_claim(), requests=requests)


WANTED = st.dictionaries(TYPES, AMOUNTS, min_size=1, max_size=3).map(wanting)


def is_reserved(claim: FoundClaim) -> bool:
    """Each request has one allocation, granted, of its amount; without the code under test."""
    held: dict[str, list[int]] = {}
    for allocation in claim.allocations:
        if allocation.status == "Granted":
            held.setdefault(allocation.resource_type, []).append(allocation.amount)
    types = [request.resource_type for request in claim.requests]
    return bool(types) and all(
        types.count(request.resource_type) == 1
        and held.get(request.resource_type, []).count(request.amount) == 1
        for request in claim.requests
    )


@pytest.mark.spec("Q-04", "Q-05")
@given(found_claims(), WANTED)
def test_a_grant_is_ours_standing_the_same_and_reserved(claim: FoundClaim, wanted: Claim) -> None:
    verdict = judge(claim, wanted)
    ours = claim.labels.get(REGION) == "lhr"
    going = claim.deleting_since is not None
    asked = {(request.resource_type, request.amount) for request in claim.requests}
    same = (
        claim.annotations.get(BUCKET_UID) == "uid-1"
        and asked == set(wanted.requests.items())
        and len(claim.requests) == len(wanted.requests)
        and claim.consumer == claim.resource == project_ref("acme")
    )
    is_granted = claim.granted is not None and claim.granted.status == "True"
    assert isinstance(verdict, Foreign) == (not ours)
    assert isinstance(verdict, Releasing) == (ours and going)
    assert isinstance(verdict, Granted) == (
        ours and not going and same and is_granted and is_reserved(claim)
    )
    if ours and not going and not same:
        assert isinstance(verdict, Mismatch)
        assert "allocations" not in verdict.fields
    assert verdict.found is claim


@pytest.mark.spec("Q-04")
@given(found_claims())
def test_by_itself_a_claim_is_never_foreign_nor_compared(claim: FoundClaim) -> None:
    verdict = judge(claim)
    assert not isinstance(verdict, Foreign)
    if isinstance(verdict, Mismatch):
        assert verdict.fields == ("allocations",)
    if isinstance(verdict, Granted):
        assert is_reserved(claim)
