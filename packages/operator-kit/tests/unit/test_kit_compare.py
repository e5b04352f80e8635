from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from compute_operator_kit.core.json import (
    Encoded,
    JsonMapping,
    JsonObject,
    JsonValue,
    encode,
    encode_canonical,
)
from compute_operator_kit.core.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.core.keys import Uid
from compute_operator_kit.core.object_decoder import decode_object
from compute_operator_kit.core.objects import OwnerReference, Snapshot
from compute_operator_kit.intents.compare import (
    Difference,
    compare,
    compare_stored,
    digest,
    fingerprint,
    is_same,
)
from compute_operator_kit.intents.intents import Ensure, OwnedFields, build_new
from compute_operator_kit.testing.fakes import a_key, a_snapshot

OWNER = OwnerReference("v1", "Note", "root", Uid("u1"), controller=True, block_owner_deletion=True)
ENTRY: dict[str, JsonValue] = {
    "apiVersion": "v1",
    "kind": "Note",
    "name": "root",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def an_object(metadata: JsonMapping | None = None, **members: JsonMapping) -> JsonObject:
    return a_snapshot(None, metadata, **members).decode()


def paths(difference: Difference) -> list[tuple[str, str]]:
    return [(step.op.value, step.path) for step in difference.steps]


def test_a_settled_object_gives_no_difference() -> None:
    body = an_object(
        {"labels": {"ours": "1", "foreign": "x"}, "ownerReferences": [ENTRY]},
        spec={"a": 1, "b": [1, 2]},
        status={"phase": "Ready"},
    )
    wanted = OwnedFields(
        labels={"ours": "1"}, owners=(OWNER,), replace={"spec": {"b": [1, 2], "a": 1}}
    )
    assert not compare(body, wanted)


OWNED = OwnedFields(
    labels={"ours": "yes", "gone": None},
    annotations={"also": "ours"},
    owners=(OWNER,),
    replace={"spec": {"b": 1, "a": [True]}},
)


def a_stored(**changes: JsonValue) -> Snapshot:
    body = {**build_new(Ensure(a_key(), OWNED, "Absent")), **changes}
    return decode_object(a_key().plane, a_key().kind, encode_canonical(body)).snapshot


def test_what_is_stored_as_we_sent_it_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Snapshot, "read")
    assert not compare_stored(a_stored(status={"by": "others"}), OWNED)


@pytest.mark.parametrize("flag", [True, False])
def test_an_owner_is_compared_by_its_flags_too(*, flag: bool) -> None:
    owned = msgspec.structs.replace(OWNED, has_only_these_owners=flag)
    other = msgspec.structs.replace(
        owned, owners=(replace(OWNER, controller=not OWNER.controller),)
    )
    assert not compare_stored(a_stored(), owned)
    assert compare_stored(a_stored(), other)


def test_another_spec_is_a_difference() -> None:
    stored = a_stored(spec={"a": [1], "b": 1})
    assert [step.path for step in compare_stored(stored, OWNED).steps] == ["/spec"]


AS_SERVED = Encoded(b'{"a":[true],"b":1}')


def test_what_is_passed_on_as_it_was_served_is_compared_by_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(Snapshot, "read")
    passed_on = msgspec.structs.replace(OWNED, replace={"spec": AS_SERVED})
    assert not compare_stored(a_stored(), passed_on)


@pytest.mark.parametrize(
    "spec",
    [Encoded(b'{"b":1, "a":[true]}'), {"a": Encoded(b"[ true ]"), "b": 1}],
    ids=["whole", "member"],
)
def test_what_is_passed_on_may_be_spelled_in_another_way(spec: JsonValue) -> None:
    assert not compare_stored(a_stored(), msgspec.structs.replace(OWNED, replace={"spec": spec}))


def test_what_is_passed_on_and_differs_is_sent_as_it_is() -> None:
    passed_on = msgspec.structs.replace(OWNED, replace={"spec": AS_SERVED})
    difference = compare_stored(a_stored(spec={"a": [], "b": 1}), passed_on)
    assert difference.steps == (PatchStep(PatchOp.ADD, "/spec", AS_SERVED),)
    assert encode([step.as_json() for step in difference.steps]) == (
        b'[{"op":"add","path":"/spec","value":{"a":[true],"b":1}}]'
    )


@pytest.mark.fault("C2")
def test_labels_and_annotations_are_set_key_by_key() -> None:
    body = an_object(
        {"labels": {"a/b": "old", "foreign": "x", "stale": "y"}, "annotations": {"z": "z"}}
    )
    wanted = OwnedFields(
        labels={"a/b": "new", "stale": None, "absent": None}, annotations={"n": "1"}
    )
    assert compare(body, wanted).steps == (
        PatchStep(PatchOp.ADD, "/metadata/labels/a~1b", "new"),
        PatchStep(PatchOp.REMOVE, "/metadata/labels/stale"),
        PatchStep(PatchOp.ADD, "/metadata/annotations/n", "1"),
    )
    assert not compare(body, wanted).needs_version


def test_a_missing_map_is_set_as_a_whole_and_only_on_that_version() -> None:
    difference = compare(an_object(), OwnedFields(labels={"b": "2", "a": "1", "gone": None}))
    assert difference == Difference(
        (PatchStep(PatchOp.ADD, "/metadata/labels", {"a": "1", "b": "2"}),), needs_version=True
    )


