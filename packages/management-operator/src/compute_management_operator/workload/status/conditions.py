"""What keeps a placement or a Workload from being available or ready, and conditions made of it.

Every condition of a Workload is made here, so that each names exactly one blocker: the one with the
highest rank (api.md 8.1). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_management_operator.stored_status import StoredCondition


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a placement from being available or ready."""

    reason: str
    message: str
    # Of a condition that this blocker decides: a dark city gives Unknown, all else False.
    status: ConditionStatus = "False"


OUT_OF_DATE: Final = Blocker(
    reasons.INSTANCES_PROVISIONING, "Deployments are being brought up to date"
)


def blocker_of(condition: StoredCondition) -> Blocker:
    """A condition that is not True, as what blocks."""
    return derive_blocker(condition.reason, condition.message)


def derive_blocker(reason: str, message: str) -> Blocker:
    is_dark = reason == reasons.CELL_UNREACHABLE
    return Blocker(reason, message, "Unknown" if is_dark else "False")


def state(
    condition_type: str, status: ConditionStatus, blocker: Blocker, generation: int
) -> Statement:
    return Statement(condition_type, status, blocker.reason, blocker.message, generation)


def state_worst(condition_type: str, blockers: list[Blocker], generation: int) -> Statement:
    """Not True, for the most specific of these reasons; the list must not be empty."""
    worst = conditions.summarise(blockers) or OUT_OF_DATE
    return state(condition_type, worst.status, worst, generation)
