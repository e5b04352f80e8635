"""Metrics of the hub controllers, counted from the outcomes of their plans.

No label names a project: one series per tenant would exhaust the monitoring system.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_management_operator.hub.latency import LatencyTracker
from compute_management_operator.planes import (
    CONFIG_MAP,
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
    SECRET,
)
from compute_operator_kit.core.errors import (
    PlaneGoneError,
    ProjectSuspendedError,
    ReconcileError,
)
from compute_operator_kit.core.keys import Kind, ObjectKey
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Intent,
    RecordEvent,
    RequeueAfter,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

FEDERATION_WRITES: Final = "compute_federation_writes_total"
POLICY_WRITES: Final = "compute_federation_policy_writes_total"
PROJECTION_WRITES: Final = "compute_projection_writes_total"
HUB_ERRORS: Final = "compute_federation_hub_errors_total"
IDENTITY_CONFLICTS: Final = "compute_federation_identity_conflicts_total"
DROPPED: Final = "compute_federation_dropped_events_total"
SWEEP_REFUSALS: Final = "compute_sweep_refusals_total"
LATENCY: Final = "compute_federation_latency_seconds"
MIRROR_LATENCY: Final = "compute_federation_mirror_latency_seconds"
OLDEST_PENDING: Final = "compute_oldest_pending_seconds"
PROJECTION_LAG: Final = "compute_projection_lag_seconds"
POLICIES: Final = "compute_federation_policies"
FINALIZERS_HELD: Final = "compute_federation_finalizers_held"
ORPHANED: Final = "compute_federation_orphaned_hub_objects"
REPORTING_CELLS: Final = "compute_federation_deployments_reporting_cells"
AMBIGUOUS_CITIES: Final = "compute_federation_ambiguous_cities"
SUSPENDED_PROJECTS: Final = "compute_suspended_projects"
SUSPENDED_DEPLOYMENTS: Final = "compute_suspended_deployments"
SUSPENSION_UNCONFIRMED: Final = "compute_suspension_unconfirmed"
CELLS: Final = "compute_federation_cells"
CELL_LEASE_AGE: Final = "compute_federation_cell_lease_age_seconds"
DARK_TRANSITIONS: Final = "compute_federation_dark_transitions_total"
DARK_OBJECTS: Final = "compute_federation_dark_objects"
QUARANTINED: Final = "compute_federation_quarantined_objects"
MISPLACED_CLAIMS: Final = "compute_misplaced_claims_removed_total"
UNBACKED_CLAIMS: Final = "compute_unbacked_claims"
COMPANIONS: Final = "compute_referenced_data_companions"
DATA_ERRORS: Final = "compute_referenced_data_errors"
DATA_UNDISTRIBUTED: Final = "compute_referenced_data_undistributed"
COMPANION_WRITES: Final = "compute_referenced_data_writes_total"
DATA_LAG: Final = "compute_referenced_data_lag_seconds"

# With and without values they are two kinds of one name.
_COMPANIONS: Final = frozenset({CONFIG_MAP.kind, SECRET.kind})
_OBJECTS: Final[dict[Kind, str]] = {NAMESPACE: "namespace", DEPLOYMENT: "deployment"}


def operation_of(intent: Intent) -> str:
    """What an intent does to its object, as a label value."""
    match intent:
        case Ensure(uid=None):
            return "create"
        case Delete():
            return "delete"
        case SetStatus():
            return "status"
        case RecordEvent() | RequeueAfter():
            return "none"
        case _:
            return "update"


def count_writes(applied: Applied, measures: MetricsPort) -> None:
    """Every write that an API server acknowledged, in the counter of its kind."""
    for outcome in applied.outcomes:
        if outcome.effect is Effect.WRITTEN:
            _count_write(outcome.intent, measures)


def _count_write(intent: Intent, measures: MetricsPort) -> None:
    kind, operation = intent.key.kind, operation_of(intent)
    if intent.key.plane == HUB and kind in _OBJECTS:
        measures.count(FEDERATION_WRITES, object=_OBJECTS[kind], operation=operation)
    elif intent.key.plane == HUB and kind == POLICY:
        measures.count(POLICY_WRITES, operation=operation)
    elif intent.key.plane != HUB and kind == INSTANCE:
        measures.count(PROJECTION_WRITES, operation=operation)


def count_companion_writes(applied: Applied, measures: MetricsPort) -> None:
    """Every ConfigMap and Secret that the hub acknowledged."""
    for outcome in applied.outcomes:
        key = outcome.intent.key
        is_companion = key.plane == HUB and key.kind.kind in _COMPANIONS
        if outcome.effect is Effect.WRITTEN and is_companion:
            measures.count(COMPANION_WRITES, operation=operation_of(outcome.intent))


def count_hub_errors(applied: Applied, controller: str, measures: MetricsPort) -> None:
    for outcome in applied.outcomes:
        if outcome.effect is Effect.FAILED and outcome.error is not None:
            count_hub_error(outcome.error, controller, operation_of(outcome.intent), measures)


def count_hub_error(
    error: ReconcileError, controller: str, operation: str, measures: MetricsPort
) -> None:
    if error.plane == HUB:
        code = str(error.status or "none")
        measures.count(HUB_ERRORS, controller=controller, operation=operation, code=code)


def is_deferred_for_hub(failures: Iterable[ReconcileError]) -> bool:
    """Whether a write of a reconcile to the hub failed."""
    return any(error.plane == HUB for error in failures)


def is_deferred_for_project(failures: Iterable[ReconcileError]) -> bool:
    """Whether a write of a reconcile to a project failed that still exists; a suspended project
    accepts none, and its state is frozen on purpose.
    """
    expected = (PlaneGoneError, ProjectSuspendedError)
    return any(
        error.plane not in {"", HUB} and not isinstance(error, expected) for error in failures
    )


def end_latency(latency: LatencyTracker, key: ObjectKey, outcome: Outcome) -> None:
    """Ends the latency of a write to a project; a suspended project is no delay of ours."""
    if isinstance(outcome.error, ProjectSuspendedError):
        latency.drop(key)
    else:
        latency.end(key, outcome.effect)


def is_waiting_for(applied: Applied, reason: str) -> bool:
    """Whether a reconcile ended with a wait for this reason."""
    return any(
        isinstance(outcome.intent, RequeueAfter) and outcome.intent.reason == reason
        for outcome in applied.outcomes
    )


def has_recorded(applied: Applied, reason: str) -> bool:
    """Whether an event of this reason was recorded."""
    return any(
        isinstance(outcome.intent, RecordEvent)
        and outcome.intent.reason == reason
        and outcome.effect is Effect.NOTED
        for outcome in applied.outcomes
    )
