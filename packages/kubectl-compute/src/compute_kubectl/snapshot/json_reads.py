"""Readers of JSON of any shape: a missing or wrongly typed member reads as an empty value.

Objects come from tenants, cells and other operators. A reader that raised would hide every other
object of the plane behind one malformed document.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue

# Older times are schema defaults such as 1970-01-01, not observations.
OLDEST: Final = datetime(2015, 1, 1, tzinfo=UTC)
# A message of a condition is at most 32 KiB on the wire; more than this fits no screen.
LONGEST_TEXT: Final = 4096


def value_at(document: JsonValue, *path: str) -> JsonValue:
    """The value at a path of members, or None."""
    for name in path:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def object_at(document: JsonValue, *path: str) -> JsonObject:
    value = value_at(document, *path)
    return value if isinstance(value, dict) else {}


def objects_at(document: JsonValue, *path: str) -> Iterator[JsonObject]:
    """The objects of a list; entries of other types are left out."""
    value = value_at(document, *path)
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def text_at(document: JsonValue, *path: str) -> str:
    value = value_at(document, *path)
    return value[:LONGEST_TEXT] if isinstance(value, str) else ""


def texts_at(document: JsonValue, *path: str) -> tuple[str, ...]:
    value = value_at(document, *path)
    if not isinstance(value, list):
        return ()
    return tuple(entry[:LONGEST_TEXT] for entry in value if isinstance(entry, str))


def number_at(document: JsonValue, *path: str) -> int | None:
    value = value_at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag_at(document: JsonValue, *path: str) -> bool | None:
    value = value_at(document, *path)
    return value if isinstance(value, bool) else None


def strings_at(document: JsonValue, *path: str) -> dict[str, str]:
    """A map of strings, such as labels; entries of other types are left out."""
    return {
        key: value[:LONGEST_TEXT]
        for key, value in object_at(document, *path).items()
        if isinstance(value, str)
    }


def time_at(document: JsonValue, *path: str) -> datetime | None:
    """A moment on the wire; None for one that is missing, malformed or a schema default."""
    return parse_moment(text_at(document, *path))


def parse_moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return None
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment >= OLDEST else None
