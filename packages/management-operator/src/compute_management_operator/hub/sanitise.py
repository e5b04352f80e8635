"""Bounds and cleans a cell's status before it is written to a project (management.md 8.3). Pure.

A cell may be compromised or of another version: its counters, texts and addresses are limited to
what the schema of a project accepts, so that one invalid entry does not keep the rest from being
written. Unknown fields are passed on, because a newer cell may write them; their texts are cut and
lose invisible characters.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import RETIRED, derive_message
from compute_api_types.meta import TimestampError, format_timestamp, parse_timestamp
from compute_management_operator.hub.delays import LARGEST_CLOCK_SKEW
from compute_management_operator.stored_status import StoredCondition, StoredStatus
from compute_operator_kit.core.json import Json, JsonObject, member_int, member_list, member_object

COUNTERS: Final = (
    "replicas",
    "desiredReplicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
)
LARGEST_COUNTER: Final = 1_000_000
MOST_CONDITIONS: Final = 16
MOST_INTERFACES: Final = 16
LONGEST_TYPE: Final = 316
LONGEST_REASON: Final = 128
DEEPEST: Final = 16
STATUSES: Final = frozenset({"True", "False", "Unknown"})
# Equal to the schema's (api_types' Condition), by a test.
TYPE_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON_PATTERN: Final = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE: Final = re.compile(TYPE_PATTERN.removeprefix("^").removesuffix("$"))
_REASON: Final = re.compile(REASON_PATTERN.removeprefix("^").removesuffix("$"))


@dataclass(frozen=True, slots=True)
class SanitisedStatus:
    """A status that the schema of a project accepts."""

    rest: JsonObject  # every member but the conditions
    conditions: tuple[StoredCondition, ...]  # valid, each type once


def sanitise_deployment_status(
    status: StoredStatus, stored: StoredStatus, now: datetime
) -> SanitisedStatus:
    """A WorkloadDeployment's status; `stored` is the one in the project, for times."""
    document = status.document
    safe = _rest(document)
    for name in COUNTERS:
        safe[name] = sanitise_counter(member_int(document, name))
    location = member_object(document, "location")
    if _is_location(location):
        safe["location"] = sanitise_texts(location)
    else:
        safe.pop("location", None)
    _drop_unless_bool(safe, "suspended")
    return SanitisedStatus(safe, sanitise_conditions(status, stored, now))


def sanitise_instance_status(
    status: StoredStatus, stored: StoredStatus, now: datetime
) -> SanitisedStatus:
    """An Instance's status; `stored` is the one in the project, for times."""
    document = status.document
    safe = _rest(document)
    if "networkInterfaces" in document:
        interfaces = member_list(safe, "networkInterfaces")[:MOST_INTERFACES]
        safe["networkInterfaces"] = [
            _interface(entry) for entry in interfaces if isinstance(entry, dict)
        ]
    controller = member_object(safe, "controller")
    _drop_unless_bool(controller, "suspendedObserved")
    if not isinstance(controller.get("observedTemplateHash"), str):
        safe.pop("controller", None)
    _drop_unless_bool(safe, "suspended")
    return SanitisedStatus(safe, sanitise_conditions(status, stored, now))


def _drop_unless_bool(members: JsonObject, name: str) -> None:
    """The schema of a project refuses a whole status for one member of another type."""
    if not isinstance(members.get(name), bool):
        members.pop(name, None)


def sanitise_texts(value: Json, depth: int = DEEPEST) -> Json:
    """Any value with its texts, names of members among them, cut and without invisible characters;
    values below `depth` are left out.
    """
    if isinstance(value, str):
        return derive_message(value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return None
    if isinstance(value, list):
        return [sanitise_texts(entry, depth - 1) for entry in value]
    return {derive_message(key): sanitise_texts(entry, depth - 1) for key, entry in value.items()}


def _rest(status: JsonObject) -> JsonObject:
    """Every member but the conditions, which have their own rules."""
    return {
        derive_message(name): sanitise_texts(value)
        for name, value in status.items()
        if name != "conditions"
    }


def sanitise_counter(value: int) -> int:
    return value if 0 <= value <= LARGEST_COUNTER else 0


def sanitise_conditions(
    status: StoredStatus, stored: StoredStatus, now: datetime
) -> tuple[StoredCondition, ...]:
    """Valid conditions, each type once, with the fields of the schema and no others."""
    safe: dict[str, StoredCondition] = {}
    for condition in status.conditions:
        name = condition.type
        is_shown = is_condition_type(name) and name not in RETIRED
        if is_shown and name not in safe and len(safe) < MOST_CONDITIONS:
            safe[name] = _condition(condition, conditions.find(stored.conditions, name), now)
    return tuple(safe.values())


def is_condition_type(text: str) -> bool:
    return len(text) <= LONGEST_TYPE and _TYPE.fullmatch(text) is not None


def _condition(
    condition: StoredCondition, stored: StoredCondition | None, now: datetime
) -> StoredCondition:
    status = condition.status if condition.status in STATUSES else "Unknown"
    reason = condition.reason
    is_reason = len(reason) <= LONGEST_REASON and _REASON.fullmatch(reason)
    return StoredCondition(
        condition.type,
        status,
        reason if is_reason else reasons.UNKNOWN,
        derive_message(condition.message),
        _time(condition.last_transition_time, status, stored, now),
        max(condition.observed_generation, 0),
    )


def _time(text: str, status: str, stored: StoredCondition | None, now: datetime) -> str:
    """The reported time; an invalid or future one is replaced by now, once: the next reconcile
    keeps the stored time, or each would write the status again.
    """
    try:
        moment = parse_timestamp(text)
    except TimestampError:
        moment = None
    if moment is not None and moment - now <= LARGEST_CLOCK_SKEW:
        return format_timestamp(moment)
    if stored is not None and stored.status == status and stored.last_transition_time:
        return stored.last_transition_time
    return format_timestamp(now)


def _is_location(location: JsonObject) -> bool:
    return all(isinstance(location.get(name), str) for name in ("name", "namespace"))


def _interface(entry: JsonObject) -> JsonObject:
    safe: JsonObject = dict(entry)
    assigned = member_object(entry, "assignments")
    if "assignments" in entry:
        safe["assignments"] = dict(_addresses(assigned))
    return safe


def _addresses(assigned: JsonObject) -> Iterator[tuple[str, Json]]:
    for name, value in assigned.items():
        if name not in {"networkIP", "externalIP"} or _is_address(value):
            yield name, value


def _is_address(value: Json) -> bool:
    if not isinstance(value, str) or "%" in value:  # a zone may be any text
        return False
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
