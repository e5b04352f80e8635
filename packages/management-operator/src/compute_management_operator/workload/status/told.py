"""Conditions as somebody has written them, and what blocks as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_operator_kit.wire import JsonObject, member_list, member_text


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps a placement from being available or ready."""

    reason: str
    message: str
    status: str = "False"


BEHIND: Final = Blocker(reasons.INSTANCES_PROVISIONING, "Deployments are being brought up to date")


@dataclass(frozen=True, slots=True)
class Told:
    """A condition as somebody has written it."""

    type: str
    status: str
    reason: str
    message: str


def told_conditions(status: JsonObject) -> tuple[Told, ...]:
    """The conditions of a raw status; an entry without a type is nobody's."""
    return tuple(
        Told(
            type=member_text(entry, "type"),
            status=member_text(entry, "status"),
            reason=member_text(entry, "reason"),
            message=member_text(entry, "message"),
        )
        for entry in member_list(status, "conditions")
        if isinstance(entry, dict) and member_text(entry, "type")
    )


def find_blocker(status: JsonObject, condition_type: str) -> Blocker | None:
    """What a condition says, as something that may block; True ones are told by their status."""
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and entry.get("type") == condition_type:
            return Blocker(
                member_text(entry, "reason"),
                member_text(entry, "message"),
                member_text(entry, "status"),
            )
    return None


def state(
    condition_type: str, status: ConditionStatus, blocker: Blocker, generation: int
) -> Statement:
    return Statement(condition_type, status, blocker.reason, blocker.message, generation)


def state_worst(condition_type: str, blockers: list[Blocker], generation: int) -> Statement:
    """False, for the most specific of these reasons; there must be one at least."""
    worst = conditions.summarise(blockers) or BEHIND
    return state(condition_type, "False", worst, generation)
