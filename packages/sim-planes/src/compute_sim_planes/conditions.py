"""Conditions in an object's status: one entry per type, with its last transition time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at
from compute_sim_planes.time.sources import render_time


@dataclass(frozen=True, slots=True)
class Condition:
    """A desired condition."""

    type: str
    status: str
    reason: str
    message: str
    # Conditions of claims have none.
    generation: int | None = None


def find_condition(document: JsonObject, condition: str) -> JsonObject | None:
    entries = objects_at(document, "status", "conditions")
    return next((entry for entry in entries if entry.get("type") == condition), None)


def is_condition_true(document: JsonObject, condition: str) -> bool:
    return string_at(find_condition(document, condition), "status") == "True"


def derive_conditions(document: JsonObject, condition: Condition, now: datetime) -> list[JsonValue]:
    """All conditions of an object with one of them replaced; the others are unchanged."""
    before = find_condition(document, condition.type)
    since = string_at(before, "lastTransitionTime")
    if before is None or before.get("status") != condition.status:
        since = render_time(now)
    entry: JsonObject = {
        "lastTransitionTime": since,
        "message": condition.message,
        "reason": condition.reason,
        "status": condition.status,
        "type": condition.type,
    }
    if condition.generation is not None:
        entry["observedGeneration"] = condition.generation
    kept: list[JsonValue] = [*objects_at(document, "status", "conditions")]
    if before is None:
        return [*kept, entry]
    return [entry if one is before else one for one in kept]
