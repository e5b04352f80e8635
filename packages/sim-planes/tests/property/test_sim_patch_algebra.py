"""Laws that patches obey for all objects, not only for those somebody thought of."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compute_sim_planes.api_server.patches import json_patch, merge_patch
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import JsonObject, JsonValue

# A busy machine is no counterexample.
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
    """The patch that leads from one to the other, found without looking at `merge_patch`."""
    patch: JsonObject = {key: None for key in before if key not in after}
    for key, wanted in after.items():
        found = before.get(key)
        if isinstance(found, dict) and isinstance(wanted, dict):
            patch[key] = derive_merge_patch(found, wanted)
        elif key not in before or found != wanted or type(found) is not type(wanted):
            patch[key] = wanted
    return patch


@LAW
@given(OBJECTS, OBJECTS)
def test_a_derived_merge_patch_leads_from_one_object_to_the_other(
    before: JsonObject, after: JsonObject
) -> None:
    assert merge_patch(before, derive_merge_patch(before, after)) == after


@LAW
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_is_applied_once(found: JsonObject, patch: JsonObject) -> None:
    once = merge_patch(found, patch)

    assert merge_patch(once, patch) == once


@LAW
@given(OBJECTS, OBJECTS)
def test_a_merge_patch_changes_no_key_it_does_not_name(
    found: JsonObject, patch: JsonObject
) -> None:
    merged = merge_patch(found, patch)

    assert {k: v for k, v in merged.items() if k not in patch} == {
        k: v for k, v in found.items() if k not in patch
    }


@LAW
@given(OBJECTS, KEYS, VALUES)
def test_what_is_added_passes_its_test_and_removing_it_restores_the_rest(
    found: JsonObject, key: str, value: JsonValue
) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    before = copy_object(found)

    patched = json_patch(
        found,
        [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}],
    )
    restored = json_patch(patched, [{"op": "remove", "path": path}])

    assert patched[key] == value
    assert restored == {k: v for k, v in before.items() if k != key}
    assert found == before


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
