"""The patch that `compare` gives is judged by applying it with a stranger's
implementation of RFC 6902.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.core.json import (
    Encoded,
    Json,
    JsonMapping,
    JsonObject,
    decode_json_object,
    encode,
    encode_canonical,
)
from compute_operator_kit.core.json_patch import PatchOp, PatchStep
from compute_operator_kit.core.object_decoder import decode_object
from compute_operator_kit.intents.compare import compare, compare_stored
from compute_operator_kit.intents.intents import Ensure, OwnedFields, build_new
from compute_operator_kit.testing.fakes import a_key, a_snapshot

NAMES = st.sampled_from(["a", "b", "x/y", "t~u"])
SCALARS = st.one_of(st.booleans(), st.integers(-5, 5), st.text(max_size=3))
TEXTS = st.dictionaries(NAMES, st.text(alphabet="pq", max_size=2), max_size=3)
WISHES = st.dictionaries(
    NAMES, st.one_of(st.none(), st.text(alphabet="pq", max_size=2)), max_size=3
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
SPECS: st.SearchStrategy[JsonObject] = st.dictionaries(NAMES, VALUES, max_size=3)
PARTS = st.dictionaries(
    NAMES,
    st.one_of(st.none(), VALUES, st.dictionaries(NAMES, st.one_of(st.none(), SCALARS), max_size=2)),
    max_size=3,
)


@st.composite
def bodies(draw: st.DrawFn) -> JsonObject:
    body = a_snapshot().decode()
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    for name in ("labels", "annotations"):
        if draw(st.booleans()):
            metadata[name] = draw(TEXTS)  # type: ignore[assignment]  # narrower than JSON
    for name in ("spec", "data"):
        if draw(st.booleans()):
            body[name] = draw(SPECS)
    return body


@st.composite
def wishes(draw: st.DrawFn) -> OwnedFields:
    return OwnedFields(
        labels=draw(WISHES),
        annotations=draw(WISHES),
        replace={"spec": draw(SPECS)} if draw(st.booleans()) else {},
        merge={"data": draw(PARTS)} if draw(st.booleans()) else {},
    )


@given(body=bodies(), wanted=wishes())
def test_a_patch_makes_the_owned_fields_right_in_one_go(
    body: JsonObject, wanted: OwnedFields
) -> None:
    patched = patch(body, compare(body, wanted).steps)
    assert not compare(patched, wanted)


@given(body=bodies(), wanted=wishes())
def test_a_patch_leaves_foreign_fields_alone(body: JsonObject, wanted: OwnedFields) -> None:
    patched = patch(body, compare(body, wanted).steps)
    for name in ("labels", "annotations"):
        ours = wanted.labels if name == "labels" else wanted.annotations
        assert foreign(patched, name, set(ours)) == foreign(body, name, set(ours))
    if not wanted.replace:
        assert patched.get("spec") == body.get("spec")
    if not wanted.merge:
        assert patched.get("data") == body.get("data")


@given(wanted=wishes())
def test_what_is_created_needs_no_patch(wanted: OwnedFields) -> None:
    made = decode_json_object(encode(build_new(Ensure(a_key(), wanted, "Missing"))))
    assert not compare(made, wanted)


@given(body=bodies(), wanted=wishes(), is_stored=st.booleans(), is_in_order=st.booleans())
def test_header_and_bytes_never_say_more_than_the_whole_object(
    body: JsonObject, wanted: OwnedFields, *, is_stored: bool, is_in_order: bool
) -> None:
    if is_stored:
        body = patch(body, compare(body, wanted).steps)
    raw = encode_canonical(body) if is_in_order else encode(body)
    stored = decode_object(a_key().plane, a_key().kind, raw).snapshot
    assert compare_stored(stored, wanted) == compare(body, wanted)


@given(body=bodies(), wanted=wishes(), is_stored=st.booleans())
def test_what_is_passed_on_is_compared_as_if_it_had_been_decoded(
    body: JsonObject, wanted: OwnedFields, *, is_stored: bool
) -> None:
    if is_stored:
        body = patch(body, compare(body, wanted).steps)
    passed_on: JsonMapping = {name: Encoded(encode(one)) for name, one in wanted.replace.items()}
    stored = decode_object(a_key().plane, a_key().kind, encode_canonical(body)).snapshot
    difference = compare_stored(stored, msgspec.structs.replace(wanted, replace=passed_on))
    sent = encode(patch(body, difference.steps))
    assert decode_json_object(sent) == patch(body, compare(body, wanted).steps)


def foreign(body: JsonObject, name: str, ours: set[str]) -> dict[str, object]:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    stored = metadata.get(name)
    members = stored if isinstance(stored, dict) else {}
    return {key: value for key, value in members.items() if key not in ours}


def patch(body: JsonObject, steps: Sequence[PatchStep]) -> JsonObject:
    """RFC 6902, as far as `compare` uses it on maps: add and remove."""
    patched = decode_json_object(encode(body))
    for step in steps:
        *parents, last = [
            part.replace("~1", "/").replace("~0", "~") for part in step.path.split("/")[1:]
        ]
        at: Json = patched
        for parent in parents:
            assert isinstance(at, dict)
            at = at[parent]
        assert isinstance(at, dict)
        if step.op is PatchOp.REMOVE:
            del at[last]
        else:
            assert step.op is PatchOp.ADD
            at[last] = decode_json_object(encode({"value": step.value}))["value"]
    return patched
