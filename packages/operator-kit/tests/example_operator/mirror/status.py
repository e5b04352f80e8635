"""Tells what became of a Note. Pure."""

from __future__ import annotations

from compute_operator_kit.intents import Plan, SetStatus
from compute_operator_kit.objects import Absent
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.wire import JsonValue
from example_operator.mirror.observe import Seen

PENDING = "Pending"


def report(seen: Seen, applied: Applied) -> Plan:
    """The status of the Note: what the copy says, and whether it is about this generation."""
    if isinstance(seen.note, Absent) or seen.note.metadata.is_deleting:
        return Plan()
    phase = "" if isinstance(seen.copy, Absent) else seen.copy.status.get("phase", "")
    if any(error.status == 422 for error in applied.errors):
        phase = "Rejected"
    status: dict[str, JsonValue] = {
        "phase": phase or PENDING,
        "observedGeneration": seen.note.metadata.generation,
    }
    told = SetStatus(
        seen.key,
        seen.note.metadata.uid,
        seen.note.metadata.resource_version,
        status,
        reason=str(phase or PENDING),
        provisional=not phase,
    )
    return Plan.of(told)
