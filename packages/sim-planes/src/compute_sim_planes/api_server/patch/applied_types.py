"""Type checks of an applied configuration before server-side apply merges it.

An undeclared field or an item without its key has no path that a manager could own, so a real
server refuses the apply. Values are validated later.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_sim_planes.api_server.patch.field_sets import render_path
from compute_sim_planes.api_server.patch.merge_types import (
    children,
    is_granular,
    item_key,
    item_step,
)
from compute_sim_planes.api_server.schema.model import Schema
from compute_sim_planes.api_server.schema.validation import type_name
from compute_sim_planes.json_types import JsonValue


def type_problems(value: JsonValue, schema: Schema, path: str = "") -> Iterator[str]:
    """Why field paths of the value cannot be determined: undeclared fields, items without a key."""
    if schema.types and not _could_be(value, schema.types):
        yield f"{path}: expected {_expected(schema.types)}, got {type_name(value)}"
        return
    if isinstance(value, dict) and not schema.preserves_unknown and schema.types:
        for key in value:
            if schema.child(key) is None:
                yield f"{path}.{key}: field not declared in schema"
    if isinstance(value, list) and schema.list_type == "map":
        yield from _key_problems(value, schema, path)
    if is_granular(value, schema):
        for step, inner, kind in children(value, schema):
            yield from type_problems(inner, kind, f"{path}{render_path((step,))}")


def _key_problems(items: list[JsonValue], schema: Schema, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for item in items:
        missing = [key for key in schema.list_map_keys if key not in item_key(item, schema)]
        if missing:
            yield (
                f"{path}: associative list with keys has an element that omits key field "
                f'"{missing[0]}" (and doesn\'t have default value)'
            )
        step = item_step(item, schema)
        if step in seen:
            yield f"{path}: duplicate entries for key {render_path((step,))}"
        seen.add(step)


_WORDS = {
    "object": "map",
    "array": "list",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
}


def _expected(types: tuple[str, ...]) -> str:
    return " or ".join(_WORDS.get(name, name) for name in types)


def _could_be(value: JsonValue, types: tuple[str, ...]) -> bool:
    name = type_name(value)
    numeric = {"integer", "number"}
    return value is None or name in types or (name in numeric and bool(numeric & set(types)))
