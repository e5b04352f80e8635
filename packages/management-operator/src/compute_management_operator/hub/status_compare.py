"""The part of a status that is equal on every plane that holds a copy of it. Pure.

Generations and times differ between planes; counters, addresses and conditions do not. Without
this, after a start, every copied status would count as out of date.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from compute_operator_kit.core.json import JsonObject, member_list, member_text

ComparableStatus: TypeAlias = tuple[JsonObject, list[tuple[str, ...]]]

_OF_ONE_PLANE: Final = frozenset(
    {"observedGeneration", "observedTemplateGeneration", "observedTemplateUID", "conditions"}
)
_COMPARED: Final = ("type", "status", "reason", "message")


def comparable_status(status: JsonObject, *, but: str = "") -> ComparableStatus:
    """The part to compare; `but` is the type of a condition that is not copied."""
    compared = [
        tuple([member_text(entry, name) for name in _COMPARED])
        for entry in member_list(status, "conditions")
        if isinstance(entry, dict) and entry.get("type") != but
    ]
    rest = {name: value for name, value in status.items() if name not in _OF_ONE_PLANE}
    return rest, sorted(compared)
