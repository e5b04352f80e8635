"""A stored status as typed values: its conditions, and the JSON that is passed on or kept as it is.

Decisions read these values instead of JSON. Objects may have bypassed admission, so a member of a
wrong type reads as empty; without that, one malformed status would end every reconcile that reads
it. Pure.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from compute_operator_kit.core.json import Json, JsonObject, member_int, member_list, member_text


# A tuple: one is built for each condition in each reconcile, and a frozen dataclass takes three
# times as long.
class StoredCondition(NamedTuple):
    """One condition of a status."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """A status, or the entry of a placement in one."""

    document: JsonObject = field(default_factory=dict)  # as served
    conditions: tuple[StoredCondition, ...] = ()
    condition_documents: list[Json] = field(default_factory=list)  # as served, in their order

    def documents_without(self, types: Container[str]) -> list[Json]:
        """The conditions as served, but those of these types."""
        return [
            entry
            for entry in self.condition_documents
            if not isinstance(entry, dict) or member_text(entry, "type") not in types
        ]


NO_STATUS: Final = StoredStatus()


def read_status(document: JsonObject) -> StoredStatus:
    """The typed view of a status; it shares the JSON, which is not to be changed."""
    if not document:
        return NO_STATUS
    return StoredStatus(document, read_conditions(document), member_list(document, "conditions"))


def read_conditions(status: JsonObject) -> tuple[StoredCondition, ...]:
    """The conditions in their order; an entry without a type is left out."""
    return tuple(
        [
            condition
            for entry in member_list(status, "conditions")
            if isinstance(entry, dict) and (condition := _read_condition(entry)).type
        ]
    )


def find_condition(status: JsonObject, condition_type: str) -> StoredCondition | None:
    """The first condition of a type; the others are not read."""
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and entry.get("type") == condition_type:
            return _read_condition(entry)
    return None


def _read_condition(entry: JsonObject) -> StoredCondition:
    # Without calls of `member_text`, which double the time.
    kind, status, reason = entry.get("type"), entry.get("status"), entry.get("reason")
    message, time = entry.get("message"), entry.get("lastTransitionTime")
    return StoredCondition(
        kind if isinstance(kind, str) else "",
        status if isinstance(status, str) else "",
        reason if isinstance(reason, str) else "",
        message if isinstance(message, str) else "",
        time if isinstance(time, str) else "",
        member_int(entry, "observedGeneration"),
    )
