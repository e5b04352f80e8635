"""What a user reads of a city that cannot be heard: Unknown, and which city. Pure (dark-sites.md).

Reasons that a user can cure, or that the platform has ordered, stay: they outrank this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_api_types.meta import format_timestamp
from compute_management_operator.hub.hearing.verdicts import Audibility
from compute_management_operator.stored_status import StoredCondition, StoredStatus

HIGHEST_COVERED: Final = conditions.rank(reasons.CELL_UNREACHABLE)
DEPLOYMENT_TYPES: Final = (conditions.AVAILABLE, conditions.REPLICAS_READY, conditions.READY)
PARTLY_TYPES: Final = (conditions.REPLICAS_READY, conditions.READY)
INSTANCE_TYPES: Final = (conditions.AVAILABLE, conditions.READY)


def deployment_message(city: str) -> str:
    return f'City "{city}" has not been heard of; its instances may still run'


def waiting_message(city: str) -> str:
    return f'City "{city}" has not been heard of; nothing can start there until it is back'


def instance_message(city: str) -> str:
    return f'City "{city}" has not been heard of; this instance may still run'


def reachable_message(city: str) -> str:
    return f'City "{city}" is heard of again'


def is_unreachable(entries: Iterable[StoredCondition | Statement]) -> bool:
    """Whether one of these conditions states that the city cannot be heard."""
    return any(one.reason == reasons.CELL_UNREACHABLE for one in entries)


def cover_deployment(
    shown: Iterable[StoredCondition],
    stored: StoredStatus,
    audibility: Audibility,
    city: str,
    now: datetime,
) -> list[StoredCondition]:
    """The conditions of a deployment that a cell has reported."""
    entries = list(shown)
    match audibility:
        case Audibility.DARK:
            return _cover(entries, DEPLOYMENT_TYPES, deployment_message(city), now)
        case Audibility.PARTLY:
            true = [one.type for one in entries if one.status == "True"]
            types = tuple(each for each in PARTLY_TYPES if each in true)
            return _cover(entries, types, deployment_message(city), now)
        case Audibility.UNDECIDED:
            return _keep(entries, stored)
        case Audibility.HEARD:
            return entries


def cover_instance(
    shown: Iterable[StoredCondition],
    stored: StoredStatus,
    audibility: Audibility,
    city: str,
    now: datetime,
) -> list[StoredCondition]:
    """The conditions of a projected Instance."""
    entries = list(shown)
    match audibility:
        case Audibility.DARK | Audibility.PARTLY:
            covered = _cover(entries, INSTANCE_TYPES, instance_message(city), now)
            return _with_stored_times(covered, stored)
        case Audibility.UNDECIDED:
            return _keep(entries, stored)
        case Audibility.HEARD:
            return entries


def _is_covered(condition: StoredCondition) -> bool:
    return condition.status == "True" or conditions.rank(condition.reason) <= HIGHEST_COVERED


def _cover(
    entries: list[StoredCondition], types: tuple[str, ...], message: str, now: datetime
) -> list[StoredCondition]:
    return [
        _unknown(one, message, now) if one.type in types and _is_covered(one) else one
        for one in entries
    ]


def _unknown(condition: StoredCondition, message: str, now: datetime) -> StoredCondition:
    return condition._replace(
        status="Unknown",
        reason=reasons.CELL_UNREACHABLE,
        message=message,
        last_transition_time=format_timestamp(now),
    )


def _with_stored_times(
    entries: list[StoredCondition], stored: StoredStatus
) -> list[StoredCondition]:
    """The time moves with the status, so that a condition that was Unknown keeps its own."""
    return [
        one._replace(last_transition_time=before.last_transition_time)
        if one.reason == reasons.CELL_UNREACHABLE
        and (before := conditions.find(stored.conditions, one.type)) is not None
        and before.status == one.status
        and before.last_transition_time
        else one
        for one in entries
    ]


def _keep(entries: list[StoredCondition], stored: StoredStatus) -> list[StoredCondition]:
    """Without a verdict, what was stated stays."""
    kept = {one.type: one for one in stored.conditions if one.reason == reasons.CELL_UNREACHABLE}
    return [kept.get(one.type, one) if _is_covered(one) else one for one in entries]
