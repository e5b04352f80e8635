"""`Ready` of an Instance: the first row that applies. Pure (cell.md 9, api.md 8.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_cell_operator.finalizers import describe_hold
from compute_cell_operator.instance.observe import Seen
from compute_cell_operator.told import Told

_PROVIDERS: Final = frozenset({conditions.PROGRAMMED, conditions.AVAILABLE})
_OURS: Final = frozenset({conditions.READY, conditions.QUOTA_GRANTED})
# No operator keeps a retired condition up to date, so nothing is concluded from it.
_NO_EVIDENCE: Final = frozenset({*_OURS, conditions.RUNNING})


@dataclass(frozen=True, slots=True)
class Word:
    """What `Ready` could say."""

    status: ConditionStatus
    reason: str
    message: str


TERMINATING: Final = Word("False", reasons.TERMINATING, "Instance is being deleted")
NOT_PROGRAMMED: Final = Word(
    "False", reasons.PENDING_PROGRAMMING, "Instance has not been programmed"
)
NOT_AVAILABLE: Final = Word("False", reasons.PENDING, "Instance is not available")
READY: Final = Word("True", reasons.AVAILABLE, "Instance is ready")


def derive_ready(seen: Seen, quota: Statement) -> Word:
    """What `Ready` says, given what `QuotaGranted` says in the same pass."""
    if seen.metadata.is_deleting:
        return _terminating(seen)
    # Held: it must not run, whatever a provider says of it.
    if seen.gates or quota.status == "False":
        return conditions.summarise(tuple(_holds(seen, quota))) or NOT_PROGRAMMED
    programmed = conditions.find(seen.conditions, conditions.PROGRAMMED)
    if programmed is None or not programmed.is_true:
        return _unprogrammed(seen, programmed)
    available = conditions.find(seen.conditions, conditions.AVAILABLE)
    if available is None or not available.is_true:
        return _unavailable(available)
    return READY


def _terminating(seen: Seen) -> Word:
    hold = describe_hold(seen.metadata)
    if not hold:
        return TERMINATING
    message = f"{TERMINATING.message}; {hold}"
    return Word(TERMINATING.status, TERMINATING.reason, message)


def _holds(seen: Seen, quota: Statement) -> Iterator[Word]:
    """Everything that holds it, in the order of the table; ties go to the first."""
    if seen.gates:
        message = f"Scheduling gates present: {', '.join(seen.gates)}"
        yield Word("False", reasons.SCHEDULING_GATES_PRESENT, message)
    if _is_denied(quota):
        is_sizeless = quota.reason == reasons.UNKNOWN_INSTANCE_TYPE
        reason = quota.reason if is_sizeless else reasons.PENDING_QUOTA
        yield Word("False", reason, quota.message)
    if labels.NETWORK_GATE in seen.gates and seen.refusal is not None:
        yield Word("False", reasons.NETWORK_FAILED_TO_CREATE, seen.refusal.message)
    for told in seen.conditions:
        is_foreign = told.type not in _PROVIDERS | _NO_EVIDENCE
        if is_foreign and not told.is_true and conditions.rank(told.reason) > 0:
            yield _copy(told)


def _is_denied(quota: Statement) -> bool:
    if quota.status == "False":
        return True
    return quota.status == "Unknown" and quota.reason == reasons.QUOTA_NO_BUDGET


def _unprogrammed(seen: Seen, programmed: Told | None) -> Word:
    """`Programmed` itself, unless another condition says something more specific."""
    others = (
        _copy(told)
        for told in seen.conditions
        if told.type not in {conditions.PROGRAMMED, *_NO_EVIDENCE}
        and not told.is_true
        and told.reason not in conditions.NEVER_COMPETES
    )
    is_silent = programmed is None or programmed.reason in conditions.NEVER_COMPETES
    base = NOT_PROGRAMMED if is_silent or programmed is None else _copy(programmed)
    return conditions.summarise((base, *others)) or base


def _unavailable(available: Told | None) -> Word:
    if available is None or available.reason == reasons.PENDING:
        return NOT_AVAILABLE
    return _copy(available)


def _copy(told: Told) -> Word:
    """Another's words; Unknown stays Unknown."""
    status: ConditionStatus = "False" if told.status == "False" else "Unknown"
    return Word(status, told.reason, told.message)
