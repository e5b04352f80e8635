"""Available and Ready of the Workload itself (api.md 8.4).

Both summarise the placements, so that a user reads the blocker on the Workload and need not search
the placements for it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.workload.status.conditions import (
    OUT_OF_DATE,
    Blocker,
    derive_blocker,
    state,
    state_worst,
)
from compute_management_operator.workload.status.inputs import StatusInputs
from compute_management_operator.workload.status.placements import state_ready

IS_AVAILABLE = Blocker(
    reasons.AVAILABLE_PLACEMENT_FOUND, "At least one available placement was found"
)
NONE_AVAILABLE = Blocker(
    reasons.NO_AVAILABLE_PLACEMENTS, "No available placements were found for the workload"
)


def state_available(observed: StatusInputs, placements: Iterable[Statement]) -> Statement:
    """One available placement is enough; `placements` are their Available conditions, by name."""
    stated = list(placements)
    if any(one.status == "True" for one in stated):
        return state(conditions.AVAILABLE, "True", IS_AVAILABLE, observed.generation)
    missing = [observed.network_blocker] if observed.network_blocker is not None else []
    # A placement without any reason of its own adds nothing to the Workload's.
    named = [
        derive_blocker(one.reason, one.message)
        for one in stated
        if one.reason != reasons.NO_AVAILABLE_DEPLOYMENTS
    ]
    blockers = [*missing, *named, NONE_AVAILABLE]
    return state_worst(conditions.AVAILABLE, blockers, observed.generation)


def state_workload_ready(observed: StatusInputs, blockers: Iterable[Blocker]) -> Statement:
    """Ready when no placement is blocked and the spec names a city at all."""
    if observed.observed.metadata.is_deleting:
        return state(conditions.READY, "False", _terminating(observed), observed.generation)
    everything = [*blockers, *([OUT_OF_DATE] if observed.has_strays else [])]
    if not everything and not any(one.cities for one in observed.placements.values()):
        # Admission was bypassed: the spec names no city, so nothing can be ready.
        everything = [OUT_OF_DATE]
    return state_ready(everything, observed.generation)


def _terminating(observed: StatusInputs) -> Blocker:
    named = ", ".join(one.name for one in observed.observed.deployments)
    return Blocker(reasons.TERMINATING, f"Waiting for deployments to go: {named}")
