"""Laws of patches for all objects."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compute_sim_planes.api_server.patch.json_patch import json_patch, merge_patch
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import JsonObject, JsonValue

# A slow machine is no counterexample.
LAW = settings(deadline=None, max_examples=200)

SCALARS: st.SearchStrategy[JsonValue] = st.one_of(
    st.booleans(), st.integers(-5, 5), st.sampled_from(["", "a", "b"])
)
KEYS = st.sampled_from(["a", "b", "c/d", "e~f", ""])


def extend(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3))


VALUES: st.SearchStrategy[JsonValue] = st.recursive(SCALARS, extend, max_leaves=8)
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(KEYS, VALUES, max_size=3)


def derive_merge_patch(before: JsonObject, after: JsonObject) -> JsonObject:
    """The patch from one object to the other, derived without `merge_patch`."""
    patch: JsonObject = {key: None for key in before if key not in after}
    for key, desired in after.items():
        current = before.get(key)
        if isinstance(current, dict) and isinstance(desired, dict):
            patch[key] = derive_merge_patch(current, desired)
        elif key not in before or current != desired or type(current) is not type(desired):
            patch[key] = desired
    return patch


@LAW
@given(OBJECTS, OBJECTS)
def test_a_derived_merge_patch_leads_from_one_object_to_the_other(
    before: JsonObject, after: JsonObject
) -> None:
    assert merge_patch(before, derive_merge_patch(before, after)) == after


@LAW
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_is_applied_once(
    existing: JsonObject, patch: JsonObject
) -> None:
    once = merge_patch(existing, patch)

    assert merge_patch(once, patch) == once


@LAW
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_changes_no_key_it_does_not_name(
    existing: JsonObject, patch: JsonObject
) -> None:
    merged = merge_patch(existing, patch)

    assert {k: v for k, v in merged.items() if k not in patch} == {
        k: v for k, v in existing.items() if k not in patch
    }


@LAW
@given(OBJECTS, KEYS, VALUES)
def test_what_is_added_passes_its_test_and_removing_it_restores_the_rest(
    existing: JsonObject, key: str, value: JsonValue
) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    before = copy_object(existing)

    patched = json_patch(
        existing,
        [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}],
    )
    restored = json_patch(patched, [{"op": "remove", "path": path}])

    assert patched[key] == value
    assert restored == {k: v for k, v in before.items() if k != key}
    assert existing == before


@LAW
@given(st.lists(SCALARS, min_size=1, max_size=5), st.data())
def test_moving_an_item_there_and_back_changes_nothing(
    items: list[JsonValue], data: st.DataObject
) -> None:
    source = data.draw(st.integers(0, len(items) - 1))
    target = data.draw(st.integers(0, len(items) - 1))
    there: JsonObject = {"op": "move", "from": f"/l/{source}", "path": f"/l/{target}"}
    back: JsonObject = {"op": "move", "from": f"/l/{target}", "path": f"/l/{source}"}

    assert json_patch({"l": items}, [there, back]) == {"l": items}
