from __future__ import annotations

from types import MappingProxyType

import pytest

from compute_api_types.depth import MAX_DEPTH, TOO_DEEP
from compute_operator_kit.core.json import (
    JsonValue,
    UndecodableError,
    decode_json_object,
    encode,
    encode_canonical,
)
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.objects import cut_member, parse_metadata, parse_object
from compute_operator_kit.testing.fakes import A_KIND, a_key, a_snapshot

OWNER: dict[str, JsonValue] = {
    "apiVersion": "example.datumapis.com/v1",
    "kind": "Note",
    "name": "root",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}


@pytest.mark.parametrize("reader", range(2))
def test_a_reader_cannot_change_what_the_next_one_sees(reader: int) -> None:
    snapshot = a_snapshot(metadata={"labels": {"a": "b"}}, spec={"list": [1]})
    mine = snapshot.decode()
    mine["spec"] = reader
    assert snapshot.decode()["spec"] == {"list": [1]}
    assert isinstance(snapshot.metadata.labels, MappingProxyType)


def test_the_header_holds_what_mapping_functions_need() -> None:
    metadata = a_snapshot(
        metadata={
            "labels": {"a": "b"},
            "finalizers": ["x/y"],
            "deletionTimestamp": "2026-01-01T00:00:01Z",
            "ownerReferences": [{**OWNER, "uid": "u0", "controller": False}, OWNER],
        }
    ).metadata
    assert metadata.labels == {"a": "b"}
    assert metadata.finalizers == ("x/y",)
    assert metadata.is_deleting
    assert metadata.controller is not None
    assert metadata.controller.uid == "u1"


def test_an_object_without_a_controller_has_none() -> None:
    assert a_snapshot().metadata.controller is None
    assert not a_snapshot().metadata.is_deleting


@pytest.mark.fault("F1")
def test_wrong_types_in_a_header_count_as_not_there() -> None:
    metadata = parse_metadata(
        {
            "name": "web",
            "generation": "7",
            "labels": ["a"],
            "annotations": {"a": 7, "b": "c"},
            "finalizers": {"a": "b"},
            "ownerReferences": [7, {"uid": 5}],
        }
    )
    assert metadata.generation == 0
    assert metadata.labels == {}
    assert metadata.annotations == {"b": "c"}
    assert metadata.finalizers == ()
    assert [owner.uid for owner in metadata.owners] == [""]
    assert parse_metadata({"ownerReferences": "x", "generation": True}).owners == ()


def test_items_of_a_list_get_the_kind_they_do_not_carry() -> None:
    body = a_snapshot().decode()
    del body["kind"], body["apiVersion"]
    delivered = parse_object(PlaneName("hub"), A_KIND, body, encode(body))
    assert delivered.snapshot.decode()["kind"] == "Note"
    assert delivered.snapshot.decode()["apiVersion"] == "example.datumapis.com/v1"


def test_a_snapshot_never_shows_its_body() -> None:
    snapshot = a_snapshot(spec={"token": "s3cret"})
    assert "s3cret" not in repr(snapshot)


def test_equal_snapshots_are_equal_values() -> None:
    first, second = a_snapshot(), a_snapshot()
    assert first == second
    assert hash(first) == hash(second)
    assert first != a_snapshot(spec={"text": "other"})
    assert first != a_snapshot(a_key("other"))
    assert first != 7


def test_read_only_maps_can_be_sent() -> None:
    assert encode({"a": MappingProxyType({"b": 1})}) == b'{"a":{"b":1}}'
    with pytest.raises(TypeError):
        encode({"a": object()})  # type: ignore[dict-item]  # that it is refused is the test


def test_equal_values_have_equal_bytes() -> None:
    assert encode_canonical({"b": 1, "a": 2}) == encode_canonical({"a": 2, "b": 1})


def test_only_objects_are_objects() -> None:
    with pytest.raises(UndecodableError, match="expected an object, found list"):
        decode_json_object(b"[]")


def test_a_member_is_given_as_it_stands_there_packed_or_not() -> None:
    snapshot = a_snapshot(spec={"b": "ü", "a": "x" * 4096})
    stands = encode({"b": "ü", "a": "x" * 4096})
    assert snapshot.member("spec") == snapshot.packed().member("spec") == stands
    assert snapshot.member("status") == b""
    assert set(snapshot.members()) == set(snapshot.decode())


def test_a_member_is_cut_out_of_an_object_and_of_nothing_else() -> None:
    assert cut_member(b'{"a": [1, 2], "b":{}}', "a") == b"[1, 2]"
    assert cut_member(b'{"a":1}', "b") == b""
    for odd in (b"", b"null", b"[]", b'"a"'):
        assert cut_member(odd, "a") == b""


@pytest.mark.parametrize("depth", [MAX_DEPTH, 900, 5000])
def test_what_is_too_deep_is_not_split_on_any_python(depth: int) -> None:
    with pytest.raises(UndecodableError, match=f"splitting an object: {TOO_DEEP}"):
        cut_member(b'{"a":' + b"[" * depth + b"]" * depth + b"}", "a")
