"""Sets of field paths, and their encoding in `managedFields` (`fieldsV1`).

A path is a tuple of steps spelled as on the wire: `f:name` is a field, `k:{"name":"web"}` an item
of a list of type map, `v:"x"` an item of a set. Ownership is a frozenset of such tuples, so union,
difference and intersection are those of Python. No schema is needed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, TypeAlias

from compute_sim_planes.json_types import JsonObject, JsonValue

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

EMPTY: Final[FieldSet] = frozenset()
# In fieldsV1 a node with this key is itself a member of the set, not only a prefix of members.
_MEMBER: Final = "."


def field_step(name: str) -> str:
    return f"f:{name}"


def key_step(key: JsonObject) -> str:
    return f"k:{json.dumps(key, ensure_ascii=False, separators=(',', ':'), sort_keys=True)}"


def value_step(value: JsonValue) -> str:
    return f"v:{json.dumps(value, ensure_ascii=False, separators=(',', ':'), sort_keys=True)}"


def encode_fields(fields: FieldSet) -> JsonObject:
    """The set as `fieldsV1`; sorted, so that equal sets are equal bytes."""
    root: JsonObject = {}
    for path in sorted(fields):
        node = root
        for step in path:
            inner = node.setdefault(step, {})
            node = inner if isinstance(inner, dict) else {}
        node[_MEMBER] = {}
    return _without_lone_members(root)


def _without_lone_members(node: JsonObject) -> JsonObject:
    """A leaf is a member by itself; only a node with children needs the dot."""
    if node.keys() == {_MEMBER}:
        return {}
    return {
        step: _without_lone_members(inner) if isinstance(inner, dict) else {}
        for step, inner in node.items()
    }


def decode_fields(document: JsonObject) -> FieldSet:
    """The set of a `fieldsV1` document."""
    paths: list[Path] = []
    _collect(document, (), paths)
    return frozenset(paths)


def _collect(node: JsonObject, path: Path, paths: list[Path]) -> None:
    for step, inner in node.items():
        if step == _MEMBER:
            paths.append(path)
        elif isinstance(inner, dict) and inner:
            _collect(inner, (*path, step), paths)
        else:
            paths.append((*path, step))


def with_ancestors(fields: Iterable[Path]) -> FieldSet:
    """The paths and all their prefixes: an owner of a field keeps the objects around it."""
    return frozenset(path[:length] for path in fields for length in range(1, len(path) + 1))


def render_path(path: Path) -> str:
    """The path as messages show it: `.spec.containers[name="web"].image`."""
    return "".join(_render_step(step) for step in path)


def _render_step(step: str) -> str:
    mark, _, text = step.partition(":")
    if mark == "f":
        return f".{text}"
    if mark == "k":
        key = json.loads(text)
        return f"[{','.join(f'{name}={_dump(value)}' for name, value in sorted(key.items()))}]"
    return f"[={text}]" if mark == "v" else f"[{text}]"


def _dump(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
