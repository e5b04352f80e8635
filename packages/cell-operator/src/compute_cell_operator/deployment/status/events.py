"""Events of a deployment: differences between the stored status and the one written now. Pure
(cell.md 14).

Each event is recorded only after the status write that it is derived from, so that it is recorded
once, and not again after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_api_types.v1alpha.scale_settings import ORDERED_READY
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan import ACTION, Decision
from compute_cell_operator.deployment.plan.location import Located
from compute_cell_operator.deployment.status.counters import Counters
from compute_operator_kit.intents.intents import RecordEvent, SetStatus

LOCATING: Final = "ResolvingLocation"
SUSPENDING: Final = "SuspendingProject"
AUTOSCALING: Final = "Autoscaling"
_ACTIONS: Final = {
    reasons.INSTANCE_FAILED_TO_CREATE: ACTION,
    reasons.CITY_CODE_MISMATCH: LOCATING,
    reasons.NO_MATCHING_LOCATION: LOCATING,
    reasons.NETWORK_FAILED_TO_CREATE: "ProvisioningNetwork",
    reasons.DELETION_BLOCKED: "DeletingDeployment",
}
"""Reasons of a condition that are recorded as an event too, by action."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event before its object is added."""

    reason: str
    message: str
    action: str = ACTION
    type: Literal["Normal", "Warning"] = "Normal"


def derive_events(
    observed: ObservedDeployment,
    decision: Decision,
    counters: Counters,
    statements: tuple[Statement, ...],
    written: SetStatus,
) -> Iterator[RecordEvent]:
    for event in (
        *_progress(observed, counters, statements),
        *_suspension(observed),
        *_warnings(observed, statements),
        *_autoscaling(observed, statements),
        *_ambiguities(observed, decision),
    ):
        yield RecordEvent(
            observed.key,
            observed.metadata.uid,
            event.reason,
            event.message,
            event.action,
            type=event.type,
            after=written,
        )


def _progress(
    observed: ObservedDeployment, counters: Counters, statements: tuple[Statement, ...]
) -> Iterator[Event]:
    before, updated = observed.status.desired_replicas, observed.status.updated_replicas
    if before != counters.desired:
        cause = " (autoscaler)" if observed.scaling.is_active and before else ""
        message = f"Scaled from {before} to {counters.desired} replicas{cause}"
        yield Event(reasons.SCALED, message)
    if _is_new_generation(observed) and counters.updated < updated:
        message = f"{counters.updated} of {counters.desired} replicas run the new template"
        yield Event(reasons.ROLLOUT_STARTED, message)
    was_ready = conditions.is_true(observed.status.conditions, conditions.REPLICAS_READY)
    is_ready = conditions.is_true(statements, conditions.REPLICAS_READY)
    if is_ready and not was_ready and updated < counters.desired:
        message = f"All {counters.desired} replicas run the current template"
        yield Event(reasons.ROLLOUT_COMPLETED, message)


def _suspension(observed: ObservedDeployment) -> Iterator[Event]:
    was, now = observed.status.is_suspended, observed.is_suspended
    number = len(observed.owned)
    if now and not was:
        message = f"Project suspended; {number} instance(s) suspended"
        yield Event(reasons.PROJECT_PAUSED, message, SUSPENDING)
    elif was and not now:
        message = f"Project resumed; {number} instance(s) resumed"
        yield Event(reasons.PROJECT_RESUMED, message, SUSPENDING)


def _warnings(observed: ObservedDeployment, statements: tuple[Statement, ...]) -> Iterator[Event]:
    # Unlike `Available`, `ReplicasReady` has a blocker also while another Instance is ready.
    replicas = conditions.find(statements, conditions.REPLICAS_READY)
    stored = conditions.find(observed.status.conditions, conditions.REPLICAS_READY)
    if replicas is None or replicas.reason not in _ACTIONS:
        return
    if stored is None or stored.reason != replicas.reason:
        yield Event(replicas.reason, replicas.message, _ACTIONS[replicas.reason], "Warning")


def _autoscaling(
    observed: ObservedDeployment, statements: tuple[Statement, ...]
) -> Iterator[Event]:
    ready = conditions.find(statements, conditions.AUTOSCALING_READY)
    stored = conditions.find(observed.status.conditions, conditions.AUTOSCALING_READY)
    if ready is None or ready.status != "False":
        return
    if stored is None or stored.status != "False":
        yield Event(ready.reason, ready.message, AUTOSCALING, "Warning")


def _ambiguities(observed: ObservedDeployment, decision: Decision) -> Iterator[Event]:
    """Recorded once per generation: no field of the status shows that they were recorded."""
    if not _is_new_generation(observed):
        return
    resolution = decision.resolution
    if isinstance(resolution, Located) and len(resolution.candidates) > 1:
        listed = ", ".join(f'"{name}"' for name in resolution.candidates)
        message = (
            f'{len(resolution.candidates)} Locations match city code "{observed.spec.city_code}" '
            f'({listed}); using "{resolution.name}"'
        )
        yield Event(reasons.AMBIGUOUS_LOCATION, message, LOCATING, "Warning")
    policy = observed.spec.management_policy
    if policy not in {"", ORDERED_READY}:
        message = f'Instance management policy "{policy}" is not known; OrderedReady is used'
        yield Event(reasons.UNSUPPORTED_MANAGEMENT_POLICY, message, ACTION, "Warning")


def _is_new_generation(observed: ObservedDeployment) -> bool:
    return observed.status.observed_generation != observed.metadata.generation
