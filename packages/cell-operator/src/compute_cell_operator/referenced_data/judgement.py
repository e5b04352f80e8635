"""Whether referenced data is complete, and the condition `ReferencedDataReady` for it. Pure
(referenced-data.md 6).

An annotation that cannot be parsed is not an empty one: an Instance that starts without its data
cannot be told from a healthy one, one that waits shows why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import ConditionStatus
from compute_api_types.referenced_data.annotations import (
    DataError,
    is_at_least,
    parse_error,
    parse_expected,
    parse_versions,
)
from compute_api_types.referenced_data.references import Reference

MOST_NAMED: Final = 10
"""Objects that one message names; the others are counted."""

SOURCE_REASONS: Final = frozenset(
    {
        reasons.SOURCE_NOT_FOUND,
        reasons.SOURCE_UNAUTHORIZED,
        reasons.SOURCE_TOO_LARGE,
        reasons.SOURCE_NAME_TOO_LONG,
        reasons.SOURCE_NAME_TAKEN,
        reasons.SOURCE_NOT_SUPPORTED,
    }
)
"""Reasons that a user can cure; an error with any other is not passed on by its own word."""


class DataMode(StrEnum):
    """Where the objects that a template names come from."""

    OFF = "off"  # Instances do not wait for them
    COPIES = "copies"  # delivered by the hub, as the annotations of a deployment expect them
    SOURCES = "sources"  # a single cluster: they are in the namespace already


@dataclass(frozen=True, slots=True)
class DataVerdict:
    """The condition `ReferencedDataReady` of an Instance that waits for its data."""

    status: ConditionStatus
    reason: str
    message: str
    is_unread: bool = False  # a cache is incomplete; no event tells of its end if it is empty

    @property
    def is_complete(self) -> bool:
        """Every object is there, in the version expected: an Instance may start with them."""
        return self.status == "True"


RESOLVING: Final = DataVerdict(
    "Unknown", reasons.RESOLVING, "Waiting for the resolver to finish reading source objects"
)
UNREAD: Final = replace(RESOLVING, is_unread=True)
NOTHING_NEEDED: Final = DataVerdict("True", reasons.READY, "No referenced companions required")


def judge_copies(
    named: Sequence[Reference], annotations: Mapping[str, str], copies: Mapping[str, str]
) -> DataVerdict:
    """In a federation: `annotations` of the deployment, `copies` with their source version by
    token; the first row of the table that applies.
    """
    error = parse_error(annotations.get(labels.REFERENCED_DATA_ERROR))
    if error is not None:
        return _refused(error)
    expected = parse_expected(annotations.get(labels.EXPECTED_REFERENCED_DATA))
    versions = parse_versions(annotations.get(labels.EXPECTED_REFERENCED_VERSIONS))
    required = {reference.token for reference in named if not reference.is_optional}
    if expected is None or versions is None or not required <= set(expected):
        return RESOLVING
    if not expected:
        return NOTHING_NEEDED
    missing = sorted(token for token in expected if token not in copies)
    if missing:
        return _awaiting("arrive on cell", missing)
    old = sorted(
        token
        for token in expected
        if token in versions and not is_at_least(copies[token], versions[token])
    )
    if old:
        return _awaiting("be brought up to date on cell", old)
    message = f"All {len(expected)} referenced companion(s) are present on cell"
    return DataVerdict("True", reasons.READY, message)


def judge_sources(
    named: Sequence[Reference], namespace: str, present: Collection[str]
) -> DataVerdict:
    """In a single cluster: the objects themselves are in the namespace of the Instance."""
    required = [reference for reference in named if not reference.is_optional]
    missing = next((one for one in required if one.token not in present), None)
    if missing is not None:
        message = f'{missing.kind} "{missing.name}" not found in namespace "{namespace}"'
        return DataVerdict("False", reasons.SOURCE_NOT_FOUND, conditions.derive_message(message))
    if not required:
        return NOTHING_NEEDED
    message = f"All {len(required)} referenced object(s) exist"
    return DataVerdict("True", reasons.READY, message)


def _refused(error: DataError) -> DataVerdict:
    is_known = error.reason in SOURCE_REASONS
    reason = error.reason if is_known else reasons.REFERENCED_DATA_NOT_READY
    return DataVerdict("False", reason, conditions.derive_message(error.message))


def _awaiting(what: str, tokens: Sequence[str]) -> DataVerdict:
    shown = ", ".join(tokens[:MOST_NAMED])
    more = f" and {len(tokens) - MOST_NAMED} more" if len(tokens) > MOST_NAMED else ""
    message = f"Waiting for {len(tokens)} companion(s) to {what}: {shown}{more}"
    return DataVerdict("False", reasons.AWAITING_PROPAGATION, conditions.derive_message(message))
