"""Conditions as Milo writes them: one entry per type, whose time moves with its status. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from compute_sim_planes.api_server.sources import render_time
from compute_sim_planes.json_types import JsonObject, JsonValue, objects_at, string_at


@dataclass(frozen=True, slots=True)
class Finding:
    """What one condition is to say."""

    type: str
    status: str
    reason: str
    message: str
    # Claims' conditions carry none.
    generation: int | None = None


def find_condition(found: JsonObject, condition: str) -> JsonObject | None:
    entries = objects_at(found, "status", "conditions")
    return next((entry for entry in entries if entry.get("type") == condition), None)


def holds(found: JsonObject, condition: str) -> bool:
    return string_at(find_condition(found, condition), "status") == "True"


def derive_conditions(found: JsonObject, wanted: Finding, now: datetime) -> list[JsonValue]:
    """All conditions of an object with one of them as wanted; the others stay as they are."""
    before = find_condition(found, wanted.type)
    since = string_at(before, "lastTransitionTime")
    if before is None or before.get("status") != wanted.status:
        since = render_time(now)
    entry: JsonObject = {
        "lastTransitionTime": since,
        "message": wanted.message,
        "reason": wanted.reason,
        "status": wanted.status,
        "type": wanted.type,
    }
    if wanted.generation is not None:
        entry["observedGeneration"] = wanted.generation
    kept: list[JsonValue] = [*objects_at(found, "status", "conditions")]
    if before is None:
        return [*kept, entry]
    return [entry if one is before else one for one in kept]
