"""Status: the status of one Note. Pure."""

from __future__ import annotations

from compute_operator_kit.core.json import JsonValue
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Plan, SetStatus
from compute_operator_kit.intents.outcomes import Applied
from example_operator.mirror.observe import ObservedNote

PENDING = "Pending"


def report(observed: ObservedNote, applied: Applied) -> Plan:
    """The phase of the copy, with the generation of the Note that was handled."""
    if isinstance(observed.note, Absent) or observed.note.metadata.is_deleting:
        return Plan()
    phase = "" if isinstance(observed.copy, Absent) else observed.copy.status.get("phase", "")
    if any(error.status == 422 for error in applied.errors):
        phase = "Rejected"
    status: dict[str, JsonValue] = {
        "phase": phase or PENDING,
        "observedGeneration": observed.note.metadata.generation,
    }
    status_intent = SetStatus(
        observed.key,
        observed.note.metadata.uid,
        observed.note.metadata.resource_version,
        status,
        reason=str(phase or PENDING),
        may_defer=not phase,
    )
    return Plan.of(status_intent)
