"""Whose quota it is, and which finding counts (cell.md 1, quota.md B3, B4)."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from compute_cell_operator.quota_gate.evidence import (
    Known,
    Payer,
    derive_payer,
    derive_requests,
    derive_said,
)
from compute_cell_operator.quota_gate.findings import (
    Disabled,
    Finding,
    Granted,
    SizeUnknown,
    Undecided,
    Unresolvable,
)
from compute_cell_operator.quota_gate.size import Size, UnknownSize
from compute_operator_kit.keys import Uid
from compute_operator_kit.objects import Metadata

UUID = "6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
CLUSTER = "meta.datumapis.com/upstream-cluster-name"
WITHIN = "meta.datumapis.com/upstream-namespace"
SIZE = Size(1000, 2048)
OURS = Uid("i-1")
PAYER = Payer("acme", "default", UUID)
GRANT = Finding(OURS, SIZE.requests, Granted("yours"))
BLAMED = Unresolvable("ID", "because")


def a_namespace(project: str | None, within: str | None = "default", name: str = "") -> Metadata:
    labels = {CLUSTER: project, WITHIN: within}
    given = {key: text for key, text in labels.items() if text is not None}
    return Metadata(name or f"ns-{UUID}", "", Uid("n"), "1", labels=MappingProxyType(given))


@pytest.mark.parametrize(
    ("label", "project"), [("cluster-acme", "acme"), ("cluster-org_acme", "acme")]
)
def test_the_payer_is_the_last_segment_of_the_decoded_label(label: str, project: str) -> None:
    assert derive_payer(a_namespace(label)) == Payer(project, "default", UUID)


@pytest.mark.parametrize("label", [None, "", "cluster-", "acme", "cluster-..", "cluster-%2f"])
def test_a_project_that_cannot_be_told_is_blamed_on_namespace_and_label(label: str | None) -> None:
    found = derive_payer(a_namespace(label))
    assert isinstance(found, Unresolvable)
    assert found.what == "ID"
    assert CLUSTER in found.detail
    assert f"ns-{UUID}" in found.detail


@pytest.mark.parametrize("within", [None, "", "..", "UPPER"])
def test_a_namespace_that_cannot_be_told_is_blamed_on_its_label(within: str | None) -> None:
    found = derive_payer(a_namespace("cluster-acme", within))
    assert isinstance(found, Unresolvable)
    assert found.what == "namespace"
    assert WITHIN in found.detail
    assert f"ns-{UUID}" in found.detail


def test_a_namespace_that_proves_nothing_has_no_payer() -> None:
    found = derive_payer(a_namespace("cluster-acme", name="default"))
    assert isinstance(found, Unresolvable)
    assert found.what == "namespace"


def test_what_needs_no_question_is_decided_in_the_order_switch_size_labels() -> None:
    unknown = UnknownSize("x")
    assert derive_said(OURS, Known(False, unknown, BLAMED, GRANT)) == Disabled()
    assert derive_said(OURS, Known(True, unknown, BLAMED, GRANT)) == SizeUnknown("x")
    assert derive_said(OURS, Known(True, SIZE, BLAMED, GRANT)) == BLAMED
    assert derive_said(OURS, Known(True, SIZE, PAYER, GRANT)) == GRANT.said


def test_a_finding_for_another_instance_or_another_size_is_none() -> None:
    assert derive_said(Uid("i-2"), Known(True, SIZE, PAYER, GRANT)) == Undecided()
    assert derive_said(OURS, Known(True, Size(1000, 4096), PAYER, GRANT)) == Undecided()
    assert derive_said(OURS, Known(True, SIZE, PAYER, None)) == Undecided()


def test_a_namespace_that_was_not_seen_yet_blames_nobody() -> None:
    assert derive_said(OURS, Known(True, SIZE, None, None)) == Undecided()


def test_nothing_would_be_claimed_for_an_unknown_size() -> None:
    assert derive_requests(UnknownSize("x")) == {}
    assert derive_requests(SIZE) == SIZE.requests
