"""The whole status of a Workload, and the events of its transitions. Pure.

The stored status is the base, so that members of other writers survive. An event is recorded only
where a reason begins, or each reconcile would record it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import Statement
from compute_management_operator.stored_status import StoredStatus
from compute_management_operator.workload.observe import ObservedWorkload, WorkloadChild
from compute_management_operator.workload.plan import ACTION
from compute_management_operator.workload.status import autoscaling, placements, workload
from compute_management_operator.workload.status.conditions import Blocker
from compute_management_operator.workload.status.inputs import (
    StatusInputs,
    derive_inputs,
    has_answered,
)
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import InvalidSpecError
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.intents.intents import Ensure, Plan, RecordEvent, RequeueAfter, SetStatus
from compute_operator_kit.intents.outcomes import Applied

RECORDED_AS_EVENTS: Final = frozenset(
    {reasons.NO_MATCHING_LOCATION, reasons.NETWORK_NOT_FOUND, reasons.NAME_COLLISION}
)


@dataclass(frozen=True, slots=True)
class PlacementConditions:
    """The conditions of a placement, or of the Workload, and what is stored there now."""

    statements: tuple[Statement, ...]
    stored: StoredStatus


def report(seen: ObservedWorkload, applied: Applied, now: datetime) -> Plan:
    if labels.WORKLOAD_FINALIZER not in seen.metadata.finalizers:
        # The reconcile that adds the finalizer does nothing else. The next one does not wait for
        # its event, which may be lost; a finalizer that could not be added is left to the back-off.
        return Plan() if applied.failures else _reconcile_again(seen)
    if seen.metadata.is_deleting and not seen.deployments:
        return Plan()  # the finalizer is removed, and with it the object
    observed = derive_inputs(seen, applied)
    of_placements, of_workload = _state_all(observed)
    written = SetStatus(
        seen.key,
        seen.metadata.uid,
        seen.metadata.resource_version,
        _status(observed, of_placements, of_workload, now),
        reason=of_workload.statements[0].reason,
        may_defer=conditions.provisional(
            "Workload", of_workload.statements, seen.status.conditions
        ),
        ignore_own_event=True,  # nothing is derived from our own conditions
    )
    stated = (of_workload, *of_placements.values())
    return Plan((written, *_events(seen, stated, written)))


def _reconcile_again(seen: ObservedWorkload) -> Plan:
    if seen.metadata.is_deleting:
        return Plan()
    return Plan.of(RequeueAfter(seen.key, reasons.FINALIZER_MISSING, ZERO))


def _state_all(
    observed: StatusInputs,
) -> tuple[dict[str, PlacementConditions], PlacementConditions]:
    stated: dict[str, PlacementConditions] = {}
    everything: list[Blocker] = []
    of_placements: dict[str, tuple[Statement, ...]] = {}
    for name, placement in observed.placements.items():
        available = placements.state_available(observed, placement)
        blockers = list(placements.ready_blockers(observed, placement))
        everything += blockers
        ready = placements.state_ready(blockers, observed.generation)
        scaling = autoscaling.state_placement(placement.deployments, observed.generation)
        of_placements[name] = scaling
        stated[name] = PlacementConditions((available, ready, *scaling), placement.stored)
    available = workload.state_available(observed, (one.statements[0] for one in stated.values()))
    ready = workload.state_workload_ready(observed, everything)
    scaling = autoscaling.state_workload(of_placements, observed.generation)
    statements = (available, ready, *scaling)
    return stated, PlacementConditions(statements, observed.observed.status)


# --- documents ------------------------------------------------------------------------------------


def _status(
    observed: StatusInputs,
    of_placements: dict[str, PlacementConditions],
    of_workload: PlacementConditions,
    now: datetime,
) -> JsonObject:
    seen = observed.observed
    entries: list[Json] = [
        _placement(observed, name, of_placements[name], now) for name in observed.placements
    ]
    return {
        **seen.status.document,
        **_counters(observed, seen.deployments),
        "deployments": len(seen.deployments) + observed.created,
        "observedGeneration": observed.generation,
        "conditions": _merged(of_workload, now),
        "placements": entries,
    }


def _placement(
    observed: StatusInputs, name: str, stated: PlacementConditions, now: datetime
) -> JsonObject:
    return {
        **stated.stored.document,
        **_counters(observed, observed.placements[name].deployments),
        "name": name,
        "conditions": _merged(stated, now),
    }


def _merged(stated: PlacementConditions, now: datetime) -> list[Json]:
    # Both types of autoscaling are ours and go with the last deployment that has them.
    gone = set(conditions.AUTOSCALING) - {one.type for one in stated.statements}
    stored = stated.stored.documents_without(gone)
    return conditions.merge_documents(stored, stated.statements, now)


def _counters(observed: StatusInputs, deployments: Iterable[WorkloadChild]) -> JsonObject:
    replicas = desired = ready = current = updated = 0
    for deployment in deployments:
        status = deployment.status
        replicas += status.replicas
        desired += status.desired_replicas
        ready += status.ready_replicas
        # Right after an edit these two still count the former template as the present one, so only
        # deployments that have answered to their present generation are added.
        if has_answered(observed, deployment):
            current += status.current_replicas
            updated += status.updated_replicas
    return {
        "replicas": replicas,
        "desiredReplicas": desired,
        "readyReplicas": ready,
        "currentReplicas": current,
        "updatedReplicas": updated,
    }


# --- events ---------------------------------------------------------------------------------------


def _events(
    seen: ObservedWorkload, stated: Iterable[PlacementConditions], written: SetStatus
) -> Iterator[RecordEvent]:
    """One event for each reason and message that begins, if the user can act on it."""
    begun: dict[tuple[str, str], None] = {}
    for part in stated:
        before = {(one.type, one.reason) for one in part.stored.conditions}
        for one in part.statements:
            if one.reason in RECORDED_AS_EVENTS and (one.type, one.reason) not in before:
                begun[one.reason, one.message] = None
    for reason, message in begun:
        yield _warning(seen, reason, message, written)


def rejections(applied: Applied) -> dict[str, str]:
    """Deployments that the API server rejects as invalid, each with the message of the event."""
    refused: dict[str, str] = {}
    for outcome in applied.outcomes:
        error = outcome.error
        if isinstance(outcome.intent, Ensure) and isinstance(error, InvalidSpecError):
            name = outcome.intent.key.name
            refused[name] = f'Deployment "{name}" was rejected: {_derive_why(error)}'
    return refused


def _derive_why(error: InvalidSpecError) -> str:
    """The fields and the reason for each, without their values.

    The server's own message repeats the value, which may be a secret.
    """
    causes = error.answer.causes if error.answer is not None else ()
    named = [f"{cause.field}: {cause.reason}" for cause in causes if cause.field]
    return ", ".join(named) or "the API server calls it invalid"


def rejection_event(seen: ObservedWorkload, message: str) -> RecordEvent:
    return _warning(seen, reasons.DEPLOYMENT_REJECTED, message, None)


def _warning(
    seen: ObservedWorkload, reason: str, message: str, after: SetStatus | None
) -> RecordEvent:
    return RecordEvent(
        seen.key, seen.metadata.uid, reason, message, ACTION, type="Warning", after=after
    )
