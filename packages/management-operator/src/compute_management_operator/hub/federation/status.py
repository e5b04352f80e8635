"""The mirror: the status of a copy on the hub, written to its deployment in the project. Pure
(management.md 7, api.md 8.3).

```
no copy, or not of this city      untouched
copy, no cell has reported        untouched for 60 s, then "waiting"
copy, the status is another's     "waiting" for the former deployment to be deleted: at once where
                                  the cell reports the deletion, else after 60 s
copy, a cell has reported         mirrored: sanitised, generations translated
```

Each of three planes counts generations of its own: the project's generation is taken from an
annotation on the copy, and only while the hub's status is about the hub's present generation.
Otherwise a user would read a status as the answer to an edit that no cell has received.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_api_types.meta import TimestampError, parse_timestamp
from compute_management_operator.hub.delays import REPORT_PATIENCE, UNTIL_RESYNC
from compute_management_operator.hub.federation.data_status import (
    is_out_of_date,
    is_stated_here,
    note_data,
    show_expected,
    state_data,
)
from compute_management_operator.hub.federation.observe import ObservedDeployment, ProjectDeployment
from compute_management_operator.hub.federation.plan import is_recorded
from compute_management_operator.hub.federation.plan.events import note_hearing, warn_once
from compute_management_operator.hub.hearing.conditions import (
    cover_deployment,
    is_unreachable,
    waiting_message,
)
from compute_management_operator.hub.hearing.verdicts import Audibility
from compute_management_operator.hub.sanitise import COUNTERS
from compute_management_operator.hub.sanitise import sanitise_deployment_status as sanitise
from compute_management_operator.planes import HUB
from compute_management_operator.stored_status import StoredCondition, StoredStatus
from compute_operator_kit.core.clock import ZERO, age_of
from compute_operator_kit.core.errors import InvalidSpecError
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.objects import Absent, Unreadable
from compute_operator_kit.intents.intents import Ensure, Intent, Plan, RequeueAfter, SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect

# Members of a hub status that are about the hub's copy and mean nothing in a project.
HUB_MEMBERS: Final = ("observedTemplateGeneration", "observedTemplateUID", "selector")
# Types that belong to a cell: one that the hub no longer has is gone (autoscaling.md 4).
OF_A_CELL: Final = (
    conditions.AVAILABLE,
    conditions.REPLICAS_READY,
    conditions.READY,
    *conditions.AUTOSCALING,
)
OURS_UNTIL_A_CELL_REPORTS: Final = (
    conditions.AVAILABLE,
    conditions.REPLICAS_READY,
    conditions.READY,
)


def report(seen: ObservedDeployment, applied: Applied, now: datetime) -> Plan:
    deployment = seen.deployment
    if isinstance(deployment, Absent) or deployment.metadata.is_deleting:
        return Plan()
    refused = (*show_expected(seen, deployment), *_refusals(seen, deployment, applied))
    copy = seen.copy
    if _is_created_now(seen, applied):
        # No cell has reported yet, and the copy's own event is ignored: a timer enqueues the key.
        awaited = RequeueAfter(seen.key, reasons.CELL_REPORT_AWAITED, REPORT_PATIENCE)
        return Plan((*refused, awaited))
    if isinstance(copy, Absent) or not _is_about(seen, deployment, copy):
        # No copy yet, or one of another city: the stored status stays.
        return Plan(refused)
    if has_report(copy) and not is_of_former(copy):
        return Plan((*refused, *_mirror(seen, deployment, copy, now)))
    left = ZERO if _is_former_deleting(copy) else _patience_left(copy, now)
    if left > ZERO:
        awaited = RequeueAfter(seen.key, reasons.CELL_REPORT_AWAITED, left)
        return Plan((*refused, *_state_data_alone(seen, deployment, now), awaited))
    if _is_kept(seen, deployment):
        return Plan(refused)
    return Plan((*refused, *_wait(seen, deployment, now)))


def _is_created_now(seen: ObservedDeployment, applied: Applied) -> bool:
    """Whether this reconcile has created the copy."""
    return isinstance(seen.copy, Absent) and any(
        outcome.effect is Effect.WRITTEN
        and isinstance(outcome.intent, Ensure)
        and outcome.intent.key == seen.copy_key
        for outcome in applied.outcomes
    )


def has_report(copy: ProjectDeployment) -> bool:
    """Whether a hub status comes from a cell."""
    cells = copy.status.reporting_cells
    if cells is None:  # the interpreter has not run, or is another one
        return copy.status.observed_generation > 0
    return bool(cells)


def is_of_former(copy: ProjectDeployment) -> bool:
    """Whether a hub status is about another deployment of this name; a cell of an older version
    does not report the UID.
    """
    uid = copy.status.template_uid
    return uid is not None and uid != copy.metadata.uid


def _is_former_deleting(copy: ProjectDeployment) -> bool:
    """Whether a cell reports that its copy is being deleted. Another UID alone may also be that of
    a hub that was rebuilt: the cell reports the new one soon, and nothing is shown meanwhile.
    """
    return copy.status.template_uid == ""


def translate_generation(deployment: ProjectDeployment, copy: ProjectDeployment) -> int:
    """The project's generation that the hub's status is about; never ahead of the project's."""
    present = deployment.status.observed_generation
    if copy.status.observed_generation != copy.metadata.generation:
        return present
    stamped = copy.metadata.annotations.get(labels.PROJECT_GENERATION, "")
    if not (stamped.isascii() and stamped.isdigit()):
        return present
    number = int(stamped) if len(stamped) <= len(str(deployment.metadata.generation)) else -1
    return number if 0 <= number <= deployment.metadata.generation else present


