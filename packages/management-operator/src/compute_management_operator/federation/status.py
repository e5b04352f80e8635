"""Tells a project what the hub says about its deployment. Pure (management.md 7, api.md 8.3).

```
no copy, or not of this city      untouched
copy, no cell has reported        untouched for 60 s, then "waiting"
copy, the status is another's     "waiting" for the former deployment to be deleted: at once where
                                  the cell reports the deletion, else after 60 s
copy, a cell has reported         mirrored: sanitised, generations translated
```

Generations of three planes must not be mixed: the hub's number is published as the project's only
when the hub answers to its own present generation, through the number we stamped on the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_management_operator.federation.observe import Deployment, Seen
from compute_management_operator.federation.plan import is_recorded
from compute_management_operator.federation.plan.holding import HOLD, tell_once
from compute_management_operator.hub_indexes import read_reporting_cells
from compute_management_operator.plane_names import HUB
from compute_management_operator.sanitise import COUNTERS, sanitise_counter
from compute_management_operator.sanitise import sanitise_deployment_status as sanitise
from compute_operator_kit.clock import ZERO, age_of
from compute_operator_kit.errors import InvalidSpecError
from compute_operator_kit.intents import Ensure, Intent, Plan, SetStatus, Wait
from compute_operator_kit.objects import Absent, Unreadable
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.wire import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)

PATIENCE: Final = timedelta(seconds=60)
TEMPLATE_GENERATION: Final = "observedTemplateGeneration"
TEMPLATE_UID: Final = "observedTemplateUID"
OURS_UNTIL_A_CELL_REPORTS: Final = (
    conditions.AVAILABLE,
    conditions.REPLICAS_READY,
    conditions.READY,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A condition as it stands in a status."""

    type: str
    status: str
    reason: str


def report(seen: Seen, applied: Applied, now: datetime) -> Plan:
    deployment = seen.deployment
    if isinstance(deployment, Absent) or deployment.metadata.is_deleting:
        return Plan()
    refused = _refusals(seen, deployment, applied)
    copy = seen.copy
    if _is_made_now(seen, applied):
        # Nobody has said anything yet; we come back for it, and for no event of our own.
        return Plan((*refused, Wait(seen.key, reasons.CELL_REPORT_AWAITED, PATIENCE)))
    if isinstance(copy, Absent) or not _is_about(seen, deployment, copy):
        # No copy yet, or one of another city: what was last known stands.
        return Plan(refused)
    if has_report(copy) and not is_of_former(copy):
        return Plan((*refused, _written(deployment, _mirror(deployment, copy, now))))
    left = ZERO if _is_former_going(copy) else _patience_left(copy, now)
    if left > ZERO:
        return Plan((*refused, Wait(seen.key, reasons.CELL_REPORT_AWAITED, left)))
    return Plan((*refused, _written(deployment, _waiting(seen, deployment, now))))


def _is_made_now(seen: Seen, applied: Applied) -> bool:
    """Whether this pass has made the copy."""
    return isinstance(seen.copy, Absent) and any(
        outcome.effect is Effect.WRITTEN
        and isinstance(outcome.intent, Ensure)
        and outcome.intent.key == seen.copy_key
        for outcome in applied.outcomes
    )


def has_report(copy: Deployment) -> bool:
    """Whether a hub status rests on what a cell said."""
    cells = read_reporting_cells(copy.status)
    if cells is None:  # the interpreter has not run, or is another one
        return member_int(copy.status, "observedGeneration") > 0
    return bool(cells)


def is_of_former(copy: Deployment) -> bool:
    """Whether a hub status belongs to another deployment of this name; a cell of an older version
    does not report which one it belongs to.
    """
    uid = copy.status.get(TEMPLATE_UID)
    return isinstance(uid, str) and uid != copy.metadata.uid


def _is_former_going(copy: Deployment) -> bool:
    """Whether a cell reports that its copy is being deleted. Another UID alone may also be that of
    a hub which was rebuilt: the cell echoes the new one within moments, and nothing is shown
    meanwhile.
    """
    return copy.status.get(TEMPLATE_UID) == ""


def translate_generation(deployment: Deployment, copy: Deployment) -> int:
    """The project's generation that the hub's status answers to; never ahead of the project's."""
    present = member_int(deployment.status, "observedGeneration")
    if member_int(copy.status, "observedGeneration") != copy.metadata.generation:
        return present
    stamped = copy.metadata.annotations.get(labels.PROJECT_GENERATION, "")
    if not (stamped.isascii() and stamped.isdigit()):
        return present
    number = int(stamped) if len(stamped) <= len(str(deployment.metadata.generation)) else -1
    return number if 0 <= number <= deployment.metadata.generation else present


def _is_about(seen: Seen, deployment: Deployment, copy: Deployment) -> bool:
    is_current = not copy.metadata.is_deleting and copy.routed_to == deployment.city_code
    return is_current and is_recorded(seen, deployment)


