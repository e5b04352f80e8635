"""What the deletion of an object of the cell waits for (operations.md OU-04)."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_cell_operator.finalizers import KNOWN, describe_hold
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.objects import Metadata

DELETED = "2026-06-20T08:00:00Z"


def hold(*finalizers: str, deleted: str = DELETED) -> str:
    found = Metadata(
        "web-0", "ns-1", Uid("u"), "1", deletion_timestamp=deleted, finalizers=finalizers
    )
    return describe_hold(found)


@pytest.mark.spec("OU-04")
def test_known_finalizers_hold_without_a_word() -> None:
    assert hold(*KNOWN) == ""
    assert {
        "compute.datumapis.com/workload-controller",
        "compute.datumapis.com/instance-controller",
        "quota.compute.datumapis.com/claim-cleanup",
        labels.PROVIDER_FINALIZER,
        labels.POD_PROVIDER_FINALIZER,
    } <= KNOWN


@pytest.mark.spec("OU-04")
def test_unknown_ones_are_named_in_order_and_bounded() -> None:
    assert hold("b/x", *KNOWN) == 'deletion waits for finalizer "b/x"'
    assert hold("b/x", "a/x") == 'deletion waits for finalizers "a/x", "b/x"'
    many = hold(*(f"{number}/x" for number in range(9)))
    assert many == 'deletion waits for finalizers "0/x", "1/x", "2/x" and 6 more'


@pytest.mark.spec("OU-04")
def test_what_stands_waits_for_nothing() -> None:
    assert hold("b/x", deleted="") == ""
