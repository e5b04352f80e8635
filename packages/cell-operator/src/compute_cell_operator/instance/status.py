"""Status of an Instance: its conditions `QuotaGranted` and `Ready`, and their events. Pure
(cell.md 8, 14).

Only these two entries of the `conditions` array change. Entries of other writers, and the order,
are written back as they were read: the array is one field, and a lost entry would be a provider's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.finalizers import describe_hold
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.ready import derive_ready
from compute_cell_operator.instance_facts import InstanceState
from compute_cell_operator.planes import DEPLOYMENT
from compute_cell_operator.quota.result import opens_gate
from compute_cell_operator.quota.status import StoredQuotaState, needs_event, report_quota
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import RecordEvent, RemoveGate, SetStatus

CLAIMING: Final = "ClaimingQuota"
OPENING: Final = "RemovingSchedulingGate"
PROVISIONING: Final = "ProvisioningNetwork"
DELETING: Final = "DeletingInstance"


def state_conditions(observed: ObservedInstance, now: datetime) -> tuple[Statement, ...]:
    """Our conditions; of a terminating Instance only `Ready`, since no quota is claimed for it."""
    instance = observed.instance
    generation = instance.metadata.generation
    stored = StoredQuotaState(instance.quota, generation, is_started=instance.is_started)
    quota = report_quota(observed.quota_result, stored, now)
    state = derive_ready(observed, quota)
    ready = Statement(conditions.READY, state.status, state.reason, state.message, generation)
    return (ready,) if instance.metadata.is_deleting else (quota, ready)


def write_status(
    observed: ObservedInstance, statements: tuple[Statement, ...], now: datetime
) -> SetStatus:
    instance = observed.instance
    return SetStatus(
        instance.key,
        instance.metadata.uid,
        instance.metadata.resource_version,
        instance.status.with_conditions(statements, now),
        reason=reasons.STATUS_CHANGED,
        may_defer=conditions.provisional(
            "Instance",
            (*statements, *instance.conditions),
            instance.conditions,
            is_terminating=instance.metadata.is_deleting,
            opens_gate=is_awaited_by_gate(observed),
        ),
        ignore_own_event=True,  # the gate that waits for it is removed in the same reconcile
    )


def is_awaited_by_gate(observed: ObservedInstance) -> bool:
    """The gate may be removed once this status is stored: such a write is never deferred."""
    instance = observed.instance
    return (
        instance.has_quota_gate
        and opens_gate(observed.quota_result)
        and not instance.is_granted_now
    )


def derive_events(
    observed: ObservedInstance,
    statements: tuple[Statement, ...],
    written: SetStatus,
    gate: RemoveGate | None,
) -> Iterator[RecordEvent]:
    """Events for what this reconcile changes, each recorded only after the write it is about."""
    instance = observed.instance
    quota = conditions.find(statements, conditions.QUOTA_GRANTED)
    if quota is not None and needs_event(quota, instance.quota):
        yield _record(instance, quota.reason, quota.message, CLAIMING, after=written)
    ready = conditions.find(statements, conditions.READY)
    stored = conditions.find(instance.conditions, conditions.READY)
    failed = reasons.NETWORK_FAILED_TO_CREATE
    is_reported = stored is not None and stored.reason == failed
    if ready is not None and ready.reason == failed and not is_reported:
        yield _record(instance, failed, ready.message, PROVISIONING, after=written)
    if ready is not None and describe_hold(instance.metadata) and not _is_repeated(ready, stored):
        yield _record(instance, reasons.DELETION_BLOCKED, ready.message, DELETING, after=written)
    if gate is not None:
        message = "Quota is granted; the Quota gate is removed"
        yield _record(instance, reasons.QUOTA_GRANTED, message, OPENING, after=gate)


def _is_repeated(ready: Statement, stored: ReportedCondition | None) -> bool:
    return stored is not None and stored.message == ready.message


def _record(
    instance: InstanceState,
    reason: str,
    message: str,
    action: str,
    *,
    after: SetStatus | RemoveGate,
) -> RecordEvent:
    related, uid = _refer_to_deployment(instance)
    return RecordEvent(
        instance.key,
        instance.metadata.uid,
        reason,
        message,
        action,
        type="Normal" if isinstance(after, RemoveGate) else "Warning",
        related=related,
        related_uid=uid,
        after=after,
    )


def _refer_to_deployment(instance: InstanceState) -> tuple[ObjectKey | None, Uid | None]:
    owner = instance.metadata.controller
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return None, None
    return ObjectKey(instance.key.plane, DEPLOYMENT, instance.key.namespace, owner.name), owner.uid
