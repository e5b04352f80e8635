"""Status of an Instance: its conditions `QuotaGranted`, `ReferencedDataReady` and `Ready`, and
their events. Pure (cell.md 8, 14; referenced-data.md 6).

Only these entries of the `conditions` array change. Entries of other writers, and the order,
are written back as they were read: the array is one field, and a lost entry would be a provider's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.finalizers import describe_hold
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.ready import derive_ready
from compute_cell_operator.instance.suspension import SuspensionWrites, restate, state_available
from compute_cell_operator.instance_facts import InstanceState
from compute_cell_operator.planes import DEPLOYMENT
from compute_cell_operator.quota.result import opens_gate
from compute_cell_operator.quota.status import StoredQuotaState, needs_event, report_quota
from compute_cell_operator.referenced_data.judgement import SOURCE_REASONS
from compute_cell_operator.suspension import SUSPENDED
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import RecordEvent, RemoveGate, SetStatus

CLAIMING: Final = "ClaimingQuota"
OPENING: Final = "RemovingSchedulingGate"
PROVISIONING: Final = "ProvisioningNetwork"
DELETING: Final = "DeletingInstance"
DELIVERING: Final = "AwaitingReferencedData"


def state_conditions(
    observed: ObservedInstance, now: datetime, memory: SuspensionWrites | None = None
) -> tuple[Statement, ...]:
    """Our conditions, and `Available` around a suspension; of a terminating Instance only `Ready`,
    since no quota is claimed for it.
    """
    available = state_available(observed, memory, now)
    data = _state_data(observed)
    restated = restate(restate(observed.instance, available), data)
    observed = replace(observed, instance=restated)
    instance = observed.instance
    generation = instance.metadata.generation
    stored = StoredQuotaState(instance.quota, generation, is_started=instance.is_started)
    quota = report_quota(observed.quota_result, stored, now)
    state = derive_ready(observed, quota)
    ready = Statement(conditions.READY, state.status, state.reason, state.message, generation)
    if instance.metadata.is_deleting:
        return (ready,)
    optional = (statement for statement in (available, data) if statement is not None)
    return (quota, ready, *optional)


def _state_data(observed: ObservedInstance) -> Statement | None:
    """None where it is not judged: what is stored stays, also once the Instance has started."""
    data, metadata = observed.data, observed.instance.metadata
    if data is None or metadata.is_deleting:
        return None
    return Statement(
        conditions.REFERENCED_DATA_READY,
        data.status,
        data.reason,
        data.message,
        metadata.generation,
    )


def write_status(
    observed: ObservedInstance, statements: tuple[Statement, ...], now: datetime
) -> SetStatus:
    instance = observed.instance
    return SetStatus(
        instance.key,
        instance.metadata.uid,
        instance.metadata.resource_version,
        _derive_document(observed, statements, now),
        reason=reasons.STATUS_CHANGED,
        # A provider waits for the suspension and for its end.
        may_defer=observed.is_suspended == instance.is_suspended
        and conditions.provisional(
            "Instance",
            (*statements, *instance.conditions),
            instance.conditions,
            is_terminating=instance.metadata.is_deleting,
            opens_gate=is_awaited_by_gate(observed) or is_awaited_by_data_gate(observed),
        ),
        ignore_own_event=True,  # the gate that waits for it is removed in the same reconcile
    )


def _derive_document(
    observed: ObservedInstance, statements: tuple[Statement, ...], now: datetime
) -> JsonObject:
    """The stored status with our conditions and the suspension in it."""
    instance = observed.instance
    document = instance.status.with_conditions(statements, now)
    if instance.metadata.is_deleting:
        return document
    kept: JsonObject = {name: value for name, value in document.items() if name != SUSPENDED}
    return {**kept, SUSPENDED: True} if observed.is_suspended else kept


def is_awaited_by_gate(observed: ObservedInstance) -> bool:
    """The gate may be removed once this status is stored: such a write is never deferred."""
    instance = observed.instance
    return (
        instance.has_quota_gate
        and opens_gate(observed.quota_result)
        and not instance.is_granted_now
    )


def is_awaited_by_data_gate(observed: ObservedInstance) -> bool:
    """As `is_awaited_by_gate`, for referenced data."""
    instance, data = observed.instance, observed.data
    if data is None or not data.is_complete:
        return False
    stored = conditions.find(instance.conditions, conditions.REFERENCED_DATA_READY)
    if stored is None or not stored.is_true:
        return True
    return stored.observed_generation != instance.metadata.generation


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
    yield from _derive_data_events(observed, statements, written)
    if gate is not None and gate.gate == labels.QUOTA_GATE:
        message = "Quota is granted; the Quota gate is removed"
        yield _record(instance, reasons.QUOTA_GRANTED, message, OPENING, after=gate)
    elif gate is not None and observed.data is not None:
        message = f"{observed.data.message}; the ReferencedData gate is removed"
        yield _record(instance, reasons.REFERENCED_DATA_READY, message, OPENING, after=gate)


def _derive_data_events(
    observed: ObservedInstance, statements: tuple[Statement, ...], written: SetStatus
) -> Iterator[RecordEvent]:
    """A reason that the user can cure, once per transition to it."""
    data = conditions.find(statements, conditions.REFERENCED_DATA_READY)
    stored = conditions.find(observed.instance.conditions, conditions.REFERENCED_DATA_READY)
    is_reported = stored is not None and data is not None and stored.reason == data.reason
    if data is not None and data.reason in SOURCE_REASONS and not is_reported:
        yield _record(observed.instance, data.reason, data.message, DELIVERING, after=written)


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
