"""The comparison of an object with the desired owned fields; the result is a JSON patch. Pure.

Other fields are neither compared nor patched, so that fields of other writers survive. An empty
patch means that no request is sent. Values are compared as JSON: the order of keys does not matter,
and `true` is not `1`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from compute_operator_kit.core.json import (
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
from compute_operator_kit.core.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.core.objects import Metadata, Snapshot
from compute_operator_kit.intents.intents import OwnedFields, owner_as_json, without_nones


@dataclass(frozen=True, slots=True)
class Difference:
    """The patch steps that set the owned fields.

    `needs_version`: a step sets a whole map or list that was missing. Another writer may have added
    it since and would lose it, so that the patch must test the resourceVersion.
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


def compare_stored(existing: Snapshot, desired: OwnedFields) -> Difference:
    """As `compare`, for a served object: nearly always its header and the bytes of its members are
    equal to the desired ones, and it is not decoded.
    """
    return _EQUAL if _is_equal_as_served(existing, desired) else compare(existing.read(), desired)


def _is_equal_as_served(existing: Snapshot, desired: OwnedFields) -> bool:
    """True only if the object is equal; False may also mean another encoding of equal values. API
    servers sort the keys of maps, as `encode_canonical` does.
    """
    metadata = existing.metadata
    if desired.merge:
        return False
    return (
        _has_texts(metadata.labels, desired.labels)
        and _has_texts(metadata.annotations, desired.annotations)
        and _has_owners(metadata, desired)
        and all(
            existing.member(name) == encode_canonical(one) for name, one in desired.replace.items()
        )
    )


def _has_texts(existing: Mapping[str, str], desired: Mapping[str, str | None]) -> bool:
    return all(existing.get(key) == value for key, value in desired.items())


def _has_owners(metadata: Metadata, desired: OwnedFields) -> bool:
    if desired.has_only_these_owners:
        return metadata.owners == desired.owners
    return all(
        next((one for one in metadata.owners if one.uid == owner.uid), None) == owner
        for owner in desired.owners
    )


def compare(existing: JsonObject, desired: OwnedFields) -> Difference:
    """The difference between an object and the desired owned fields."""
    metadata = member_object(existing, "metadata")
    difference = _compare_texts(metadata, "labels", desired.labels)
    difference += _compare_texts(metadata, "annotations", desired.annotations)
    difference += _compare_owners(metadata, desired)
    for name, value in desired.replace.items():
        if name not in existing or not is_same(existing[name], value):
            difference += Difference((PatchStep(PatchOp.ADD, pointer(name), value),))
    return difference + _compare_merged(existing, desired.merge, ())


def is_same(existing: JsonValue, desired: JsonValue) -> bool:
    """Equality of JSON values."""
    # Nearly always they are equal, and comparing bytes takes a tenth of the time.
    if _is_plain(existing) and _is_plain(desired):
        return encode_canonical(existing) == encode_canonical(desired) or _is_same(
            existing, desired
        )
    return _is_same(existing, desired)


def _is_same(existing: JsonValue, desired: JsonValue) -> bool:
    """Compares value by value, with any types of mappings; `1` equals `1.0`."""
    if isinstance(desired, Encoded):
        desired = decode(desired.raw)
    if isinstance(existing, bool) or isinstance(desired, bool):
        return existing is desired
    if isinstance(existing, Mapping) and isinstance(desired, Mapping):
        return existing.keys() == desired.keys() and all(
            _is_same(value, desired[name]) for name, value in existing.items()
        )
    if _is_list(existing) and _is_list(desired):
        return len(existing) == len(desired) and all(map(_is_same, existing, desired))
    return existing == desired


def _is_plain(value: JsonValue) -> bool:
    return type(value) is dict or type(value) is list


def fingerprint(existing: JsonObject, desired: OwnedFields) -> bytes:
    """A digest of the desired and the existing values of the owned fields.

    If a server prunes or defaults an owned field, the difference remains after every write; it is
    recognised by this digest and not sent again.
    """
    names = {*desired.replace, *desired.merge}
    compared: dict[str, JsonValue] = {name: existing.get(name) for name in sorted(names)}
    metadata = member_object(existing, "metadata")
    for name, texts in (("labels", desired.labels), ("annotations", desired.annotations)):
        held = member_object(metadata, name)
        compared[f"metadata.{name}"] = {key: held.get(key) for key in texts}
    compared["metadata.ownerReferences"] = member_list(metadata, "ownerReferences")
    ours: JsonMapping = {
        "labels": desired.labels,
        "annotations": desired.annotations,
        "owners": [owner_as_json(owner) for owner in desired.owners],
        "replace": desired.replace,
        "merge": desired.merge,
    }
    return digest(compared, ours)


