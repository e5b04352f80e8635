"""Laws of server-side apply for any two managers and any configurations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compute_sim_planes.api_server.patch.server_side_apply import (
    ApplyConflictError,
    apply_configuration,
    record_update,
)
from compute_sim_planes.api_server.schema.compiled import compile_schema
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

# A slow machine is no counterexample.
LAW = settings(deadline=None, max_examples=200)
NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
ITEM: JsonObject = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "x": {"type": "integer"}, "y": {"type": "string"}},
}
SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "whole": {"type": "array", "items": {"type": "integer"}},
                    "limits": {"type": "object", "additionalProperties": {"type": "string"}},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                    "parts": {
                        "type": "array",
                        "items": ITEM,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    },
                },
            }
        },
    }
)

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["1", "2"])


def some_items(fields_by_name: dict[str, dict[str, JsonValue]]) -> JsonValue:
    return [{"name": name, **fields} for name, fields in fields_by_name.items()]


FIELDS: st.SearchStrategy[dict[str, JsonValue]] = st.dictionaries(
    st.sampled_from(["x", "y"]), st.just(0), max_size=2
).map(lambda names: {name: 1 if name == "x" else "1" for name in names})
ITEMS = st.dictionaries(NAMES, FIELDS, min_size=1, max_size=3).map(some_items)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "whole": st.lists(st.integers(0, 1), min_size=1, max_size=2),
        "limits": st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3),
        "tags": st.lists(NAMES, min_size=1, max_size=3, unique=True),
        "parts": ITEMS,
    },
)


def a_thing(spec: object) -> JsonObject:
    thing: JsonObject = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
    }
    return {**thing, "spec": {**spec}} if isinstance(spec, dict) and spec else thing


def applied(
    existing: JsonObject | None, desired: JsonObject, manager: str, *, after: int = 0
) -> JsonObject:
    now = NOW + timedelta(minutes=after)
    return apply_configuration(
        existing, desired, manager=manager, force=True, schema=SCHEMA, now=now
    )


def spec_of(existing: JsonObject) -> JsonObject:
    return object_at(existing, "spec")


@LAW
@given(SPECS, SPECS, SPECS)
def test_applying_twice_is_applying_once(first: object, other: object, second: object) -> None:
    existing = applied(applied(None, a_thing(first), "us"), a_thing(other), "them")
    once = applied(existing, a_thing(second), "us")

    assert applied(once, a_thing(second), "us", after=9) == once


@LAW
@given(SPECS, SPECS)
def test_alone_the_object_is_what_was_applied_last(first: object, second: object) -> None:
    existing = applied(applied(None, a_thing(first), "us"), a_thing(second), "us", after=1)

    assert sorted_lists(spec_of(existing)) == sorted_lists(spec_of(a_thing(second)))


@LAW
@given(SPECS, SPECS)
def test_what_is_applied_is_there_afterwards(other: object, desired: object) -> None:
    existing = applied(applied(None, a_thing(other), "them"), a_thing(desired), "us")

    assert is_within(spec_of(a_thing(desired)), spec_of(existing))


@LAW
@given(SPECS, SPECS)
def test_what_others_own_survives_when_we_come_and_go(other: object, ours: object) -> None:
    theirs = applied(None, a_thing(other), "them")
    try:
        both = apply_configuration(
            theirs, a_thing(ours), manager="us", force=False, schema=SCHEMA, now=NOW
        )
    except ApplyConflictError:
        assume(False)
        return
    alone = applied(both, a_thing({}), "us")

    assert sorted_lists(spec_of(alone)) == sorted_lists(spec_of(theirs))


@LAW
@given(SPECS, SPECS)
def test_a_plain_write_is_owned_by_its_writer_and_unchanged_fields_keep_their_owners(
    first: object, second: object
) -> None:
    existing = applied(None, a_thing(first), "us")
    changed = record_update(
        existing,
        {**existing, "spec": spec_of(a_thing(second))},
        manager="them",
        now=NOW,
        subresource="",
        schema=SCHEMA,
    )
    given_up = applied(changed, a_thing({}), "us")

    # The writer owns what it changed: giving up our fields removes only the others.
    assert is_within(spec_of(given_up), spec_of(changed))
    managers = {string_at(e, "manager") for e in objects_at(given_up, "metadata", "managedFields")}
    assert "us" not in managers


def sorted_lists(value: JsonValue) -> JsonValue:
    """Merged lists may have another order; only their content is compared."""
    if isinstance(value, dict):
        return {key: sorted_lists(inner) for key, inner in value.items() if key != "whole"}
    if isinstance(value, list):
        return sorted((sorted_lists(inner) for inner in value), key=repr)
    return value


def is_within(part: JsonValue, whole: JsonValue) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_within(inner, whole[key]) for key, inner in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return all(any(is_within(one, other) for other in whole) for one in part)
    return part == whole
