"""Whose a hub object is, by what it says."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_management_operator.identities import (
    Place,
    Standing,
    derive_identity,
    derive_missing_identity,
    judge_standing,
    read_place,
    read_project,
)
from compute_operator_kit.keys import PlaneName, Uid
from compute_operator_kit.objects import Metadata

PLACE = Place(PlaneName("acme"), "default")
PROJECT, NAMESPACE = labels.UPSTREAM_CLUSTER_NAME, labels.UPSTREAM_NAMESPACE
LONG = "north-american-retail-storefront-production-environment-two"
HASHED = "cluster-h-b5aece8171cd0e48c3f2"


def labelled(annotations: dict[str, str] | None = None, **found: str) -> Metadata:
    keys = {"project": PROJECT, "namespace": NAMESPACE}
    return Metadata(
        name="ns-1",
        namespace="",
        uid=Uid("u"),
        resource_version="1",
        labels={keys[name]: value for name, value in found.items()},
        annotations=annotations or {},
    )


@pytest.mark.spec("M-01")
@pytest.mark.parametrize(
    ("found", "standing"),
    [
        (labelled(project="cluster-acme", namespace="default"), Standing.OURS),
        (labelled(project="cluster-org_acme", namespace="default"), Standing.OURS),
        (labelled(project="cluster-a_b_acme", namespace="default"), Standing.OURS),
        (labelled(project="cluster-acme"), Standing.INCOMPLETE),
        (labelled(namespace="default"), Standing.INCOMPLETE),
        (labelled(project="acme", namespace="default"), Standing.INCOMPLETE),
        (labelled(project=HASHED, namespace="default"), Standing.INCOMPLETE),
        (labelled(), Standing.INCOMPLETE),
        (labelled(project="cluster-other"), Standing.FOREIGN),
        (labelled(namespace="other"), Standing.FOREIGN),
        (labelled(project="cluster-acme", namespace="other"), Standing.FOREIGN),
        (labelled(project="cluster-other", namespace="default"), Standing.FOREIGN),
    ],
)
def test_standing_follows_from_both_labels(found: Metadata, standing: Standing) -> None:
    assert judge_standing(found, PLACE) is standing


def test_place_needs_both_labels() -> None:
    assert read_place(labelled(project="cluster-acme", namespace="default")) == PLACE
    assert read_place(labelled(project="cluster-acme")) is None
    assert read_place(labelled(namespace="default")) is None


def test_shortened_project_is_read_with_its_annotation() -> None:
    whole = labelled({PROJECT: LONG}, project=HASHED)
    assert read_project(whole) == LONG
    assert read_project(labelled({PROJECT: "forged"}, project=HASHED)) is None


def test_what_is_missing_is_all_that_is_set() -> None:
    def missing(found: Metadata) -> dict[str, str]:
        return dict(derive_missing_identity(found, PLACE).labels)

    assert missing(labelled(project="cluster-org_acme", namespace="default")) == {}
    assert not derive_missing_identity(labelled(project="cluster-acme", namespace="default"), PLACE)
    assert missing(labelled(project="cluster-acme")) == {NAMESPACE: "default"}
    assert missing(labelled(project="cluster-b", namespace="default")) == {PROJECT: "cluster-acme"}


def test_full_name_travels_with_a_shortened_label_alone() -> None:
    place = Place(PlaneName(LONG), "default")
    assert derive_identity(place).annotations == {PROJECT: LONG}
    said = labelled({PROJECT: LONG}, project=HASHED)
    assert derive_missing_identity(said, place).annotations == {}