def test_nothing_to_remove_from_a_map_that_is_not_there() -> None:
    assert not compare(an_object(), OwnedFields(labels={"gone": None}))


def test_a_member_owned_as_a_whole_is_replaced_as_a_whole() -> None:
    body = an_object(spec={"a": 1, "extra": True})
    assert paths(compare(body, OwnedFields(replace={"spec": {"a": 1}}))) == [("add", "/spec")]
    assert paths(compare(an_object(), OwnedFields(replace={"spec": {}}))) == [("add", "/spec")]


@pytest.mark.fault("C2")
def test_parts_leave_what_the_server_or_others_filled_in() -> None:
    body = an_object(spec={"ours": {"x": 1, "theirs": 2}, "defaulted": True, "list": [1]})
    assert not compare(body, OwnedFields(merge={"spec": {"ours": {"x": 1}}}))
    difference = compare(
        body, OwnedFields(merge={"spec": {"ours": {"x": 2}, "list": [1, 2], "defaulted": None}})
    )
    assert paths(difference) == [
        ("add", "/spec/ours/x"),
        ("add", "/spec/list"),
        ("remove", "/spec/defaulted"),
    ]
    assert not difference.needs_version


def test_a_merged_member_without_a_parent_is_set_with_it_and_without_nones() -> None:
    difference = compare(an_object(), OwnedFields(merge={"spec": {"a": {"b": 1, "c": None}}}))
    assert difference.steps == (PatchStep(PatchOp.ADD, "/spec", {"a": {"b": 1}}),)
    assert difference.needs_version


def test_a_part_that_must_not_be_there_and_is_not_is_no_difference() -> None:
    assert not compare(an_object(spec={}), OwnedFields(merge={"spec": {"a": None}}))


def test_a_missing_owner_is_added_beside_others() -> None:
    other = {**ENTRY, "uid": "u2", "controller": False}
    difference = compare(an_object({"ownerReferences": [other]}), OwnedFields(owners=(OWNER,)))
    assert paths(difference) == [("add", "/metadata/ownerReferences/-")]


def test_the_first_owner_is_set_only_on_that_version() -> None:
    difference = compare(an_object(), OwnedFields(owners=(OWNER,)))
    assert paths(difference) == [("add", "/metadata/ownerReferences")]
    assert difference.needs_version


def test_a_changed_owner_entry_is_replaced_under_a_test_of_its_uid() -> None:
    odd: list[JsonValue] = [7, {**ENTRY, "uid": "u0"}, {**ENTRY, "controller": False}]
    difference = compare(an_object({"ownerReferences": odd}), OwnedFields(owners=(OWNER,)))
    assert paths(difference) == [
        ("test", "/metadata/ownerReferences/2/uid"),
        ("replace", "/metadata/ownerReferences/2"),
    ]


def test_a_flag_written_as_false_equals_a_flag_left_out() -> None:
    plain = OwnerReference("v1", "Note", "root", Uid("u1"))
    written = {**ENTRY, "controller": False, "blockOwnerDeletion": False}
    body = an_object({"ownerReferences": [written]})
    assert not compare(body, OwnedFields(owners=(plain,)))
    assert not compare(body, OwnedFields(owners=(plain,), has_only_these_owners=True))


def test_only_these_owners_removes_others() -> None:
    body = an_object({"ownerReferences": [ENTRY, {**ENTRY, "uid": "u2"}]})
    assert not compare(body, OwnedFields(owners=(OWNER,)))
    difference = compare(body, OwnedFields(owners=(OWNER,), has_only_these_owners=True))
    assert paths(difference) == [("add", "/metadata/ownerReferences")]


def test_owner_entries_of_an_odd_shape_are_replaced_where_the_list_is_ours() -> None:
    body = an_object({"ownerReferences": [7]})
    difference = compare(body, OwnedFields(owners=(OWNER,), has_only_these_owners=True))
    assert paths(difference) == [("add", "/metadata/ownerReferences")]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (1, 1.0, True),
        ("1", 1, False),
        (None, {}, False),
        ({"a": None}, {}, False),
        ("ab", ["a", "b"], False),
    ],
)
def test_values_are_equal_as_json(one: JsonValue, other: JsonValue, *, expected: bool) -> None:
    assert is_same(one, other) is expected
    assert is_same(other, one) is expected


def test_a_fingerprint_follows_both_sides_and_nothing_else() -> None:
    wanted = OwnedFields(labels={"a": "1"}, owners=(OWNER,), replace={"spec": {"x": 1}})
    base = an_object({"labels": {"a": "1"}}, spec={"x": 2})
    same = an_object({"labels": {"a": "1", "foreign": "y"}}, spec={"x": 2}, status={"z": 1})
    assert fingerprint(base, wanted) == fingerprint(same, wanted)
    assert fingerprint(base, wanted) != fingerprint(an_object(spec={"x": 3}), wanted)
    assert fingerprint(base, wanted) != fingerprint(base, OwnedFields(labels={"a": "1"}))


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": 2}, 3) == digest({"b": 2, "a": 1}, 3)
    assert digest("a", "b") != digest("b", "a")


def test_pointers_escape_what_json_pointers_escape() -> None:
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"
    assert PatchStep(PatchOp.REMOVE, "/a").as_json() == {"op": "remove", "path": "/a"}
    assert PatchStep(PatchOp.TEST, "/a").as_json() == {"op": "test", "path": "/a", "value": None}
