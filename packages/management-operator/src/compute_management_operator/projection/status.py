"""Shows in the project what the hub says of an Instance. Pure (management.md 8.2, 8.3).

Its conditions come from a cell and carry a cell's generation, which is none of the project's: they
are shown without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.meta import format_timestamp
from compute_management_operator.kinds import INSTANCE
from compute_management_operator.plane_names import HUB
from compute_management_operator.projection.observe import Instance, Seen
from compute_management_operator.sanitise import sanitise_instance_status
from compute_operator_kit.intents import Ensure, Plan, SetStatus
from compute_operator_kit.objects import Absent
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.wire import Json, JsonObject, member_list, member_text

TERMINATING_MESSAGE: Final = "Instance is being deleted"


@dataclass(frozen=True, slots=True)
class Told:
    """A condition as it stands in a status."""

    type: str
    status: str
    reason: str


def report(seen: Seen, applied: Applied, now: datetime) -> Plan:
    """Only of what this pass has verified: the object was wanted, so is its status."""
    if isinstance(seen.source, Absent):
        return Plan()
    for outcome in applied.outcomes:
        if isinstance(outcome.intent, Ensure) and _is_projection(outcome.intent):
            return Plan.of(_written(seen, seen.source, outcome.intent, now))
    return Plan()


def is_provisional(source: Instance, stored: JsonObject) -> bool:
    """Whether a difference may wait for the next one: a copy is judged like its source."""
    return conditions.provisional(
        "Instance",
        tuple(_told(source.status)),
        tuple(_told(stored)),
        is_terminating=source.metadata.is_deleting,
    )


def derive_status(source: Instance, stored: JsonObject, now: datetime) -> JsonObject:
    safe = sanitise_instance_status(source.status, stored, now)
    shown: list[Json] = [
        {name: value for name, value in entry.items() if name != "observedGeneration"}
        for entry in member_list(safe, "conditions")
        if isinstance(entry, dict)
    ]
    if source.metadata.is_deleting:
        shown = _terminating(shown, stored, now)
    return {**safe, "conditions": shown}


def _terminating(shown: list[Json], stored: JsonObject, now: datetime) -> list[Json]:
    """The same with `Ready` of an Instance that is being deleted (api.md 8.2, row 1). A finalizer
    may hold the copy on the hub, and its cell may report nothing more or Ready for good.
    """
    times = [*_times_not_ready(shown), *_times_not_ready(member_list(stored, "conditions"))]
    ready: JsonObject = {
        "type": conditions.READY,
        "status": "False",
        "reason": reasons.TERMINATING,
        "message": TERMINATING_MESSAGE,
        "lastTransitionTime": times[0] if times else format_timestamp(now),
    }
    others = [entry for entry in shown if not _is_ready_entry(entry)]
    return [*others, ready]


def _times_not_ready(entries: list[Json]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, dict) and _is_ready_entry(entry) and entry.get("status") == "False":
            yield member_text(entry, "lastTransitionTime")


def _is_ready_entry(entry: Json) -> bool:
    return isinstance(entry, dict) and entry.get("type") == conditions.READY


def _is_projection(intent: Ensure) -> bool:
    return intent.key.kind == INSTANCE and intent.key.plane != HUB


def _written(seen: Seen, source: Instance, made: Ensure, now: datetime) -> SetStatus:
    found = seen.found if isinstance(seen.found, Instance) else None
    stored: JsonObject = {} if found is None else found.status
    return SetStatus(
        made.key,
        made.uid,
        "" if found is None else found.metadata.resource_version,
        derive_status(source, stored, now),
        reason=reasons.STATUS_CHANGED,
        provisional=made.provisional,
    )


def _told(status: JsonObject) -> Iterator[Told]:
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict):
            yield Told(
                member_text(entry, "type"),
                member_text(entry, "status"),
                member_text(entry, "reason"),
            )
