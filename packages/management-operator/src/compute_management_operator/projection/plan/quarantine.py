"""Marks a hub Instance that cannot be projected, once, and takes the mark off again. Pure
(management.md 8.5).

The four annotations come and go together. A fingerprint over the labels that were judged says
whether a verdict is still about the same words: status may change as it likes. Nothing is ever
deleted for being quarantined, and what is going is not marked any more.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_api_types.meta import format_timestamp
from compute_management_operator.projection.observe import Instance, Seen
from compute_management_operator.projection.plan.verifying import RESYNC, Terminal
from compute_operator_kit.intents import Emit, Ensure, Intent, Owned, Plan, Wait

ACTION: Final = "QuarantiningProjection"


def enter(seen: Seen, source: Instance, blocker: Terminal, now: datetime) -> Plan:
    """Tells the verdict, unless exactly this one is recorded already."""
    if source.metadata.is_deleting or is_recorded(source, blocker):
        return Plan(_remembered(seen))
    wanted = Owned(
        annotations={
            labels.QUARANTINE_REASON: blocker.reason.value,
            labels.QUARANTINE_MESSAGE: blocker.message,
            labels.QUARANTINED_AT: format_timestamp(now),
            labels.QUARANTINE_FINGERPRINT: _fingerprint(source),
        }
    )
    marked = Ensure(source.key, wanted, blocker.reason.event, uid=source.metadata.uid)
    told = Emit(
        source.key,
        source.metadata.uid,
        blocker.reason.event,
        blocker.message,
        ACTION,
        type="Warning",
        after=marked,
    )
    return Plan((marked, told, *_remembered(seen)))


def leave(source: Instance) -> tuple[Intent, ...]:
    """Takes off what an earlier verdict left."""
    held = source.metadata.annotations
    if not any(key in held for key in labels.QUARANTINE_ANNOTATIONS):
        return ()
    wanted = Owned(annotations=dict.fromkeys(labels.QUARANTINE_ANNOTATIONS))
    return (Ensure(source.key, wanted, reasons.DRIFTED, uid=source.metadata.uid),)


def is_recorded(source: Instance, blocker: Terminal) -> bool:
    held = source.metadata.annotations
    is_same = held.get(labels.QUARANTINE_REASON) == blocker.reason.value
    return is_same and held.get(labels.QUARANTINE_FINGERPRINT) == _fingerprint(source)


def _fingerprint(source: Instance) -> str:
    return names.derive_quarantine_fingerprint(source.metadata.labels)


def _remembered(seen: Seen) -> tuple[Intent, ...]:
    """A patience that ran out stays run out: forgotten, it would begin again at the next look."""
    kept = (reasons.DEPLOYMENT_MISSING, reasons.IDENTITY_INCOMPLETE, reasons.STILL_TERMINATING)
    return tuple(Wait(seen.key, reason, RESYNC) for reason in kept if reason in seen.since)
