"""Tells how a deployment is doing. Pure (cell.md 7, api.md 8.3).

```
counters      numbers over the Instances there are
blockers      every reason that applies, ranked by the one table
transitions   events for what this write changes
```

The whole status is computed in every pass, also when an action failed, and written only if it
differs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.deployment.observe import Seen
from compute_cell_operator.deployment.plan.decision import Decision
from compute_cell_operator.deployment.plan.location import Located, refer_to_location
from compute_cell_operator.deployment.status.blockers import (
    Blocker,
    are_all_ready,
    find_blockers,
    find_held,
    has_stale_slot,
)
from compute_cell_operator.deployment.status.counters import (
    Counters,
    count,
    read_template_generation,
    read_template_uid,
)
from compute_cell_operator.deployment.status.transitions import derive_events
from compute_cell_operator.finalizers import describe_hold
from compute_cell_operator.told import read_conditions
from compute_operator_kit.intents import Plan, SetStatus
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.wire import Json, JsonObject, member_list

KIND: Final = "WorkloadDeployment"
LASTING: Final = 5  # blockers of this rank are shown also while something is ready
ABOUT_NETWORK: Final = 2


def report(seen: Seen, decision: Decision, applied: Applied, now: datetime) -> Plan:
    counters = count(seen)
    blockers = find_blockers(seen, decision, applied, counters)
    statements = state_conditions(seen, counters, blockers)
    written = SetStatus(
        seen.key,
        seen.metadata.uid,
        seen.metadata.resource_version,
        derive_status(seen, decision, counters, statements, now),
        reason=reasons.STATUS_CHANGED,
        provisional=conditions.provisional(KIND, statements, read_conditions(seen.status)),
        is_final=True,  # nothing is decided from it
    )
    events = derive_events(seen, decision, counters, statements, written)
    return Plan((written, *events))


def derive_status(
    seen: Seen,
    decision: Decision,
    counters: Counters,
    statements: tuple[Statement, ...],
    now: datetime,
) -> JsonObject:
    """The stored status with everything that is ours in it."""
    status: JsonObject = {**seen.status, **counters.as_json()}
    if isinstance(decision.resolution, Located) and decision.resolution.name != seen.last_location:
        # Kept as it is stored where it is the same: an older server may have pruned a part of it.
        status["location"] = dict(_location(decision.resolution.name))
    status["observedGeneration"] = seen.metadata.generation
    status["conditions"] = _merged(seen, statements, now)
    for name, value in _template_echoes(seen).items():
        status.pop(name, None)
        if value is not None:
            status[name] = value
    return status


def _template_echoes(seen: Seen) -> JsonObject:
    """What the hub reads to know which object and which generation this status belongs to; None is
    to be absent.
    """
    metadata = seen.metadata
    return {
        "observedTemplateGeneration": read_template_generation(metadata),
        "observedTemplateUID": read_template_uid(metadata, is_deleting=seen.is_deleting),
    }


def _location(name: str) -> JsonObject:
    return {key: str(text) for key, text in refer_to_location(name).items()}


def _merged(seen: Seen, statements: tuple[Statement, ...], now: datetime) -> list[Json]:
    return conditions.merge_documents(member_list(seen.status, "conditions"), statements, now)


def state_conditions(
    seen: Seen, counters: Counters, blockers: tuple[Blocker, ...]
) -> tuple[Statement, ...]:
    """Available, ReplicasReady and Ready, all for the generation that was read."""
    replicas, ready = _replicas(seen, counters, blockers)
    return (
        _state(seen, conditions.AVAILABLE, *_available(counters, blockers)),
        _state(seen, conditions.REPLICAS_READY, *replicas),
        _state(seen, conditions.READY, *ready),
    )


def _state(seen: Seen, kind: str, is_true: bool, said: Blocker) -> Statement:
    status: Literal["True", "False"] = "True" if is_true else "False"
    return Statement(kind, status, said.reason, said.message, seen.metadata.generation)


def _available(counters: Counters, blockers: tuple[Blocker, ...]) -> tuple[bool, Blocker]:
    if counters.ready:
        message = f"{counters.ready}/{counters.replicas} instances are ready"
        return True, Blocker(reasons.STABLE_INSTANCE_FOUND, message)
    return False, conditions.summarise(blockers) or blockers[-1]


def _replicas(
    seen: Seen, counters: Counters, blockers: tuple[Blocker, ...]
) -> tuple[tuple[bool, Blocker], tuple[bool, Blocker]]:
    """What ReplicasReady and Ready say, first match; they differ in the word for denied quota."""
    hold = describe_hold(seen.metadata)
    if hold:
        blocked = (False, Blocker(reasons.DELETION_BLOCKED, f"Deployment is being deleted; {hold}"))
        return blocked, blocked
    if counters.is_converged:
        message = f"{counters.ready}/{counters.desired} replicas available"
        both = (True, Blocker(reasons.REPLICAS_AVAILABLE, message))
        return both, both
    worst = conditions.summarise(blockers)
    if worst is not None and worst.rank >= LASTING:
        return (False, worst), (False, worst)
    held = find_held(seen)
    if held:
        count_of = f"{len(held)} of {counters.desired} desired replicas are pending quota"
        told = Blocker(reasons.QUOTA_NOT_GRANTED, f"{count_of}: {held[0].quota.message}")
        if any(one.quota.reason == reasons.QUOTA_EXCEEDED for one in held):
            return (False, Blocker(reasons.QUOTA_EXCEEDED, count_of)), (False, told)
        return (False, told), (False, told)
    waits = _waits_for(seen, counters, blockers)
    return (False, waits), (False, waits)


def _waits_for(seen: Seen, counters: Counters, blockers: tuple[Blocker, ...]) -> Blocker:
    network = next((one for one in blockers if one.rank == ABOUT_NETWORK), None)
    if network is not None:
        return network
    if has_stale_slot(seen) or (are_all_ready(seen) and counters.updated < counters.desired):
        message = f"{counters.updated} of {counters.desired} replicas run the current template"
    else:
        message = f"{counters.ready} of {counters.desired} replicas are ready"
    return Blocker(reasons.INSTANCES_PROVISIONING, message)
