"""Types of JSON values, and typed readers of their fields.

They keep `Any` out of the code above the decoder. A reader never raises on a value of another type
but treats the field as absent, because a server receives malformed objects. Readers do not change
their argument.
"""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"
JsonArray: TypeAlias = "list[JsonValue]"


def value_at(document: JsonValue, *path: str) -> JsonValue:
    """The value under `path`, or None when a step is missing or not an object."""
    for step in path:
        if not isinstance(document, dict):
            return None
        document = document.get(step)
    return document


def object_at(document: JsonValue, *path: str) -> JsonObject:
    """The object under `path`; a new empty one when there is none."""
    value = value_at(document, *path)
    return value if isinstance(value, dict) else {}


def array_at(document: JsonValue, *path: str) -> JsonArray:
    """The list under `path`; a new empty one when there is none."""
    value = value_at(document, *path)
    return value if isinstance(value, list) else []


def objects_at(document: JsonValue, *path: str) -> list[JsonObject]:
    """The objects in the list under `path`; other elements are skipped."""
    return [element for element in array_at(document, *path) if isinstance(element, dict)]


def string_at(document: JsonValue, *path: str) -> str:
    """The string under `path`, or an empty one."""
    value = value_at(document, *path)
    return value if isinstance(value, str) else ""


def strings_at(document: JsonValue, *path: str) -> list[str]:
    """The strings in the list under `path`."""
    return [element for element in array_at(document, *path) if isinstance(element, str)]


def integer_at(document: JsonValue, *path: str) -> int | None:
    """The integer under `path`; a boolean is none."""
    value = value_at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def string_map_at(document: JsonValue, *path: str) -> dict[str, str]:
    """The string entries of the object under `path`, as a new map."""
    entries = object_at(document, *path).items()
    return {name: value for name, value in entries if isinstance(value, str)}


def ensure_object(document: JsonObject, name: str) -> JsonObject:
    """The object in the field `name`, which is created when absent or of another type."""
    value = document.get(name)
    if not isinstance(value, dict):
        value = {}
        document[name] = value
    return value
