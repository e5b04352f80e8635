"""Events about a deployment: what changed between the stored status and the one written now. Pure
(cell.md 14).

Each is tied to the write that makes it true, so it is told once, and not again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_api_types.v1alpha.scale_settings import ORDERED_READY
from compute_cell_operator.deployment.observe import Seen
from compute_cell_operator.deployment.plan.decision import ACTION, Decision
from compute_cell_operator.deployment.plan.location import Located
from compute_cell_operator.deployment.status.counters import Counters
from compute_cell_operator.told import read_conditions
from compute_operator_kit.intents import Emit, SetStatus
from compute_operator_kit.wire import member_int, member_object, member_text

LOCATING: Final = "ResolvingLocation"
_ACTIONS: Final = {
    reasons.INSTANCE_FAILED_TO_CREATE: ACTION,
    reasons.CITY_CODE_MISMATCH: LOCATING,
    reasons.NO_MATCHING_LOCATION: LOCATING,
    reasons.NETWORK_FAILED_TO_CREATE: "ProvisioningNetwork",
    reasons.DELETION_BLOCKED: "DeletingDeployment",
}
"""Reasons of a condition that are told as an event too."""


@dataclass(frozen=True, slots=True)
class Event:
    """What is told."""

    reason: str
    message: str
    action: str = ACTION
    type: Literal["Normal", "Warning"] = "Normal"


def derive_events(
    seen: Seen,
    decision: Decision,
    counters: Counters,
    statements: tuple[Statement, ...],
    written: SetStatus,
) -> Iterator[Emit]:
    for event in (
        *_progress(seen, counters, statements),
        *_troubles(seen, statements),
        *_oddities(seen, decision),
    ):
        yield Emit(
            seen.key,
            seen.metadata.uid,
            event.reason,
            event.message,
            event.action,
            type=event.type,
            after=written,
        )


def _progress(seen: Seen, counters: Counters, statements: tuple[Statement, ...]) -> Iterator[Event]:
    before = member_int(seen.status, "desiredReplicas")
    updated = member_int(seen.status, "updatedReplicas")
    if before != counters.desired:
        yield Event(reasons.SCALED, f"Scaled from {before} to {counters.desired} replicas")
    if _is_new_generation(seen) and counters.updated < updated:
        message = f"{counters.updated} of {counters.desired} replicas run the new template"
        yield Event(reasons.ROLLOUT_STARTED, message)
    was_ready = conditions.is_true(read_conditions(seen.status), conditions.REPLICAS_READY)
    is_ready = conditions.is_true(statements, conditions.REPLICAS_READY)
    if is_ready and not was_ready and updated < counters.desired:
        message = f"All {counters.desired} replicas run the current template"
        yield Event(reasons.ROLLOUT_COMPLETED, message)


def _troubles(seen: Seen, statements: tuple[Statement, ...]) -> Iterator[Event]:
    # `ReplicasReady` tells of trouble also while something else is ready.
    said = conditions.find(statements, conditions.REPLICAS_READY)
    stored = conditions.find(read_conditions(seen.status), conditions.REPLICAS_READY)
    if said is None or said.reason not in _ACTIONS:
        return
    if stored is None or stored.reason != said.reason:
        yield Event(said.reason, said.message, _ACTIONS[said.reason], "Warning")


def _oddities(seen: Seen, decision: Decision) -> Iterator[Event]:
    """Said once per generation: nothing in the status would show that they were said before."""
    if not _is_new_generation(seen):
        return
    found = decision.resolution
    if isinstance(found, Located) and len(found.candidates) > 1:
        listed = ", ".join(f'"{name}"' for name in found.candidates)
        message = (
            f'{len(found.candidates)} Locations match city code "{seen.city_code}" '
            f'({listed}); using "{found.name}"'
        )
        yield Event(reasons.AMBIGUOUS_LOCATION, message, LOCATING, "Warning")
    policy = member_text(member_object(seen.spec, "scaleSettings"), "instanceManagementPolicy")
    if policy not in {"", ORDERED_READY}:
        message = f'Instance management policy "{policy}" is not known; OrderedReady is used'
        yield Event(reasons.UNSUPPORTED_MANAGEMENT_POLICY, message, ACTION, "Warning")


def _is_new_generation(seen: Seen) -> bool:
    return member_int(seen.status, "observedGeneration") != seen.metadata.generation
