"""Condition `Ready` of an Instance: the first row of the table that applies. Pure (cell.md 9,
api.md 8.2).

Gates and quota come before the provider's conditions: an Instance that must not run is never shown
as ready, whatever a provider reports about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.finalizers import describe_hold
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance_facts import InstanceState

_PROVIDERS: Final = frozenset({conditions.PROGRAMMED, conditions.AVAILABLE})
# `ReferencedDataReady` is evidence as any other condition is: restated before `Ready` is derived.
_OURS: Final = frozenset({conditions.READY, conditions.QUOTA_GRANTED})
# No operator updates a retired condition any more, so it may be years old.
_NO_EVIDENCE: Final = frozenset({*_OURS, conditions.RUNNING})


@dataclass(frozen=True, slots=True)
class ReadyState:
    """A possible value of `Ready`."""

    status: ConditionStatus
    reason: str
    message: str


TERMINATING: Final = ReadyState("False", reasons.TERMINATING, "Instance is being deleted")
SUSPENDED: Final = ReadyState(
    "False", reasons.SUSPENDED, "Instance is suspended due to project suspension."
)
NOT_PROGRAMMED: Final = ReadyState(
    "False", reasons.PENDING_PROGRAMMING, "Instance has not been programmed"
)
NOT_AVAILABLE: Final = ReadyState("False", reasons.PENDING, "Instance is not available")
READY: Final = ReadyState("True", reasons.AVAILABLE, "Instance is ready")


def derive_ready(observed: ObservedInstance, quota: Statement) -> ReadyState:
    """`Ready` beside the `QuotaGranted` of the same reconcile."""
    instance = observed.instance
    if instance.metadata.is_deleting:
        return _terminating(instance)
    if observed.is_suspended:
        return SUSPENDED
    if instance.gates or quota.status == "False":
        return conditions.summarise(tuple(_holds(observed, quota))) or NOT_PROGRAMMED
    programmed = conditions.find(instance.conditions, conditions.PROGRAMMED)
    if programmed is None or not programmed.is_true:
        return _unprogrammed(instance, programmed)
    available = conditions.find(instance.conditions, conditions.AVAILABLE)
    if available is None or not available.is_true:
        return _unavailable(available)
    return READY


def _terminating(instance: InstanceState) -> ReadyState:
    hold = describe_hold(instance.metadata)
    if not hold:
        return TERMINATING
    message = f"{TERMINATING.message}; {hold}"
    return ReadyState(TERMINATING.status, TERMINATING.reason, message)


def _holds(observed: ObservedInstance, quota: Statement) -> Iterator[ReadyState]:
    """Every reason that holds the Instance, in the order of the table; of equal ranks the first
    wins.
    """
    instance = observed.instance
    if instance.gates:
        message = f"Scheduling gates present: {', '.join(instance.gates)}"
        yield ReadyState("False", reasons.SCHEDULING_GATES_PRESENT, message)
    if _is_denied(quota):
        is_sizeless = quota.reason == reasons.UNKNOWN_INSTANCE_TYPE
        reason = quota.reason if is_sizeless else reasons.PENDING_QUOTA
        yield ReadyState("False", reason, quota.message)
    if labels.NETWORK_GATE in instance.gates and observed.refusal is not None:
        yield ReadyState("False", reasons.NETWORK_FAILED_TO_CREATE, observed.refusal.message)
    for condition in instance.conditions:
        is_foreign = condition.type not in _PROVIDERS | _NO_EVIDENCE
        if is_foreign and not condition.is_true and conditions.rank(condition.reason) > 0:
            yield _copy(condition)


def _is_denied(quota: Statement) -> bool:
    if quota.status == "False":
        return True
    return quota.status == "Unknown" and quota.reason == reasons.QUOTA_NO_BUDGET


def _unprogrammed(instance: InstanceState, programmed: ReportedCondition | None) -> ReadyState:
    """`Programmed` itself, unless another condition has a more specific reason."""
    others = (
        _copy(condition)
        for condition in instance.conditions
        if condition.type not in {conditions.PROGRAMMED, *_NO_EVIDENCE}
        and not condition.is_true
        and condition.reason not in conditions.NEVER_COMPETES
    )
    is_silent = programmed is None or programmed.reason in conditions.NEVER_COMPETES
    base = NOT_PROGRAMMED if is_silent or programmed is None else _copy(programmed)
    return conditions.summarise((base, *others)) or base


def _unavailable(available: ReportedCondition | None) -> ReadyState:
    if available is None or available.reason == reasons.PENDING:
        return NOT_AVAILABLE
    return _copy(available)


def _copy(condition: ReportedCondition) -> ReadyState:
    """Reason and message of another condition; Unknown stays Unknown."""
    status: ConditionStatus = "False" if condition.status == "False" else "Unknown"
    return ReadyState(status, condition.reason, condition.message)
