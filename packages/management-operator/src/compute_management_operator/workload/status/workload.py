"""What is said about the Workload itself (api.md 8.4)."""

from __future__ import annotations

from collections.abc import Iterable

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.workload.status.observed import Observed
from compute_management_operator.workload.status.placements import state_ready
from compute_management_operator.workload.status.told import (
    BEHIND,
    Blocker,
    state,
    state_worst,
)

FOUND = Blocker(
    reasons.AVAILABLE_PLACEMENT_FOUND, "At least one available placement was found", "True"
)
NOTHING = Blocker(
    reasons.NO_AVAILABLE_PLACEMENTS, "No available placements were found for the workload"
)


def state_available(observed: Observed, placements: Iterable[Statement]) -> Statement:
    """One available placement is enough; `placements` is what each says of itself, by name."""
    told = list(placements)
    if any(one.status == "True" for one in told):
        return state(conditions.AVAILABLE, "True", FOUND, observed.generation)
    missing = [observed.network_blocker] if observed.network_blocker is not None else []
    # A placement that only says "nothing here" says less than the Workload does about itself.
    named = [
        Blocker(one.reason, one.message)
        for one in told
        if one.reason != reasons.NO_AVAILABLE_DEPLOYMENTS
    ]
    return state_worst(conditions.AVAILABLE, [*missing, *named, NOTHING], observed.generation)


def state_workload_ready(observed: Observed, blockers: Iterable[Blocker]) -> Statement:
    """Ready when no placement is blocked and something is asked for at all."""
    if observed.seen.metadata.is_deleting:
        return state(conditions.READY, "False", _terminating(observed), observed.generation)
    found = [*blockers, *([BEHIND] if observed.has_strays else [])]
    if not found and not any(one.verdicts for one in observed.placements.values()):
        # Admission was bypassed: nothing is asked for, so nothing can be ready.
        found = [BEHIND]
    return state_ready(found, observed.generation)


def _terminating(observed: Observed) -> Blocker:
    named = ", ".join(one.name for one in observed.seen.deployments)
    return Blocker(reasons.TERMINATING, f"Waiting for deployments to go: {named}")
