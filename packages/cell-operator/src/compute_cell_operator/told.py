"""Conditions as somebody has written them, read as if they could be anything. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from compute_api_types import conditions
from compute_operator_kit.wire import JsonObject, member_int, member_list, member_text


@dataclass(frozen=True, slots=True)
class Told:
    """One condition."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int = 0

    @property
    def is_true(self) -> bool:
        return self.status == "True"


def read_conditions(status: JsonObject) -> tuple[Told, ...]:
    """The conditions of a status; entries of another shape are left out."""
    return tuple(
        Told(
            member_text(entry, "type"),
            member_text(entry, "status"),
            member_text(entry, "reason"),
            member_text(entry, "message"),
            member_int(entry, "observedGeneration"),
        )
        for entry in member_list(status, "conditions")
        if isinstance(entry, dict)
    )


def read_ready(status: JsonObject) -> Told | None:
    return conditions.find(read_conditions(status), conditions.READY)
