from __future__ import annotations

import pytest

from compute_operator_kit.client.urls import (
    collection_path,
    encode_segment,
    object_path,
    with_query,
)
from compute_operator_kit.core.errors import InvalidSpecError
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.testing.fakes import A_KIND, a_key

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)


def test_paths_of_named_groups_and_of_the_core_group() -> None:
    assert object_path(a_key()) == "/apis/example.datumapis.com/v1/namespaces/default/notes/web"
    assert object_path(a_key("ns-1", kind=NAMESPACE)) == "/api/v1/namespaces/ns-1"
    assert collection_path(A_KIND) == "/apis/example.datumapis.com/v1/notes"
    assert object_path(a_key(), "status").endswith("/notes/web/status")


@pytest.mark.fault("G6")
@pytest.mark.parametrize("name", ["..", ".", "a/b", "%2e%2e", "a%2fb", "a\nb", "a\x00", "/"])
def test_a_name_that_is_more_than_one_segment_is_refused(name: str) -> None:
    with pytest.raises(InvalidSpecError, match="not one segment"):
        object_path(a_key(name))
    with pytest.raises(InvalidSpecError, match="not one segment"):
        object_path(a_key(namespace=name))


def test_odd_but_possible_names_are_encoded() -> None:
    assert encode_segment("system:admin?x#y z") == "system%3Aadmin%3Fx%23y%20z"


def test_an_empty_segment_is_refused() -> None:
    with pytest.raises(InvalidSpecError):
        encode_segment("")


def test_a_query_holds_only_what_has_a_value() -> None:
    assert with_query("/p", {"limit": "5", "continue": ""}) == "/p?limit=5"
    assert with_query("/p", {"labelSelector": "a=b,c=d&e"}) == "/p?labelSelector=a%3Db%2Cc%3Dd%26e"
    assert with_query("/p", {}) == "/p"
