from __future__ import annotations

import pytest

from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName
from compute_operator_kit.testing.fakes import A_KIND, a_key

CLUSTER_WIDE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)


def test_a_key_without_a_plane_cannot_be_built() -> None:
    with pytest.raises(InvariantError, match="no plane"):
        ObjectKey(PlaneName(""), A_KIND, "default", "web")


def test_a_key_without_a_name_cannot_be_built() -> None:
    with pytest.raises(InvariantError, match="no name"):
        a_key("")


@pytest.mark.parametrize(("kind", "namespace"), [(A_KIND, ""), (CLUSTER_WIDE, "default")])
def test_a_namespace_must_fit_the_kind(kind: Kind, namespace: str) -> None:
    with pytest.raises(InvariantError, match="namespace"):
        ObjectKey(PlaneName("hub"), kind, namespace, "web")


def test_keys_of_two_planes_differ() -> None:
    assert a_key(plane="project-a") != a_key(plane="project-b")


def test_a_key_prints_as_an_address() -> None:
    assert str(a_key()) == "project-a://Note/default/web"
    assert str(ObjectKey(PlaneName("hub"), CLUSTER_WIDE, "", "ns-1")) == "hub://Namespace/ns-1"


def test_the_core_group_has_no_group_in_its_api_version() -> None:
    assert CLUSTER_WIDE.api_version == "v1"
    assert A_KIND.api_version == "example.datumapis.com/v1"


def test_keys_have_an_order() -> None:
    shuffled = [a_key("b"), a_key("a", plane="project-b"), a_key("a")]
    assert sorted(shuffled) == [a_key("a"), a_key("b"), a_key("a", plane="project-b")]
