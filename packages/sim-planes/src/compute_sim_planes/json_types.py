"""The shape of JSON, and safe ways to look into it.

What comes over the wire is untyped; these aliases and readers keep `Any` out of everything above
the decoder. A reader never raises on a value of another type: it answers as if the field were
absent, because a server meets every kind of malformed object. It must not change what it is given.
"""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"
JsonArray: TypeAlias = "list[JsonValue]"


def value_at(found: JsonValue, *path: str) -> JsonValue:
    """The value under `path`, or None when any step of it is missing or no object."""
    for step in path:
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    return found


def object_at(found: JsonValue, *path: str) -> JsonObject:
    """The object under `path`; an empty, unattached one when there is none."""
    value = value_at(found, *path)
    return value if isinstance(value, dict) else {}


def array_at(found: JsonValue, *path: str) -> JsonArray:
    """The list under `path`; an empty, unattached one when there is none."""
    value = value_at(found, *path)
    return value if isinstance(value, list) else []


def objects_at(found: JsonValue, *path: str) -> list[JsonObject]:
    """The objects in the list under `path`; elements of other types are left out."""
    return [element for element in array_at(found, *path) if isinstance(element, dict)]


def string_at(found: JsonValue, *path: str) -> str:
    """The string under `path`, or an empty one."""
    value = value_at(found, *path)
    return value if isinstance(value, str) else ""


def strings_at(found: JsonValue, *path: str) -> list[str]:
    """The strings in the list under `path`."""
    return [element for element in array_at(found, *path) if isinstance(element, str)]


def integer_at(found: JsonValue, *path: str) -> int | None:
    """The whole number under `path`; a boolean is none."""
    value = value_at(found, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def string_map_at(found: JsonValue, *path: str) -> dict[str, str]:
    """The string entries of the object under `path`, as a new map."""
    entries = object_at(found, *path).items()
    return {name: value for name, value in entries if isinstance(value, str)}


def ensure_object(found: JsonObject, name: str) -> JsonObject:
    """The object in the field `name`, attached: made there when absent or of another type."""
    value = found.get(name)
    if not isinstance(value, dict):
        value = {}
        found[name] = value
    return value
