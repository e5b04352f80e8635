"""The billing project, and which result counts (cell.md 1, quota.md B3, B4)."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from compute_api_types.sizes import Size
from compute_cell_operator.quota.project_ref import (
    BillingProject,
    ProjectUnresolvable,
    derive_billing_project,
)
from compute_cell_operator.quota.result import (
    ClaimAbsent,
    ClaimDenied,
    ClaimGranted,
    ClaimHolder,
    ClaimMismatched,
    ClaimReleasing,
    ClaimState,
    ClaimUnlabelled,
    Disabled,
    NoResult,
    QuotaFacts,
    QuotaResult,
    SizeUnknown,
    derive_claim_state,
)
from compute_cell_operator.quota.size import UnknownSize
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Metadata

UUID = "6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
CLUSTER = "meta.datumapis.com/upstream-cluster-name"
WITHIN = "meta.datumapis.com/upstream-namespace"
SIZE = Size(1000, 2048)
OURS = Uid("i-1")
BILLING = BillingProject("acme", "default", UUID)
GRANT = QuotaResult(OURS, SIZE.requests, ClaimGranted("yours"))
BLAMED = ProjectUnresolvable("ID", "because")


def a_namespace(project: str | None, within: str | None = "default", name: str = "") -> Metadata:
    labels = {CLUSTER: project, WITHIN: within}
    given = {key: text for key, text in labels.items() if text is not None}
    return Metadata(name or f"ns-{UUID}", "", Uid("n"), "1", labels=MappingProxyType(given))


@pytest.mark.parametrize(
    ("label", "project"), [("cluster-acme", "acme"), ("cluster-org_acme", "acme")]
)
def test_the_project_is_the_last_segment_of_the_decoded_label(label: str, project: str) -> None:
    assert derive_billing_project(a_namespace(label)) == BillingProject(project, "default", UUID)


@pytest.mark.parametrize("label", [None, "", "cluster-", "acme", "cluster-..", "cluster-%2f"])
def test_an_unresolvable_project_is_blamed_on_namespace_and_label(label: str | None) -> None:
    resolved = derive_billing_project(a_namespace(label))
    assert isinstance(resolved, ProjectUnresolvable)
    assert resolved.what == "ID"
    assert CLUSTER in resolved.detail
    assert f"ns-{UUID}" in resolved.detail


@pytest.mark.parametrize("within", [None, "", "..", "UPPER"])
def test_an_unresolvable_namespace_is_blamed_on_its_label(within: str | None) -> None:
    resolved = derive_billing_project(a_namespace("cluster-acme", within))
    assert isinstance(resolved, ProjectUnresolvable)
    assert resolved.what == "namespace"
    assert WITHIN in resolved.detail
    assert f"ns-{UUID}" in resolved.detail


def test_a_namespace_that_proves_nothing_has_no_project() -> None:
    resolved = derive_billing_project(a_namespace("cluster-acme", name="default"))
    assert isinstance(resolved, ProjectUnresolvable)
    assert resolved.what == "namespace"


def test_what_needs_no_request_is_decided_in_the_order_switch_size_labels() -> None:
    unknown = UnknownSize("x")
    assert derive_claim_state(OURS, QuotaFacts(False, unknown, BLAMED, GRANT)) == Disabled()
    assert derive_claim_state(OURS, QuotaFacts(True, unknown, BLAMED, GRANT)) == SizeUnknown("x")
    assert derive_claim_state(OURS, QuotaFacts(True, SIZE, BLAMED, GRANT)) == BLAMED
    assert derive_claim_state(OURS, QuotaFacts(True, SIZE, BILLING, GRANT)) == GRANT.state


def test_a_result_for_another_instance_or_another_size_is_none() -> None:
    assert derive_claim_state(Uid("i-2"), QuotaFacts(True, SIZE, BILLING, GRANT)) == NoResult()
    assert (
        derive_claim_state(OURS, QuotaFacts(True, Size(1000, 4096), BILLING, GRANT)) == NoResult()
    )
    assert derive_claim_state(OURS, QuotaFacts(True, SIZE, BILLING, None)) == NoResult()


def test_a_namespace_that_is_not_cached_yet_is_not_blamed() -> None:
    assert derive_claim_state(OURS, QuotaFacts(True, SIZE, None, None)) == NoResult()


def test_nothing_would_be_claimed_for_an_unknown_size() -> None:
    assert UnknownSize("x").requests == {}


UNDECIDED = [
    NoResult(),
    ClaimAbsent(),
    ClaimReleasing(),
    ClaimUnlabelled(),
    ClaimMismatched(ClaimHolder.GONE, is_same_size=True),
]


@pytest.mark.parametrize("before", UNDECIDED)
@pytest.mark.parametrize("after", UNDECIDED)
def test_states_that_are_reported_alike_are_equivalent(
    before: ClaimState, after: ClaimState
) -> None:
    first, second = (QuotaResult(OURS, SIZE.requests, state) for state in (before, after))
    assert second.is_equivalent(first)


@pytest.mark.parametrize("before", UNDECIDED)
def test_another_state_instance_or_size_is_not_equivalent(before: ClaimState) -> None:
    first = QuotaResult(OURS, SIZE.requests, before)
    assert not GRANT.is_equivalent(first)
    assert not first.is_equivalent(GRANT)
    assert not first.is_equivalent(None)
    assert not first.is_equivalent(QuotaResult(Uid("i-2"), SIZE.requests, before))
    assert not first.is_equivalent(QuotaResult(OURS, {}, before))
    denied = QuotaResult(OURS, SIZE.requests, ClaimDenied("no"))
    assert denied.is_equivalent(denied)
    assert not denied.is_equivalent(QuotaResult(OURS, SIZE.requests, ClaimDenied("nor now")))
