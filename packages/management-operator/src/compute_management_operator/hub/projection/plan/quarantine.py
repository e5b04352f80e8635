"""The quarantine annotations of a hub Instance that cannot be projected. Pure (management.md 8.5).

The four annotations are set and removed together. One is a fingerprint of the verified labels: the
mark is written again only when the labels change, or each change of the status would write it.
Nothing is deleted for being quarantined, and an Instance that is being deleted is not marked.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_api_types.meta import format_timestamp
from compute_management_operator.hub.delays import UNTIL_RESYNC
from compute_management_operator.hub.projection.observe import HubInstance, ObservedInstance
from compute_management_operator.hub.projection.plan.verify import Terminal
from compute_operator_kit.intents.intents import (
    Ensure,
    Intent,
    OwnedFields,
    Plan,
    RecordEvent,
    RequeueAfter,
)

ACTION: Final = "QuarantiningProjection"


def enter(seen: ObservedInstance, source: HubInstance, blocker: Terminal, now: datetime) -> Plan:
    """Marks the Instance and records an event, unless it has this mark already."""
    if source.metadata.is_deleting or is_recorded(source, blocker):
        return Plan(_remembered(seen))
    desired = OwnedFields(
        annotations={
            labels.QUARANTINE_REASON: blocker.reason.value,
            labels.QUARANTINE_MESSAGE: blocker.message,
            labels.QUARANTINED_AT: format_timestamp(now),
            labels.QUARANTINE_FINGERPRINT: _fingerprint(source),
        }
    )
    marked = Ensure(source.key, desired, blocker.reason.event, uid=source.metadata.uid)
    event = RecordEvent(
        source.key,
        source.metadata.uid,
        blocker.reason.event,
        blocker.message,
        ACTION,
        type="Warning",
        after=marked,
    )
    return Plan((marked, event, *_remembered(seen)))


def leave(source: HubInstance) -> tuple[Intent, ...]:
    """Removes the mark of an Instance that can be projected now."""
    annotations = source.metadata.annotations
    if not any(key in annotations for key in labels.QUARANTINE_ANNOTATIONS):
        return ()
    desired = OwnedFields(annotations=dict.fromkeys(labels.QUARANTINE_ANNOTATIONS))
    return (Ensure(source.key, desired, reasons.DRIFTED, uid=source.metadata.uid),)


def is_recorded(source: HubInstance, blocker: Terminal) -> bool:
    annotations = source.metadata.annotations
    is_same = annotations.get(labels.QUARANTINE_REASON) == blocker.reason.value
    return is_same and annotations.get(labels.QUARANTINE_FINGERPRINT) == _fingerprint(source)


def _fingerprint(source: HubInstance) -> str:
    return names.derive_quarantine_fingerprint(source.metadata.labels)


def _remembered(seen: ObservedInstance) -> tuple[Intent, ...]:
    """Waits that keep their situations: an expired patience that is forgotten would begin again."""
    kept = (reasons.DEPLOYMENT_MISSING, reasons.IDENTITY_INCOMPLETE, reasons.STILL_TERMINATING)
    return tuple(
        RequeueAfter(seen.key, reason, UNTIL_RESYNC) for reason in kept if reason in seen.since
    )
