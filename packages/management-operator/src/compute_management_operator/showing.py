"""What of a status is the same on every plane that shows it. Pure.

Generations and moments differ from plane to plane; numbers, addresses, and what conditions say, do
not.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from compute_operator_kit.wire import JsonObject, member_list, member_text

Shown: TypeAlias = tuple[JsonObject, list[tuple[str, ...]]]

_OF_ONE_PLANE: Final = frozenset(
    {"observedGeneration", "observedTemplateGeneration", "observedTemplateUID", "conditions"}
)
_SAID: Final = ("type", "status", "reason", "message")


def shown_of(status: JsonObject, *, but: str = "") -> Shown:
    """What to compare; `but` is the type of a condition that is not passed on."""
    said = [
        tuple([member_text(entry, name) for name in _SAID])
        for entry in member_list(status, "conditions")
        if isinstance(entry, dict) and entry.get("type") != but
    ]
    rest = {name: value for name, value in status.items() if name not in _OF_ONE_PLANE}
    return rest, sorted(said)