def _is_about(
    seen: ObservedDeployment, deployment: ProjectDeployment, copy: ProjectDeployment
) -> bool:
    is_current = not copy.metadata.is_deleting and copy.routed_to == deployment.city_code
    return is_current and is_recorded(seen, deployment)


def _patience_left(copy: ProjectDeployment, now: datetime) -> timedelta:
    try:
        made = parse_timestamp(copy.metadata.creation_timestamp)
    except TimestampError:
        return ZERO
    return max(ZERO, REPORT_PATIENCE - age_of(made, now))


# --- mirrored -------------------------------------------------------------------------------------


def _mirror(
    seen: ObservedDeployment, deployment: ProjectDeployment, copy: ProjectDeployment, now: datetime
) -> Iterator[Intent]:
    stored = deployment.status.stored
    safe = sanitise(copy.status.stored, stored, now)
    observed = translate_generation(deployment, copy)
    reported = [
        one
        for one in safe.conditions
        if one.type != conditions.CELLS_REPORTING and not is_stated_here(seen, one.type)
    ]
    audibility = seen.known.hearing.judge_cells(copy.status.reporting_cells or ())
    mirrored = cover_deployment(reported, stored, audibility, deployment.city_code, now)
    status: JsonObject = {**safe.rest, "observedGeneration": observed}
    for name in HUB_MEMBERS:
        status.pop(name, None)
    if _is_unheard(mirrored):
        status["readyReplicas"] = 0  # what is not known to be ready is not counted
    status["conditions"] = _merge(stored, mirrored, observed, now)
    yield from _stated(seen, deployment, state_data(seen, status, now), _after(stored, mirrored))
    yield from note_hearing(seen, deployment.metadata.uid, stored.conditions, mirrored)


def _is_unheard(shown: Sequence[StoredCondition]) -> bool:
    """Whether no cell of the deployment is heard; where some are, `Available` is theirs."""
    available = conditions.find(shown, conditions.AVAILABLE)
    return available is not None and available.reason == reasons.CELL_UNREACHABLE


def _merge(
    stored: StoredStatus, mirrored: Sequence[StoredCondition], observed: int, now: datetime
) -> list[Json]:
    """The stored conditions with those of the copy. A condition with a changed status takes the
    time that the cell reports; any other keeps the stored time.
    """
    gone = frozenset(OF_A_CELL) - {one.type for one in mirrored}
    before = {one.type: one.status for one in reversed(stored.conditions)}
    changed = [one for one in mirrored if before.get(one.type) != one.status]
    kept = [_restate(one, observed) for one in mirrored if before.get(one.type) == one.status]
    merged = conditions.merge_documents(stored.documents_without(gone), kept, now)
    for one in changed:
        moment = parse_timestamp(one.last_transition_time)
        merged = conditions.merge_documents(merged, (_restate(one, observed),), moment)
    return merged


def _restate(condition: StoredCondition, observed: int) -> Statement:
    return Statement(
        type=condition.type,
        status=_status_of(condition.status),
        reason=condition.reason,
        message=condition.message,
        observed_generation=observed,
    )


def _status_of(text: str) -> ConditionStatus:
    match text:
        case "True" | "False":
            return text
        case _:
            return "Unknown"


# --- waiting --------------------------------------------------------------------------------------


def _is_kept(seen: ObservedDeployment, deployment: ProjectDeployment) -> bool:
    """Whether the stored status states that the city cannot be heard, and there is no verdict."""
    is_undecided = _judge_city(seen) is Audibility.UNDECIDED
    return is_undecided and is_unreachable(deployment.status.stored.conditions)


