"""Status of a deployment, and the events of its changes. Pure (cell.md 7, api.md 8.3).

```
counters      numbers over the existing Instances
blockers      every reason that applies, ranked by the one table
conditions    Available, ReplicasReady and Ready
events        what this write changes
```

The whole status is derived in every reconcile, also when a write failed, so that the failure is
shown; it is written only if it differs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_api_types import labels, reasons
from compute_api_types.conditions import AUTOSCALING, Statement, provisional
from compute_cell_operator.autoscaling.delays import HOLD_LIMITED
from compute_cell_operator.autoscaling.status import is_only_limited, state_scaling
from compute_cell_operator.conditions import drop_conditions
from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.deployment.plan import Decision
from compute_cell_operator.deployment.plan.location import Located, refer_to_location
from compute_cell_operator.deployment.status.blockers import find_blockers
from compute_cell_operator.deployment.status.conditions import state_conditions
from compute_cell_operator.deployment.status.counters import (
    Counters,
    count,
    read_template_generation,
    read_template_uid,
)
from compute_cell_operator.deployment.status.events import derive_events
from compute_cell_operator.suspension import SUSPENDED
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.intents.intents import Plan, SetStatus
from compute_operator_kit.intents.outcomes import Applied

KIND: Final = "WorkloadDeployment"


def report(
    observed: ObservedDeployment, decision: Decision, applied: Applied, now: datetime
) -> Plan:
    counters = count(observed)
    blockers = find_blockers(observed, decision, applied, counters)
    autoscaling = state_autoscaling(observed)
    statements = (*state_conditions(observed, counters, blockers), *(autoscaling or ()))
    status = derive_status(observed, decision, counters, statements, now)
    if autoscaling is not None and not autoscaling:
        status = drop_conditions(status, AUTOSCALING)
    is_held = _is_held(observed, status, statements)
    written = SetStatus(
        observed.key,
        observed.metadata.uid,
        observed.metadata.resource_version,
        status,
        reason=reasons.STATUS_CHANGED,
        may_defer=is_held or provisional(KIND, statements, observed.status.conditions),
        defer_for=HOLD_LIMITED if is_held else None,
        ignore_own_event=True,  # nothing is decided from it
    )
    events = derive_events(observed, decision, counters, statements, written)
    return Plan((written, *events))


def state_autoscaling(observed: ObservedDeployment) -> tuple[Statement, ...] | None:
    """Of an autoscaled deployment; None where the stored conditions stand (autoscaling.md 4)."""
    return state_scaling(
        observed.scaling, observed.metadata.generation, is_suspended=observed.is_suspended
    )


def _is_held(
    observed: ObservedDeployment, status: JsonObject, statements: tuple[Statement, ...]
) -> bool:
    """Whether `AutoscalingLimited` alone has changed: it may turn with every evaluation."""
    stored = observed.status
    if not is_only_limited(statements, stored.conditions):
        return False
    before = {name: value for name, value in stored.stored.document.items() if name != "conditions"}
    return before == {name: value for name, value in status.items() if name != "conditions"}


def derive_status(
    observed: ObservedDeployment,
    decision: Decision,
    counters: Counters,
    statements: tuple[Statement, ...],
    now: datetime,
) -> JsonObject:
    """The stored status with all our fields in it."""
    stored = observed.status.stored.with_conditions(statements, now)
    status: JsonObject = {**stored, **counters.as_json()}
    if isinstance(decision.resolution, Located):
        name = decision.resolution.name
        # An equal one is kept as stored: an older server may have pruned a member of it.
        if name != observed.status.location:
            status["location"] = _location(name)
    status["observedGeneration"] = observed.metadata.generation
    for member, value in _optional_members(observed).items():
        status.pop(member, None)
        if value is not None:
            status[member] = value
    return status


def _optional_members(observed: ObservedDeployment) -> JsonObject:
    """The hub object and generation that this status belongs to, and the suspension; a member of
    None is removed.
    """
    metadata = observed.metadata
    return {
        SUSPENDED: observed.is_suspended or None,
        "selector": _selector(observed) if observed.scaling.is_active else None,
        "observedTemplateGeneration": read_template_generation(metadata),
        "observedTemplateUID": read_template_uid(metadata, is_deleting=observed.is_deleting),
    }


def _selector(observed: ObservedDeployment) -> str:
    """Selects the Pods of the deployment; its provider labels them so (cell.md 15)."""
    return f"{labels.WORKLOAD_DEPLOYMENT_UID}={observed.metadata.uid}"


def _location(name: str) -> JsonObject:
    return {key: str(text) for key, text in refer_to_location(name).items()}
