"""The status of a projection: that of the hub Instance, sanitised. Pure (management.md 8.2, 8.3).

Conditions lose `observedGeneration`: it is a generation of the cell's object, and a user would
compare it with the generation of the project's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.meta import format_timestamp
from compute_management_operator.hub.hearing.conditions import cover_instance
from compute_management_operator.hub.hearing.verdicts import Audibility
from compute_management_operator.hub.projection.observe import (
    HubInstance,
    InstanceDeployment,
    ObservedInstance,
)
from compute_management_operator.hub.sanitise import sanitise_instance_status
from compute_management_operator.planes import HUB, INSTANCE
from compute_management_operator.stored_status import NO_STATUS, StoredCondition, StoredStatus
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Ensure, Plan, SetStatus
from compute_operator_kit.intents.outcomes import Applied

TERMINATING_MESSAGE: Final = "Instance is being deleted"


def report(seen: ObservedInstance, applied: Applied, now: datetime) -> Plan:
    """The status of a projection that this reconcile has verified and ensured; else nothing."""
    if isinstance(seen.source, Absent):
        return Plan()
    for outcome in applied.outcomes:
        if isinstance(outcome.intent, Ensure) and _is_projection(outcome.intent):
            return Plan.of(_written(seen, seen.source, outcome.intent, now))
    return Plan()


def is_provisional(source: HubInstance, stored: StoredStatus) -> bool:
    """Whether the write may be deferred, by the rule for the Instance itself."""
    return conditions.provisional(
        "Instance",
        source.status.conditions,
        stored.conditions,
        is_terminating=source.metadata.is_deleting,
    )


def derive_status(
    source: HubInstance,
    stored: StoredStatus,
    now: datetime,
    audibility: Audibility = Audibility.HEARD,
    city: str = "",
) -> JsonObject:
    safe = sanitise_instance_status(source.status, stored, now)
    shown = tuple(cover_instance(safe.conditions, stored, audibility, city, now))
    if source.metadata.is_deleting:
        shown = _terminating(shown, stored, now)
    documents: list[Json] = [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": one.last_transition_time,
        }
        for one in shown
    ]
    return {**safe.rest, "conditions": documents}


def _terminating(
    shown: tuple[StoredCondition, ...], stored: StoredStatus, now: datetime
) -> tuple[StoredCondition, ...]:
    """The same with `Ready` of an Instance that is being deleted (api.md 8.2, row 1). A finalizer
    may hold the copy on the hub, and its cell may report nothing more, or Ready for ever.
    """
    times = (*_times_not_ready(shown), *_times_not_ready(stored.conditions), format_timestamp(now))
    ready = StoredCondition(
        conditions.READY, "False", reasons.TERMINATING, TERMINATING_MESSAGE, times[0]
    )
    return (*(one for one in shown if one.type != conditions.READY), ready)


def _times_not_ready(entries: Iterable[StoredCondition]) -> Iterator[str]:
    for one in entries:
        if one.type == conditions.READY and one.status == "False":
            yield one.last_transition_time


def _is_projection(intent: Ensure) -> bool:
    return intent.key.kind == INSTANCE and intent.key.plane != HUB


def _written(seen: ObservedInstance, source: HubInstance, made: Ensure, now: datetime) -> SetStatus:
    existing = seen.projection if isinstance(seen.projection, HubInstance) else None
    stored = NO_STATUS if existing is None else existing.status
    return SetStatus(
        made.key,
        made.uid,
        "" if existing is None else existing.metadata.resource_version,
        derive_status(source, stored, now, _judge(seen, source), _city_of(seen)),
        reason=reasons.STATUS_CHANGED,
        may_defer=made.may_defer,
    )


def _judge(seen: ObservedInstance, source: HubInstance) -> Audibility:
    return seen.hearing.judge_instance(source.metadata.labels.get(labels.CELL, ""))


def _city_of(seen: ObservedInstance) -> str:
    return seen.deployment.city_code if isinstance(seen.deployment, InstanceDeployment) else ""
