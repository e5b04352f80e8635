"""The project of a hub object, by its identity labels."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from compute_management_operator.hub.identity import (
    IdentityMatch,
    ProjectNamespace,
    derive_identity,
    derive_missing_identity,
    match_identity,
    read_project,
    read_project_namespace,
)
from compute_operator_kit.core.keys import PlaneName, Uid
from compute_operator_kit.core.objects import Metadata

PLACE = ProjectNamespace(PlaneName("acme"), "default")
PROJECT, NAMESPACE = labels.UPSTREAM_CLUSTER_NAME, labels.UPSTREAM_NAMESPACE
LONG = "north-american-retail-storefront-production-environment-two"
HASHED = "cluster-h-b5aece8171cd0e48c3f2"


def labelled(annotations: dict[str, str] | None = None, **with_labels: str) -> Metadata:
    keys = {"project": PROJECT, "namespace": NAMESPACE}
    return Metadata(
        name="ns-1",
        namespace="",
        uid=Uid("u"),
        resource_version="1",
        labels={keys[name]: value for name, value in with_labels.items()},
        annotations=annotations or {},
    )


@pytest.mark.spec("M-01")
@pytest.mark.parametrize(
    ("with_labels", "match"),
    [
        (labelled(project="cluster-acme", namespace="default"), IdentityMatch.OURS),
        (labelled(project="cluster-org_acme", namespace="default"), IdentityMatch.OURS),
        (labelled(project="cluster-a_b_acme", namespace="default"), IdentityMatch.OURS),
        (labelled(project="cluster-acme"), IdentityMatch.INCOMPLETE),
        (labelled(namespace="default"), IdentityMatch.INCOMPLETE),
        (labelled(project="acme", namespace="default"), IdentityMatch.INCOMPLETE),
        (labelled(project=HASHED, namespace="default"), IdentityMatch.INCOMPLETE),
        (labelled(), IdentityMatch.INCOMPLETE),
        (labelled(project="cluster-other"), IdentityMatch.FOREIGN),
        (labelled(namespace="other"), IdentityMatch.FOREIGN),
        (labelled(project="cluster-acme", namespace="other"), IdentityMatch.FOREIGN),
        (labelled(project="cluster-other", namespace="default"), IdentityMatch.FOREIGN),
    ],
)
def test_match_follows_from_both_labels(with_labels: Metadata, match: IdentityMatch) -> None:
    assert match_identity(with_labels, PLACE) is match


def test_place_needs_both_labels() -> None:
    assert read_project_namespace(labelled(project="cluster-acme", namespace="default")) == PLACE
    assert read_project_namespace(labelled(project="cluster-acme")) is None
    assert read_project_namespace(labelled(namespace="default")) is None


def test_shortened_project_is_read_with_its_annotation() -> None:
    whole = labelled({PROJECT: LONG}, project=HASHED)
    assert read_project(whole) == LONG
    assert read_project(labelled({PROJECT: "forged"}, project=HASHED)) is None


def test_what_is_missing_is_all_that_is_set() -> None:
    def missing(with_labels: Metadata) -> dict[str, str]:
        return dict(derive_missing_identity(with_labels, PLACE).labels)

    assert missing(labelled(project="cluster-org_acme", namespace="default")) == {}
    assert not derive_missing_identity(labelled(project="cluster-acme", namespace="default"), PLACE)
    assert missing(labelled(project="cluster-acme")) == {NAMESPACE: "default"}
    assert missing(labelled(project="cluster-b", namespace="default")) == {PROJECT: "cluster-acme"}


def test_full_name_travels_with_a_shortened_label_alone() -> None:
    place = ProjectNamespace(PlaneName(LONG), "default")
    assert derive_identity(place).annotations == {PROJECT: LONG}
    complete = labelled({PROJECT: LONG}, project=HASHED)
    assert derive_missing_identity(complete, place).annotations == {}