def _patience_left(copy: Deployment, now: datetime) -> timedelta:
    try:
        made = parse_timestamp(copy.metadata.creation_timestamp)
    except TimestampError:
        return ZERO
    return max(ZERO, PATIENCE - age_of(made, now))


# --- mirrored -------------------------------------------------------------------------------------


def _mirror(deployment: Deployment, copy: Deployment, now: datetime) -> JsonObject:
    safe = sanitise(copy.status, deployment.status, now)
    observed = translate_generation(deployment, copy)
    told = [entry for entry in _entries(safe) if entry.get("type") != conditions.CELLS_REPORTING]
    status: JsonObject = {**safe, "observedGeneration": observed}
    for name in (TEMPLATE_GENERATION, TEMPLATE_UID):
        status.pop(name, None)  # the hub's; no meaning in a project
    statements = tuple(_restated(entry, observed) for entry in told)
    merged = conditions.merge_documents(
        member_list(deployment.status, "conditions"), statements, now
    )
    status["conditions"] = _dated(merged, told, deployment.status)
    return status


def _restated(entry: JsonObject, observed: int) -> Statement:
    return Statement(
        type=member_text(entry, "type"),
        status=_status_word(member_text(entry, "status")),
        reason=member_text(entry, "reason"),
        message=member_text(entry, "message"),
        observed_generation=observed,
    )


def _status_word(text: str) -> ConditionStatus:
    match text:
        case "True" | "False":
            return text
        case _:
            return "Unknown"


def _dated(merged: list[Json], told: list[JsonObject], stored: JsonObject) -> list[Json]:
    """A status that changed did so when the cell says; one that did not keeps its time."""
    before = {one.type: one.status for one in _told(stored)}
    times = {
        member_text(entry, "type"): entry["lastTransitionTime"]
        for entry in told
        if before.get(member_text(entry, "type")) != entry["status"]
    }
    return [
        {**entry, "lastTransitionTime": times[member_text(entry, "type")]}
        if isinstance(entry, dict) and member_text(entry, "type") in times
        else entry
        for entry in merged
    ]


# --- waiting --------------------------------------------------------------------------------------


def _waiting(seen: Seen, deployment: Deployment, now: datetime) -> JsonObject:
    """Never reported, or cleared: nothing runs, as far as anybody knows."""
    status: JsonObject = dict(deployment.status)
    status.pop("location", None)
    status |= dict.fromkeys(COUNTERS, 0)
    settings = member_object(deployment.spec, "scaleSettings")
    status["desiredReplicas"] = sanitise_counter(member_int(settings, "minReplicas"))
    observed = member_int(deployment.status, "observedGeneration")
    status["observedGeneration"] = observed
    reason, message = _why_waiting(seen, deployment)
    statements = [
        Statement(each, "False", reason, message, observed) for each in OURS_UNTIL_A_CELL_REPORTS
    ]
    stored = member_list(deployment.status, "conditions")
    status["conditions"] = conditions.merge_documents(stored, statements, now)
    return status


def _why_waiting(seen: Seen, deployment: Deployment) -> tuple[str, str]:
    code = deployment.city_code
    if not isinstance(seen.copy, Absent) and is_of_former(seen.copy):
        message = f'The former deployment of this name is still being deleted in city "{code}"'
        return reasons.INSTANCES_PROVISIONING, message
    if not isinstance(seen.serving_cells, Unreadable) and not seen.serving_cells:
        return reasons.NO_MATCHING_LOCATION, f'No cell serves city code "{code}"'
    return reasons.INSTANCES_PROVISIONING, f'Waiting for a cell in city "{code}" to report'


# --- sent -----------------------------------------------------------------------------------------


def _written(deployment: Deployment, status: JsonObject) -> SetStatus:
    return SetStatus(
        deployment.key,
        deployment.metadata.uid,
        deployment.metadata.resource_version,
        status,
        reason=reasons.STATUS_CHANGED,
        provisional=conditions.provisional(
            "WorkloadDeployment", tuple(_told(status)), tuple(_told(deployment.status))
        ),
        is_final=True,  # nothing is derived from what we said ourselves
    )


def _entries(status: JsonObject) -> Iterator[JsonObject]:
    return (entry for entry in member_list(status, "conditions") if isinstance(entry, dict))


def _told(status: JsonObject) -> Iterator[Told]:
    for entry in _entries(status):
        yield Told(
            member_text(entry, "type"), member_text(entry, "status"), member_text(entry, "reason")
        )


def _refusals(seen: Seen, deployment: Deployment, applied: Applied) -> tuple[Intent, ...]:
    """The hub says no to the copy itself: told once, tried again on change or resync."""
    for outcome in applied.outcomes:
        is_copy = isinstance(outcome.intent, Ensure) and outcome.intent.key.plane == HUB
        if is_copy and isinstance(outcome.error, InvalidSpecError):
            reason = reasons.FEDERATION_REFUSED
            message = "The deployment cannot be delivered: its copy is refused as invalid"
            told = tell_once(seen, deployment.metadata.uid, reason, message)
            return (*told, Wait(seen.key, reason, HOLD))
    return ()
