"""The difference between two versions of an object, in the parts that have owners.

Labels, annotations, finalizers and conditions are owned one by one, `spec` and `status` by
top-level field. Pure, over the stored bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import orjson

from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    object_at,
    objects_at,
    string_at,
    strings_at,
)

OwnedPart: TypeAlias = Literal["label", "annotation", "finalizer", "condition", "status", "spec"]


@dataclass(frozen=True, slots=True)
class PartChange:
    """One named part that was added, changed or removed."""

    part: OwnedPart
    name: str
    verb: Literal["added", "changed", "removed"]


def derive_changes(before: bytes, after: bytes) -> list[PartChange]:
    """Every owned part that differs between two versions of an object."""
    old, new = _decode(before), _decode(after)
    changes: list[PartChange] = []
    for part in _PARTS:
        changes += _compare(part, _named_parts(old, part), _named_parts(new, part))
    return changes


_PARTS: tuple[OwnedPart, ...] = ("label", "annotation", "finalizer", "condition", "status", "spec")


def _decode(raw: bytes) -> JsonObject:
    document: JsonValue = orjson.loads(raw)
    return document if isinstance(document, dict) else {}


def _named_parts(document: JsonObject, part: OwnedPart) -> JsonObject:
    match part:
        case "label":
            return object_at(document, "metadata", "labels")
        case "annotation":
            return object_at(document, "metadata", "annotations")
        case "finalizer":
            return dict.fromkeys(strings_at(document, "metadata", "finalizers"), True)
        case "condition":
            entries = objects_at(document, "status", "conditions")
            return {string_at(entry, "type"): entry for entry in entries}
        case "status":
            status = object_at(document, "status")
            return {name: value for name, value in status.items() if name != "conditions"}
        case "spec":
            return object_at(document, "spec")


def _compare(part: OwnedPart, before: JsonObject, after: JsonObject) -> Iterator[PartChange]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield PartChange(part, name, "added")
        elif name not in after:
            yield PartChange(part, name, "removed")
        elif before[name] != after[name]:
            yield PartChange(part, name, "changed")