def _judge_city(seen: ObservedDeployment) -> Audibility:
    cells = seen.serving_cells
    return seen.known.hearing.judge_cells(() if isinstance(cells, Unreadable) else cells)


def _wait(
    seen: ObservedDeployment, deployment: ProjectDeployment, now: datetime
) -> Iterator[Intent]:
    """Never reported, or cleared: as far as the hub shows, nothing runs."""
    stored = deployment.status.stored
    status: JsonObject = dict(stored.document)
    status.pop("location", None)
    status |= dict.fromkeys(COUNTERS, 0)
    status["desiredReplicas"] = deployment.scale
    observed = deployment.status.observed_generation
    status["observedGeneration"] = observed
    reason, message = _why_waiting(seen, deployment)
    holds: ConditionStatus = "Unknown" if reason == reasons.CELL_UNREACHABLE else "False"
    statements = [
        Statement(each, holds, reason, message, observed) for each in OURS_UNTIL_A_CELL_REPORTS
    ]
    # As far as the hub shows, no autoscaler works for it.
    left = stored.documents_without(conditions.AUTOSCALING)
    status["conditions"] = conditions.merge_documents(left, statements, now)
    yield from _stated(seen, deployment, state_data(seen, status, now), _after(stored, statements))
    yield from note_hearing(seen, deployment.metadata.uid, stored.conditions, statements)


def _why_waiting(seen: ObservedDeployment, deployment: ProjectDeployment) -> tuple[str, str]:
    code = deployment.city_code
    if not isinstance(seen.copy, Absent) and is_of_former(seen.copy):
        message = f'The former deployment of this name is still being deleted in city "{code}"'
        return reasons.INSTANCES_PROVISIONING, message
    error = None if seen.live.data is None else seen.live.data.error
    if error is not None:
        return error.reason, error.message
    if not isinstance(seen.serving_cells, Unreadable) and not seen.serving_cells:
        return reasons.NO_MATCHING_LOCATION, f'No cell serves city code "{code}"'
    if _judge_city(seen) is Audibility.DARK:
        return reasons.CELL_UNREACHABLE, waiting_message(code)
    return reasons.INSTANCES_PROVISIONING, f'Waiting for a cell in city "{code}" to report'


def _state_data_alone(
    seen: ObservedDeployment, deployment: ProjectDeployment, now: datetime
) -> Iterator[Intent]:
    """What is wrong with its data, before any cell reports."""
    if not is_out_of_date(seen, deployment):
        return
    stored = deployment.status.stored
    status = state_data(seen, dict(stored.document), now)
    yield from _stated(seen, deployment, status, stored.conditions)


# --- written --------------------------------------------------------------------------------------


def _after(
    stored: StoredStatus, ours: Sequence[Statement] | Sequence[StoredCondition]
) -> tuple[Statement | StoredCondition, ...]:
    """The conditions once `ours` are written: these, and stored ones of other types."""
    types = {one.type for one in ours}
    return (*ours, *(one for one in stored.conditions if one.type not in types))


def _stated(
    seen: ObservedDeployment,
    deployment: ProjectDeployment,
    status: JsonObject,
    after: tuple[Statement | StoredCondition, ...],
) -> Iterator[Intent]:
    """The status, and the event about its data."""
    written = _written(deployment, status, after)
    if is_out_of_date(seen, deployment):
        written = msgspec.structs.replace(written, may_defer=False)
    yield written
    yield from note_data(seen, deployment, written)


def _written(
    deployment: ProjectDeployment,
    status: JsonObject,
    after: tuple[Statement | StoredCondition, ...],
) -> SetStatus:
    return SetStatus(
        deployment.key,
        deployment.metadata.uid,
        deployment.metadata.resource_version,
        status,
        reason=reasons.STATUS_CHANGED,
        may_defer=conditions.provisional(
            "WorkloadDeployment", after, deployment.status.stored.conditions
        ),
        ignore_own_event=True,  # nothing is derived from our own conditions
    )


def _refusals(
    seen: ObservedDeployment, deployment: ProjectDeployment, applied: Applied
) -> tuple[Intent, ...]:
    """The hub rejects the copy: recorded once, tried again on a change or at the resync."""
    for outcome in applied.outcomes:
        is_copy = isinstance(outcome.intent, Ensure) and outcome.intent.key.plane == HUB
        if is_copy and isinstance(outcome.error, InvalidSpecError):
            reason = reasons.FEDERATION_REFUSED
            message = "The deployment cannot be delivered: its copy is refused as invalid"
            warned = warn_once(seen, deployment.metadata.uid, reason, message)
            return (*warned, RequeueAfter(seen.key, reason, UNTIL_RESYNC))
    return ()
