"""What a cell says, made harmless before it is shown in a project (management.md 8.3). Pure.

A cell may be compromised or just odd: its numbers, words and addresses are clamped to what the
schema of a project takes, so that one bad entry never keeps the rest from being written. Fields
that are not known here pass, because a newer cell may know them; their texts are cut and lose
characters that cannot be seen.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import reasons
from compute_api_types.conditions import RETIRED, derive_message
from compute_api_types.meta import TimestampError, format_timestamp, parse_timestamp
from compute_operator_kit.wire import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)

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
AHEAD: Final = timedelta(minutes=5)
STATUSES: Final = frozenset({"True", "False", "Unknown"})
# Those of the schema (api_types' Condition); a test holds them equal.
TYPE_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON_PATTERN: Final = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE: Final = re.compile(TYPE_PATTERN.removeprefix("^").removesuffix("$"))
_REASON: Final = re.compile(REASON_PATTERN.removeprefix("^").removesuffix("$"))


def sanitise_deployment_status(status: JsonObject, stored: JsonObject, now: datetime) -> JsonObject:
    """A WorkloadDeployment's status; `stored` is what stands in the project, for times."""
    safe = _rest(status)
    for name in COUNTERS:
        safe[name] = sanitise_counter(member_int(status, name))
    safe["conditions"] = sanitise_conditions(status, stored, now)
    location = member_object(status, "location")
    if _is_location(location):
        safe["location"] = sanitise_texts(location)
    else:
        safe.pop("location", None)
    return safe


def sanitise_instance_status(status: JsonObject, stored: JsonObject, now: datetime) -> JsonObject:
    """An Instance's status."""
    safe = _rest(status)
    safe["conditions"] = sanitise_conditions(status, stored, now)
    if "networkInterfaces" in status:
        found = member_list(safe, "networkInterfaces")[:MOST_INTERFACES]
        safe["networkInterfaces"] = [
            _interface(entry) for entry in found if isinstance(entry, dict)
        ]
    if not isinstance(member_object(status, "controller").get("observedTemplateHash"), str):
        safe.pop("controller", None)
    return safe


def sanitise_texts(value: Json, depth: int = DEEPEST) -> Json:
    """Any value with its texts, names of members among them, cut and without characters that cannot
    be seen; what is nested deeper is left out.
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
    """Everything but the conditions, which have rules of their own."""
    return {
        derive_message(name): sanitise_texts(value)
        for name, value in status.items()
        if name != "conditions"
    }


def sanitise_counter(value: int) -> int:
    return value if 0 <= value <= LARGEST_COUNTER else 0


def sanitise_conditions(status: JsonObject, stored: JsonObject, now: datetime) -> list[Json]:
    """Valid conditions, each type once, with the fields of the schema and no others."""
    safe: dict[str, Json] = {}
    for entry in member_list(status, "conditions"):
        if not isinstance(entry, dict):
            continue
        name = member_text(entry, "type")
        is_shown = is_condition_type(name) and name not in RETIRED
        if is_shown and name not in safe and len(safe) < MOST_CONDITIONS:
            safe[name] = _condition(entry, _stored(stored, name), now)
    return list(safe.values())


def is_condition_type(text: str) -> bool:
    return len(text) <= LONGEST_TYPE and _TYPE.fullmatch(text) is not None


def _condition(entry: JsonObject, stored: JsonObject, now: datetime) -> JsonObject:
    said = member_text(entry, "status")
    status = said if said in STATUSES else "Unknown"
    reason = member_text(entry, "reason")
    is_reason = len(reason) <= LONGEST_REASON and _REASON.fullmatch(reason)
    safe: JsonObject = {
        "type": member_text(entry, "type"),
        "status": status,
        "reason": reason if is_reason else reasons.UNKNOWN,
        "message": derive_message(member_text(entry, "message")),
        "lastTransitionTime": _time(entry, status, stored, now),
    }
    generation = member_int(entry, "observedGeneration")
    if generation > 0:
        safe["observedGeneration"] = generation
    return safe


def _time(entry: JsonObject, status: str, stored: JsonObject, now: datetime) -> str:
    """The time that was said; one that cannot be is now, and stays what it was made then."""
    said = member_text(entry, "lastTransitionTime")
    try:
        moment = parse_timestamp(said)
    except TimestampError:
        moment = None
    if moment is not None and moment - now <= AHEAD:
        return format_timestamp(moment)
    kept = member_text(stored, "lastTransitionTime")
    return kept if kept and member_text(stored, "status") == status else format_timestamp(now)


def _stored(status: JsonObject, name: str) -> JsonObject:
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and member_text(entry, "type") == name:
            return entry
    return {}


def _is_location(found: JsonObject) -> bool:
    return all(isinstance(found.get(name), str) for name in ("name", "namespace"))


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
