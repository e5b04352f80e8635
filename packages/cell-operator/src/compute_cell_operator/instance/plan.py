"""Decides one pass over an Instance. Pure (cell.md 8, 10).

The order is that of the specification: finalizers of an older operator, status, the Quota gate,
events. The gate goes only on a grant that is stored for the generation that was judged, and only if
the finding of this very pass still is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from compute_api_types import conditions, labels, reasons
from compute_api_types.conditions import Statement
from compute_cell_operator.instance.observe import Seen
from compute_cell_operator.instance.status import (
    derive_events,
    is_awaited_by_gate,
    state_conditions,
    write_status,
)
from compute_cell_operator.quota_gate.findings import is_held_by_others, opens_gate
from compute_cell_operator.quota_gate.schedule import next_look
from compute_operator_kit.intents import Plan, RemoveFinalizer, RemoveGate, SetStatus, Wait


def plan(seen: Seen, now: datetime) -> Plan:
    statements = state_conditions(seen, now)
    written = write_status(seen, statements, now)
    gate = plan_gate(seen, written)
    return Plan(
        (
            *_retire_finalizers(seen),
            written,
            *((gate,) if gate is not None else ()),
            *derive_events(seen, statements, written, gate),
            *_look_again(seen, statements, now),
        )
    )


def plan_gate(seen: Seen, written: SetStatus) -> RemoveGate | None:
    """The removal of the Quota gate, where this pass may ask for it."""
    if seen.metadata.is_deleting or not seen.has_quota_gate or not opens_gate(seen.said):
        return None
    return RemoveGate(
        seen.key,
        seen.metadata.uid,
        labels.QUOTA_GATE,
        reasons.QUOTA_GRANTED,
        generation=seen.metadata.generation,
        # Only what is not stored yet is waited for: a grant that is stored opens at once, even
        # while another word of this status is held back.
        after=written if is_awaited_by_gate(seen) else None,
    )


def _retire_finalizers(seen: Seen) -> Iterator[RemoveFinalizer]:
    """Of an older operator, terminating or not: they would stop a cut-off cell."""
    for finalizer in labels.RETIRED_INSTANCE_FINALIZERS:
        if finalizer in seen.metadata.finalizers:
            yield RemoveFinalizer(seen.key, seen.metadata.uid, finalizer, reasons.RETIRED_FINALIZER)


def _look_again(seen: Seen, statements: tuple[Statement, ...], now: datetime) -> Iterator[Wait]:
    quota = conditions.find(statements, conditions.QUOTA_GRANTED)
    if quota is None:
        return
    is_held = is_held_by_others(seen.said)
    delay = next_look(quota.status, seen.age(now), is_held_by_others=is_held)
    if delay is not None:
        yield Wait(seen.key, quota.reason, delay)
