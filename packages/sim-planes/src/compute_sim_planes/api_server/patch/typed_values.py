"""Field sets of values, differences between values, and merges, by merge type.

The pure algebra under server-side apply and ownership tracking; `server_side_apply` decides what to
do with the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compute_sim_planes.api_server.patch.field_sets import FieldSet, Path
from compute_sim_planes.api_server.patch.json_patch import is_equal_json
from compute_sim_planes.api_server.patch.merge_types import (
    DEDUCED,
    child_type,
    children,
    index_items,
    is_granular,
    item_step,
)
from compute_sim_planes.api_server.schema.model import Schema
from compute_sim_planes.json_copies import copy_json
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue


def field_set_of(value: JsonValue, schema: Schema) -> FieldSet:
    """The field paths that an apply of this value owns."""
    return frozenset(_owned_paths(value, schema, ()))


def _owned_paths(value: JsonValue, schema: Schema, path: Path) -> Iterator[Path]:
    if not is_granular(value, schema):
        yield path
        return
    for step, inner, inner_type in children(value, schema):
        inner_path = (*path, step)
        # Items and undeclared keys are owned in addition to their content; a declared field is
        # owned by itself only when it is empty.
        is_declared = step.startswith("f:") and step[2:] in schema.properties
        if is_granular(inner, inner_type) and (not is_declared or inner == {}):
            yield inner_path
        yield from _owned_paths(inner, inner_type, inner_path)


@dataclass(frozen=True, slots=True)
class Difference:
    """Added, modified and removed paths; added and removed ones include everything below."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.modified or self.removed)

    @property
    def written(self) -> FieldSet:
        return self.added | self.modified


@dataclass(slots=True)
class _Differences:
    added: list[Path] = field(default_factory=list[Path])
    modified: list[Path] = field(default_factory=list[Path])
    removed: list[Path] = field(default_factory=list[Path])


def compare(before: JsonObject, after: JsonObject, schema: Schema) -> Difference:
    """The difference from `before` to `after`."""
    differences = _Differences()
    _compare(before, after, schema, (), differences)
    return Difference(
        frozenset(differences.added),
        frozenset(differences.modified),
        frozenset(differences.removed),
    )


def _compare(
    before: JsonValue, after: JsonValue, schema: Schema, path: Path, differences: _Differences
) -> None:
    if not (_is_same_shape(before, after) and is_granular(after, schema)):
        if not is_equal_json(before, after):
            differences.modified.append(path)
        return
    earlier = {step: (inner, kind) for step, inner, kind in children(before, schema)}
    later = {step: (inner, kind) for step, inner, kind in children(after, schema)}
    for step, (inner, kind) in later.items():
        if step in earlier:
            # Most of an object is unchanged, and `!=` is faster than walking it.
            if earlier[step][0] != inner:
                _compare(earlier[step][0], inner, kind, (*path, step), differences)
        else:
            differences.added.extend(_all_paths(inner, kind, (*path, step)))
    for step, (inner, kind) in earlier.items():
        if step not in later:
            differences.removed.extend(_all_paths(inner, kind, (*path, step)))


def _is_same_shape(before: JsonValue, after: JsonValue) -> bool:
    return (isinstance(before, dict) and isinstance(after, dict)) or (
        isinstance(before, list) and isinstance(after, list)
    )


def _all_paths(value: JsonValue, schema: Schema, path: Path) -> Iterator[Path]:
    yield path
    if is_granular(value, schema):
        for step, inner, kind in children(value, schema):
            yield from _all_paths(inner, kind, (*path, step))


def merge(live: JsonValue, applied: JsonValue, schema: Schema) -> JsonValue:
    """The live value with the applied one merged in; fields that are not applied stay."""
    if not (_is_same_shape(live, applied) and is_granular(applied, schema)):
        return copy_json(applied)
    if isinstance(live, dict) and isinstance(applied, dict):
        return _merge_objects(live, applied, schema)
    if isinstance(live, list) and isinstance(applied, list):
        return _merge_items(live, applied, schema)
    return copy_json(applied)


def _merge_objects(live: JsonObject, applied: JsonObject, schema: Schema) -> JsonObject:
    merged: JsonObject = {}
    for key, inner in live.items():
        desired = applied.get(key, inner)
        merged[key] = merge(inner, desired, child_type(schema, key))
    for key, inner in applied.items():
        if key not in live:
            merged[key] = copy_json(inner)
    return merged


def _merge_items(live: JsonArray, applied: JsonArray, schema: Schema) -> JsonArray:
    """Applied items in their order; other live items keep their position before the next item."""
    desired = index_items(applied, schema)
    existing = index_items(live, schema)
    order = list(existing)
    items, cursor = schema.items or DEDUCED, 0
    merged: JsonArray = []

    def emit_live_only(until: int) -> int:
        at = cursor
        while at < len(order) and (at < until or order[at] not in desired):
            if order[at] not in desired:
                merged.append(copy_json(existing[order[at]]))
            at += 1
        return at

    for step, item in desired.items():
        cursor = emit_live_only(order.index(step) if step in existing else cursor)
        merged.append(merge(existing.get(step, item), item, items))
    cursor = emit_live_only(len(order))
    return merged


def remove_paths(value: JsonValue, paths: FieldSet, schema: Schema) -> JsonValue:
    """The value without the given paths. A container that becomes empty stays."""
    if not paths:
        return value
    by_step: dict[str, set[Path]] = {}
    for path in paths:
        by_step.setdefault(path[0], set()).add(path[1:])
    if isinstance(value, dict):
        kept: JsonObject = {}
        for key, inner in value.items():
            below = by_step.get(f"f:{key}", set())
            if () not in below:
                kept[key] = remove_paths(inner, frozenset(below), child_type(schema, key))
        return kept
    if isinstance(value, list):
        return _remove_items(value, by_step, schema)
    return value


def _remove_items(value: JsonArray, by_step: dict[str, set[Path]], schema: Schema) -> JsonArray:
    kept: JsonArray = []
    for item in value:
        below = by_step.get(item_step(item, schema), set())
        if () not in below:
            kept.append(remove_paths(item, frozenset(below), schema.items or DEDUCED))
    return kept
