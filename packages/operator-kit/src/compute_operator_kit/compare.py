"""What of an object differs from what we want of it, looking at the fields we own and no others.
Pure.

The answer is a JSON patch: applied, it makes exactly those fields right and touches nothing else.
An empty answer means that nothing is to be sent. Values are compared as JSON: key order does not
matter, `true` is not `1`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from compute_operator_kit.intents import Owned, owner_as_json, without_nones
from compute_operator_kit.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.objects import Metadata, Snapshot
from compute_operator_kit.wire import (
    Encoded,
    Json,
    JsonMapping,
    JsonObject,
    JsonValue,
    decode,
    encode_canonical,
    is_map,
    member_list,
    member_object,
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Steps that bring the owned fields in line.

    `needs_version`: a step sets a whole map or list that was not there; somebody may have added it
    since, so it must not be sent without a test of the resourceVersion.
    """

    steps: tuple[PatchStep, ...] = ()
    needs_version: bool = False

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __add__(self, other: Difference) -> Difference:
        if not other.steps:
            return self  # nearly always
        return Difference(self.steps + other.steps, self.needs_version or other.needs_version)


_EQUAL: Final = Difference()


def compare_stored(found: Snapshot, wanted: Owned) -> Difference:
    """As `compare`, of an object as it was served: nearly always it is as wanted, and its header
    and its bytes say so; what they do not say is looked at member by member.
    """
    return _EQUAL if _is_plainly_so(found, wanted) else compare(found.read(), wanted)


def _is_plainly_so(found: Snapshot, wanted: Owned) -> bool:
    """False says nothing. API servers write maps in the order of their keys, and so do we."""
    metadata = found.metadata
    if wanted.parts:
        return False
    return (
        _has_texts(metadata.labels, wanted.labels)
        and _has_texts(metadata.annotations, wanted.annotations)
        and _has_owners(metadata, wanted)
        and all(found.member(name) == encode_canonical(one) for name, one in wanted.whole.items())
    )


def _has_texts(found: Mapping[str, str], wanted: Mapping[str, str | None]) -> bool:
    return all(found.get(key) == value for key, value in wanted.items())


def _has_owners(metadata: Metadata, wanted: Owned) -> bool:
    if wanted.has_only_these_owners:
        return metadata.owners == wanted.owners
    return all(
        next((one for one in metadata.owners if one.uid == owner.uid), None) == owner
        for owner in wanted.owners
    )


def compare(found: JsonObject, wanted: Owned) -> Difference:
    """The difference between an object as it is and what we own of it."""
    metadata = member_object(found, "metadata")
    difference = _compare_texts(metadata, "labels", wanted.labels)
    difference += _compare_texts(metadata, "annotations", wanted.annotations)
    difference += _compare_owners(metadata, wanted)
    for name, value in wanted.whole.items():
        if name not in found or not is_same(found[name], value):
            difference += Difference((PatchStep(PatchOp.ADD, pointer(name), value),))
    return difference + _compare_parts(found, wanted.parts, ())


def is_same(found: JsonValue, wanted: JsonValue) -> bool:
    """Equality of JSON values."""
    # Almost always they are, and equal bytes say so in a tenth of the time; `true` and `1` are not.
    if _is_plain(found) and _is_plain(wanted):
        return encode_canonical(found) == encode_canonical(wanted) or _is_same(found, wanted)
    return _is_same(found, wanted)


def _is_same(found: JsonValue, wanted: JsonValue) -> bool:
    """Value by value, whatever kinds of mappings they are: `1` is `1.0` here."""
    if isinstance(wanted, Encoded):
        wanted = decode(wanted.raw)
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(
            _is_same(value, wanted[name]) for name, value in found.items()
        )
    if _is_list(found) and _is_list(wanted):
        return len(found) == len(wanted) and all(map(_is_same, found, wanted))
    return found == wanted


def _is_plain(value: JsonValue) -> bool:
    return type(value) is dict or type(value) is list


