"""Plan of one reconcile of an Instance: status, Quota and ReferencedData gate, retired finalizers,
events. Pure (cell.md 8, 10).

The Quota gate is removed only after a grant is stored for the generation that was read, and only
while the current quota result is still a grant: a grant that was withdrawn starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.delays import RETRY_UNREAD_DATA
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.status import (
    derive_events,
    is_awaited_by_data_gate,
    is_awaited_by_gate,
    state_conditions,
    write_status,
)
from compute_cell_operator.instance.suspension import (
    SuspensionWrites,
    plan_wait,
    report_overwritten,
)
from compute_cell_operator.quota.result import is_held_by_others, opens_gate
from compute_cell_operator.quota.status import derive_requeue
from compute_operator_kit.intents.intents import (
    Plan,
    RemoveFinalizer,
    RemoveGate,
    RequeueAfter,
    SetStatus,
)


def plan(observed: ObservedInstance, now: datetime, memory: SuspensionWrites | None = None) -> Plan:
    statements = state_conditions(observed, now, memory)
    written = write_status(observed, statements, now)
    # One gate at a time: the removal of a gate is a generation of its own, which the other has to
    # be stated for.
    gate = plan_gate(observed, written) or plan_data_gate(observed, written)
    return Plan(
        (
            *_retire_finalizers(observed),
            written,
            *((gate,) if gate is not None else ()),
            *derive_events(observed, statements, written, gate),
            *report_overwritten(observed, memory),
            *_requeue(observed, statements, now),
            *_requeue_unread(observed),
            *plan_wait(observed, memory, now),
        )
    )


def plan_gate(observed: ObservedInstance, written: SetStatus) -> RemoveGate | None:
    """The removal of the Quota gate, where this reconcile may request it."""
    instance = observed.instance
    if instance.metadata.is_deleting or not instance.has_quota_gate:
        return None
    if observed.is_suspended or not opens_gate(observed.quota_result):
        return None
    return RemoveGate(
        instance.key,
        instance.metadata.uid,
        labels.QUOTA_GATE,
        reasons.QUOTA_GRANTED,
        generation=instance.metadata.generation,
        # A grant that is already stored must not wait for the rest of this status, which the
        # applier may defer.
        after=written if is_awaited_by_gate(observed) else None,
    )


def plan_data_gate(observed: ObservedInstance, written: SetStatus) -> RemoveGate | None:
    """The removal of the ReferencedData gate: its data is there, or is not awaited any more."""
    instance, metadata = observed.instance, observed.instance.metadata
    gate = labels.REFERENCED_DATA_GATE
    if metadata.is_deleting or gate not in instance.gates:
        return None
    if not observed.is_data_awaited:
        return RemoveGate(instance.key, metadata.uid, gate, reasons.REFERENCED_DATA_OFF)
    if observed.is_suspended or observed.data is None or not observed.data.is_complete:
        return None
    return RemoveGate(
        instance.key,
        metadata.uid,
        gate,
        reasons.REFERENCED_DATA_READY,
        generation=metadata.generation,
        after=written if is_awaited_by_data_gate(observed) else None,
    )


def _retire_finalizers(observed: ObservedInstance) -> Iterator[RemoveFinalizer]:
    """Finalizers of an older operator, terminating or not: they would block deletion on a cell
    without a connection.
    """
    metadata = observed.instance.metadata
    for finalizer in labels.RETIRED_INSTANCE_FINALIZERS:
        if finalizer in metadata.finalizers:
            yield RemoveFinalizer(
                observed.instance.key, metadata.uid, finalizer, reasons.RETIRED_FINALIZER
            )


def _requeue_unread(observed: ObservedInstance) -> Iterator[RequeueAfter]:
    if observed.data is not None and observed.data.is_unread:
        yield RequeueAfter(observed.instance.key, reasons.CACHE_NOT_SYNCED, RETRY_UNREAD_DATA)


def _requeue(
    observed: ObservedInstance, statements: tuple[Statement, ...], now: datetime
) -> Iterator[RequeueAfter]:
    quota = conditions.find(statements, conditions.QUOTA_GRANTED)
    if quota is None:
        return
    is_held = is_held_by_others(observed.quota_result)
    delay = derive_requeue(quota.status, observed.instance.age(now), is_held_by_others=is_held)
    if delay is not None:
        yield RequeueAfter(observed.instance.key, quota.reason, delay)