def digest(*values: JsonValue) -> bytes:
    """A digest of JSON values that does not depend on the order of keys."""
    return hashlib.blake2b(encode_canonical(list(values)), digest_size=16).digest()


def _is_list(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _compare_texts(
    metadata: JsonObject, name: str, desired: Mapping[str, str | None]
) -> Difference:
    """Compares labels or annotations key by key."""
    existing = metadata.get(name)
    if not isinstance(existing, dict):
        texts = {key: value for key, value in sorted(desired.items()) if value is not None}
        step = PatchStep(PatchOp.ADD, pointer("metadata", name), texts)
        return Difference((step,), needs_version=True) if texts else _EQUAL
    steps = [
        PatchStep(PatchOp.ADD, pointer("metadata", name, key), value)
        if value is not None
        else PatchStep(PatchOp.REMOVE, pointer("metadata", name, key))
        for key, value in sorted(desired.items())
        if existing.get(key) != value
    ]
    return Difference(tuple(steps)) if steps else _EQUAL


def _compare_owners(metadata: JsonObject, desired: OwnedFields) -> Difference:
    existing = member_list(metadata, "ownerReferences")
    entries = [owner_as_json(owner) for owner in desired.owners]
    if desired.has_only_these_owners:
        if is_same([_without_false_flags(entry) for entry in existing], entries):
            return _EQUAL
        return _set_owners(entries)
    if not existing:
        return _set_owners(entries) if entries else _EQUAL
    difference = _EQUAL
    for entry in entries:
        difference += _compare_owner(existing, entry)
    return difference


def _set_owners(entries: Sequence[JsonValue]) -> Difference:
    step = PatchStep(PatchOp.ADD, pointer("metadata", "ownerReferences"), entries)
    return Difference((step,), needs_version=True)


def _compare_owner(existing: list[Json], desired: Mapping[str, JsonValue]) -> Difference:
    for index, entry in enumerate(existing):
        if not isinstance(entry, dict) or entry.get("uid") != desired["uid"]:
            continue
        if is_same(_without_false_flags(entry), desired):
            return _EQUAL
        at = pointer("metadata", "ownerReferences", index)
        # Indexes move when others edit the list; the test of the UID protects other entries.
        test = PatchStep(PatchOp.TEST, f"{at}/uid", desired["uid"])
        return Difference((test, PatchStep(PatchOp.REPLACE, at, desired)))
    at = pointer("metadata", "ownerReferences", "-")
    return Difference((PatchStep(PatchOp.ADD, at, desired),))


def _without_false_flags(entry: Json) -> Json:
    """An owner entry without false flags, which are the same as missing ones."""
    if not isinstance(entry, dict):
        return entry
    return {name: value for name, value in entry.items() if value is not False}


def _compare_merged(existing: Json, desired: JsonMapping, path: tuple[str, ...]) -> Difference:
    """Compares member by member; lists and scalars as a whole."""
    members: Mapping[str, Json] = existing if isinstance(existing, dict) else {}
    difference = _EQUAL
    for name, value in desired.items():
        difference += _compare_member(members, name, value, (*path, name))
    return difference


def _compare_member(
    members: Mapping[str, Json], name: str, value: JsonValue, path: tuple[str, ...]
) -> Difference:
    if value is None:
        step = PatchStep(PatchOp.REMOVE, pointer(*path))
        return Difference((step,)) if name in members else _EQUAL
    at = members.get(name)
    if is_map(value) and isinstance(at, dict):
        return _compare_merged(at, value, path)
    if name in members and is_same(at, value):
        return _EQUAL
    # A missing map is set as a whole, which would remove members that another writer added since.
    needs_version = is_map(value)
    step = PatchStep(PatchOp.ADD, pointer(*path), without_nones(value))
    return Difference((step,), needs_version)
