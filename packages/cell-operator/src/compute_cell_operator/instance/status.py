"""The status of an Instance: our two conditions in it, and the events they are worth. Pure
(cell.md 8, 14).

Only our two entries of the plain `conditions` array change; everything else, and the order, goes
back as it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.finalizers import describe_hold
from compute_cell_operator.instance.observe import Seen
from compute_cell_operator.instance.ready import derive_ready
from compute_cell_operator.kinds import DEPLOYMENT
from compute_cell_operator.quota_gate.findings import opens_gate
from compute_cell_operator.quota_gate.status import Standing, needs_event, report_quota
from compute_cell_operator.told import Told, read_conditions
from compute_operator_kit.intents import Emit, RemoveGate, SetStatus
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.wire import JsonObject, member_list

CLAIMING: Final = "ClaimingQuota"
OPENING: Final = "RemovingSchedulingGate"
PROVISIONING: Final = "ProvisioningNetwork"
DELETING: Final = "DeletingInstance"


def state_conditions(seen: Seen, now: datetime) -> tuple[Statement, ...]:
    """What we say now; of a terminating Instance only `Ready`, nothing is asked for it any more."""
    standing = Standing(seen.quota, seen.metadata.generation, is_started=seen.is_started)
    quota = report_quota(seen.said, standing, now)
    word = derive_ready(seen, quota)
    ready = Statement(
        conditions.READY, word.status, word.reason, word.message, seen.metadata.generation
    )
    return (ready,) if seen.metadata.is_deleting else (quota, ready)


def derive_status(seen: Seen, statements: tuple[Statement, ...], now: datetime) -> JsonObject:
    """The stored status with what we say in it."""
    found = member_list(seen.status, "conditions")
    return {**seen.status, "conditions": conditions.merge_documents(found, statements, now)}


def write_status(seen: Seen, statements: tuple[Statement, ...], now: datetime) -> SetStatus:
    status = derive_status(seen, statements, now)
    return SetStatus(
        seen.key,
        seen.metadata.uid,
        seen.metadata.resource_version,
        status,
        reason=reasons.STATUS_CHANGED,
        provisional=conditions.provisional(
            "Instance",
            read_conditions(status),
            seen.conditions,
            is_terminating=seen.metadata.is_deleting,
            opens_gate=is_awaited_by_gate(seen),
        ),
        is_final=True,  # the gate that waits for it goes in the same pass
    )


def is_awaited_by_gate(seen: Seen) -> bool:
    """The gate may go once this status is stored: a write that is never held back."""
    return seen.has_quota_gate and opens_gate(seen.said) and not seen.is_granted_now


def derive_events(
    seen: Seen, statements: tuple[Statement, ...], written: SetStatus, gate: RemoveGate | None
) -> Iterator[Emit]:
    """Events for what this pass changes, each tied to the write that makes it true."""
    quota = conditions.find(statements, conditions.QUOTA_GRANTED)
    if quota is not None and needs_event(quota, seen.quota):
        yield _emit(seen, quota.reason, quota.message, CLAIMING, after=written)
    ready = conditions.find(statements, conditions.READY)
    stored = conditions.find(seen.conditions, conditions.READY)
    failed = reasons.NETWORK_FAILED_TO_CREATE
    is_told = stored is not None and stored.reason == failed
    if ready is not None and ready.reason == failed and not is_told:
        yield _emit(seen, failed, ready.message, PROVISIONING, after=written)
    if ready is not None and describe_hold(seen.metadata) and not _is_repeated(ready, stored):
        yield _emit(seen, reasons.DELETION_BLOCKED, ready.message, DELETING, after=written)
    if gate is not None:
        message = "Quota is granted; the Quota gate is removed"
        yield _emit(seen, reasons.QUOTA_GRANTED, message, OPENING, after=gate)


def _is_repeated(ready: Statement, stored: Told | None) -> bool:
    return stored is not None and stored.message == ready.message


def _emit(
    seen: Seen, reason: str, message: str, action: str, *, after: SetStatus | RemoveGate
) -> Emit:
    related, uid = _refer_to_deployment(seen)
    return Emit(
        seen.key,
        seen.metadata.uid,
        reason,
        message,
        action,
        type="Normal" if isinstance(after, RemoveGate) else "Warning",
        related=related,
        related_uid=uid,
        after=after,
    )


def _refer_to_deployment(seen: Seen) -> tuple[ObjectKey | None, Uid | None]:
    owner = seen.metadata.controller
    if owner is None or owner.kind != DEPLOYMENT.kind or not owner.name:
        return None, None
    return ObjectKey(seen.key.plane, DEPLOYMENT, seen.key.namespace, owner.name), owner.uid
