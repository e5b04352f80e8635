"""Types of a raw JSON document, and `overlay`, which writes a model's fields back into one.

Objects are copied between planes as raw documents, because a parsed model has lost every field this
release does not know (`docs/spec/api.md` 14, trap 10). `overlay` replaces the fields a model owns
and leaves the rest. Nothing here changes its arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def overlay(
    found: Mapping[str, JsonValue],
    wanted: Mapping[str, JsonValue],
    *,
    owned: Collection[str],
) -> JsonObject:
    """The found document with the owned fields as wanted: absent there means absent here.

    Example: found `{replicas: 1, location: {…}, newer: x}`, wanted `{replicas: 2}`, owned
    `replicas` and `location` gives `{replicas: 2, newer: x}`.
    """
    kept = {key: value for key, value in found.items() if key not in owned}
    return kept | {key: value for key, value in wanted.items() if key in owned}
