"""Conditions and statuses of cached objects, read from JSON into frozen values. Pure.

Objects may have bypassed admission, so a member of a wrong type counts as absent: one malformed
condition must not end the reconciles of its object.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime

from compute_api_types import conditions as api_conditions
from compute_api_types.conditions import Statement
from compute_operator_kit.core.json import JsonObject, member_int, member_list, member_text


@dataclass(frozen=True, slots=True)
class ReportedCondition:
    """One condition as it is stored."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int = 0

    @property
    def is_true(self) -> bool:
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """The status of an object: its conditions as values, and the whole of it as it is stored.

    A status is written as one document, so fields of other writers must be sent back unchanged.
    """

    document: JsonObject
    conditions: tuple[ReportedCondition, ...] = ()

    def with_conditions(self, statements: Iterable[Statement], now: datetime) -> JsonObject:
        """The stored document with these conditions in it."""
        entries = member_list(self.document, "conditions")
        merged = api_conditions.merge_documents(entries, statements, now)
        return {**self.document, "conditions": merged}


def drop_conditions(status: JsonObject, types: Container[str]) -> JsonObject:
    """The status without conditions of these types."""
    entries = member_list(status, "conditions")
    kept = [
        entry
        for entry in entries
        if not isinstance(entry, dict) or member_text(entry, "type") not in types
    ]
    return status if len(kept) == len(entries) else {**status, "conditions": kept}


def read_conditions(status: JsonObject) -> tuple[ReportedCondition, ...]:
    """The conditions of a status; entries that are no objects are left out."""
    return tuple(
        ReportedCondition(
            member_text(entry, "type"),
            member_text(entry, "status"),
            member_text(entry, "reason"),
            member_text(entry, "message"),
            member_int(entry, "observedGeneration"),
        )
        for entry in member_list(status, "conditions")
        if isinstance(entry, dict)
    )


def read_ready(status: JsonObject) -> ReportedCondition | None:
    return api_conditions.find(read_conditions(status), api_conditions.READY)
