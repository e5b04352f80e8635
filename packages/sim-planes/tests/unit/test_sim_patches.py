from __future__ import annotations

import pytest

from compute_sim_planes.api_server.patch.json_patch import (
    MAX_OPERATIONS,
    PatchError,
    PatchSyntaxError,
    PatchTestFailedError,
    json_patch,
    merge_patch,
)
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue


@pytest.mark.parametrize(
    ("existing", "patch", "expected"),
    [
        # The table of RFC 7386, appendix A, where both sides are objects.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_does_what_the_standard_says(
    existing: JsonObject, patch: JsonObject, expected: JsonObject
) -> None:
    before = dict(existing)

    assert merge_patch(existing, patch) == expected
    assert existing == before


def test_a_merge_patch_must_be_an_object() -> None:
    with pytest.raises(PatchSyntaxError):
        merge_patch({}, [1])


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a", "value": 1}], {"a": 1, "l": [1, 2], "m": {"k": "v"}}),
        ([{"op": "add", "path": "/l/1", "value": 9}], {"l": [1, 9, 2], "m": {"k": "v"}}),
        ([{"op": "add", "path": "/l/-", "value": 9}], {"l": [1, 2, 9], "m": {"k": "v"}}),
        ([{"op": "add", "path": "/l/2", "value": 9}], {"l": [1, 2, 9], "m": {"k": "v"}}),
        ([{"op": "remove", "path": "/l/0"}], {"l": [2], "m": {"k": "v"}}),
        ([{"op": "remove", "path": "/m"}], {"l": [1, 2]}),
        ([{"op": "replace", "path": "/m/k", "value": "w"}], {"l": [1, 2], "m": {"k": "w"}}),
        ([{"op": "replace", "path": "/l/0", "value": "w"}], {"l": ["w", 2], "m": {"k": "v"}}),
        ([{"op": "move", "from": "/m/k", "path": "/n"}], {"l": [1, 2], "m": {}, "n": "v"}),
        (
            [{"op": "copy", "from": "/m", "path": "/n"}],
            {"l": [1, 2], "m": {"k": "v"}, "n": {"k": "v"}},
        ),
        (
            [{"op": "add", "path": "/m/a~1b~0c", "value": 1}],
            {"l": [1, 2], "m": {"k": "v", "a/b~c": 1}},
        ),
        ([{"op": "test", "path": "/m", "value": {"k": "v"}}], {"l": [1, 2], "m": {"k": "v"}}),
        ([{"op": "test", "path": "/absent", "value": None}], {"l": [1, 2], "m": {"k": "v"}}),
        ([{"op": "replace", "path": "", "value": {"x": 1}}], {"x": 1}),
    ],
)
def test_a_json_patch_does_what_the_standard_says(
    operations: JsonArray, expected: JsonObject
) -> None:
    existing: JsonObject = {"l": [1, 2], "m": {"k": "v"}}

    assert json_patch(existing, operations) == expected
    assert existing == {"l": [1, 2], "m": {"k": "v"}}


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"op": "remove", "path": "/gone"}, "remove operation does not apply"),
        ({"op": "replace", "path": "/gone", "value": 1}, "replace operation does not apply"),
        ({"op": "add", "path": "/gone/deeper", "value": 1}, "missing path"),
        ({"op": "add", "path": "/l/3", "value": 1}, "invalid index"),
        ({"op": "add", "path": "/l/01", "value": 1}, "invalid index"),
        ({"op": "add", "path": "/l/-1", "value": 1}, "invalid index"),
        ({"op": "add", "path": "l", "value": 1}, "must begin with a slash"),
        ({"op": "add", "path": "/a"}, "needs a value"),
        ({"op": "add", "value": 1}, "needs a path"),
        ({"op": "spin", "path": "/a"}, "Unexpected kind: spin"),
        ({"op": "move", "from": "/m", "path": "/m/inside"}, "lies inside it"),
        ({"op": "remove", "path": ""}, "whole document"),
        ({"op": "replace", "path": "", "value": 3}, "no object"),
        ("remove", "must be an object"),
    ],
)
def test_an_operation_that_does_not_fit_is_refused_by_name(
    operation: JsonValue, message: str
) -> None:
    with pytest.raises(PatchError, match=message):
        json_patch({"l": [1, 2], "m": {}}, [operation])


@pytest.mark.parametrize(
    ("path", "value"), [("/n", 2), ("/n", True), ("/m", {"k": 1}), ("/absent", "x")]
)
def test_a_failed_test_has_its_own_error(path: str, value: JsonValue) -> None:
    existing: JsonObject = {"n": 1, "m": {"k": True}}

    with pytest.raises(PatchTestFailedError, match=f"testing value {path} failed"):
        json_patch(existing, [{"op": "test", "path": path, "value": value}])


def test_a_failed_patch_has_changed_nothing() -> None:
    existing: JsonObject = {"m": {"k": "v"}}

    with pytest.raises(PatchError):
        json_patch(
            existing, [{"op": "add", "path": "/m/x", "value": 1}, {"op": "remove", "path": "/y"}]
        )

    assert existing == {"m": {"k": "v"}}


def test_a_patch_with_too_many_operations_is_refused() -> None:
    operations: JsonArray = [{"op": "test", "path": "/x", "value": None}] * (MAX_OPERATIONS + 1)

    with pytest.raises(PatchSyntaxError, match="maximum operations"):
        json_patch({}, operations)


def test_a_json_patch_must_be_an_array() -> None:
    with pytest.raises(PatchSyntaxError):
        json_patch({}, {"op": "add"})
