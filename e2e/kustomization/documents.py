"""YAML as kustomize reads it, and safe looks into what was read. Pure.

PyYAML follows YAML 1.1, in which `on` is true, `1:30` is ninety and a date is an object; kustomize
follows YAML 1.2, in which they are strings, and so does every API server.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

from compute_api_types.wire import JsonObject, JsonValue

_SCALARS: Final = {
    "null": (r"~|null|Null|NULL", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(0|[1-9][0-9]*)|0o?[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
}


class _Loader(yaml.SafeLoader):
    """The safe loader with the scalars of YAML 1.2."""


def _resolve(kind: str, pattern: str, first: list[str]) -> None:
    """Scalars that match are of this kind; `first` are the letters one can begin with."""
    # The stubs leave its arguments without types.
    _Loader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType]
        f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), first
    )


_Loader.yaml_implicit_resolvers = {}
for _kind, (_pattern, _first) in _SCALARS.items():
    _resolve(_kind, _pattern, [*_first])
# PyYAML asks with an empty string for an empty scalar.
_resolve("null", "", [""])
_resolve("merge", "<<", ["<"])


def parse_values(text: str) -> list[JsonValue]:
    """The documents in a YAML text; empty ones are left out."""
    found: list[JsonValue] = list(yaml.load_all(text, _Loader))
    return [value for value in found if value is not None]


def parse_objects(text: str) -> list[JsonObject]:
    """The objects in a YAML text; a List stands for its items."""
    objects = [value for value in parse_values(text) if isinstance(value, dict)]
    return [item for found in objects for item in _items(found)]


def _items(found: JsonObject) -> list[JsonObject]:
    items = found.get("items")
    if str(found.get("kind", "")).endswith("List") and isinstance(items, list):
        return [item for item in items if isinstance(item, dict)]
    return [found]


def inner(found: JsonValue, *path: str) -> JsonObject:
    """The object under `path`; an empty, unattached one when there is none."""
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def elements(found: JsonValue, *path: str) -> list[JsonObject]:
    """The objects in the list under `path`."""
    listed = inner(found, *path[:-1]).get(path[-1]) if path else found
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def text_at(found: JsonValue, *path: str) -> str:
    """The string under `path`, or an empty one."""
    value = inner(found, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else ""


def ensure_inner(found: JsonObject, *path: str) -> JsonObject:
    """The object under `path`, made where it is missing."""
    for step in path:
        value = found.get(step)
        if not isinstance(value, dict):
            value = {}
            found[step] = value
        found = value
    return found