def fingerprint(found: JsonObject, wanted: Owned) -> bytes:
    """The same as long as neither what we want nor what is found of it changes.

    A server that prunes or defaults a field of ours answers with a difference that no write
    removes; by this it is recognised, and not sent again.
    """
    names = {*wanted.whole, *wanted.parts}
    looked_at: dict[str, JsonValue] = {name: found.get(name) for name in sorted(names)}
    metadata = member_object(found, "metadata")
    for name, texts in (("labels", wanted.labels), ("annotations", wanted.annotations)):
        held = member_object(metadata, name)
        looked_at[f"metadata.{name}"] = {key: held.get(key) for key in texts}
    looked_at["metadata.ownerReferences"] = member_list(metadata, "ownerReferences")
    ours: JsonMapping = {
        "labels": wanted.labels,
        "annotations": wanted.annotations,
        "owners": [owner_as_json(owner) for owner in wanted.owners],
        "whole": wanted.whole,
        "parts": wanted.parts,
    }
    return digest(looked_at, ours)


def digest(*values: JsonValue) -> bytes:
    """A short name for JSON values; equal values have equal names, whatever their order of keys."""
    return hashlib.blake2b(encode_canonical(list(values)), digest_size=16).digest()


def _is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_texts(metadata: JsonObject, name: str, wanted: Mapping[str, str | None]) -> Difference:
    """Labels or annotations, key by key."""
    found = metadata.get(name)
    if not isinstance(found, dict):
        texts = {key: value for key, value in sorted(wanted.items()) if value is not None}
        step = PatchStep(PatchOp.ADD, pointer("metadata", name), texts)
        return Difference((step,), needs_version=True) if texts else _EQUAL
    steps = [
        PatchStep(PatchOp.ADD, pointer("metadata", name, key), value)
        if value is not None
        else PatchStep(PatchOp.REMOVE, pointer("metadata", name, key))
        for key, value in sorted(wanted.items())
        if found.get(key) != value
    ]
    return Difference(tuple(steps)) if steps else _EQUAL


def _compare_owners(metadata: JsonObject, wanted: Owned) -> Difference:
    found = member_list(metadata, "ownerReferences")
    entries = [owner_as_json(owner) for owner in wanted.owners]
    if wanted.has_only_these_owners:
        if is_same([_normal(entry) for entry in found], entries):
            return _EQUAL
        return _set_owners(entries)
    if not found:
        return _set_owners(entries) if entries else _EQUAL
    difference = _EQUAL
    for entry in entries:
        difference += _compare_owner(found, entry)
    return difference


def _set_owners(entries: Sequence[JsonValue]) -> Difference:
    step = PatchStep(PatchOp.ADD, pointer("metadata", "ownerReferences"), entries)
    return Difference((step,), needs_version=True)


def _compare_owner(found: list[Json], wanted: Mapping[str, JsonValue]) -> Difference:
    for place, entry in enumerate(found):
        if not isinstance(entry, dict) or entry.get("uid") != wanted["uid"]:
            continue
        if is_same(_normal(entry), wanted):
            return _EQUAL
        at = pointer("metadata", "ownerReferences", place)
        # Places move when others edit the list; the UID says that it is still this entry.
        test = PatchStep(PatchOp.TEST, f"{at}/uid", wanted["uid"])
        return Difference((test, PatchStep(PatchOp.REPLACE, at, wanted)))
    at = pointer("metadata", "ownerReferences", "-")
    return Difference((PatchStep(PatchOp.ADD, at, wanted),))


def _normal(entry: Json) -> Json:
    """An owner entry without flags that are false: written out or left out, they mean the same."""
    if not isinstance(entry, dict):
        return entry
    return {name: value for name, value in entry.items() if value is not False}


def _compare_parts(found: Json, wanted: JsonMapping, path: tuple[str, ...]) -> Difference:
    """Member by member; lists and scalars are compared whole."""
    members: Mapping[str, Json] = found if isinstance(found, dict) else {}
    difference = _EQUAL
    for name, value in wanted.items():
        difference += _compare_part(members, name, value, (*path, name))
    return difference


def _compare_part(
    members: Mapping[str, Json], name: str, value: JsonValue, path: tuple[str, ...]
) -> Difference:
    if value is None:
        step = PatchStep(PatchOp.REMOVE, pointer(*path))
        return Difference((step,)) if name in members else _EQUAL
    at = members.get(name)
    if is_map(value) and isinstance(at, dict):
        return _compare_parts(at, value, path)
    if name in members and is_same(at, value):
        return _EQUAL
    # A map that was not there is set whole, which would undo what somebody else put there since.
    needs_version = is_map(value)
    step = PatchStep(PatchOp.ADD, pointer(*path), without_nones(value))
    return Difference((step,), needs_version)
