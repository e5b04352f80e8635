"""Plan: the intents for one Note. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    Delete,
    Ensure,
    OwnedFields,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RequeueAfter,
    RequireGone,
)
from example_operator.mirror.observe import Note, ObservedNote, copy_key
from example_operator.notes import FINALIZER, NAME_LABEL, PLANE_LABEL, SOURCE_UID

RETRY_TERMINATING: Final = timedelta(seconds=1)


def plan(observed: ObservedNote) -> Plan:
    if isinstance(observed.note, Absent):
        return _remove_orphan(observed)
    if observed.note.metadata.is_deleting:
        return _finalize(observed.note, observed.copy)
    if FINALIZER not in observed.note.metadata.finalizers:
        # The finalizer first: without it, the copy of a deleted Note would stay on the hub.
        return Plan.of(
            AddFinalizer(observed.key, observed.note.metadata.uid, FINALIZER, "NotProtected")
        )
    if isinstance(observed.copy, Absent):
        created = Ensure(copy_key(observed.key), _desired(observed.note), "NotMirrored")
        event = RecordEvent(
            observed.key,
            observed.note.metadata.uid,
            reason="Mirrored",
            message="Copied to the hub",
            action="Mirroring",
            after=created,
        )
        return Plan.of(created, event)
    if observed.copy.metadata.is_deleting:
        return Plan.of(RequeueAfter(observed.key, "CopyTerminating", RETRY_TERMINATING))
    if observed.copy.metadata.annotations.get(SOURCE_UID) != observed.note.metadata.uid:
        # A copy of a deleted Note of the same name: it is replaced.
        return Plan.of(Delete(observed.copy.key, observed.copy.metadata.uid, "Replaced"))
    return Plan.of(
        Ensure(
            observed.copy.key, _desired(observed.note), "Drifted", uid=observed.copy.metadata.uid
        )
    )


def _desired(note: Note) -> OwnedFields:
    return OwnedFields(
        labels={PLANE_LABEL: note.key.plane, NAME_LABEL: note.key.name},
        annotations={SOURCE_UID: note.metadata.uid},
        replace={"spec": note.spec},
    )


def _remove_orphan(observed: ObservedNote) -> Plan:
    """A Note was deleted without its finalizer: deletes the copy after a live read of the Note."""
    if isinstance(observed.copy, Absent):
        return Plan()
    gone = RequireGone(observed.key)
    return Plan.of(
        Delete(observed.copy.key, observed.copy.metadata.uid, "Orphaned", require_gone=gone)
    )


def _finalize(note: Note, copy: Note | Absent) -> Plan:
    if FINALIZER not in note.metadata.finalizers:
        return Plan()
    if isinstance(copy, Absent):
        released = RemoveFinalizer(
            note.key,
            note.metadata.uid,
            FINALIZER,
            "CopyGone",
            require_gone=RequireGone(copy_key(note.key)),
        )
        return Plan.of(released)
    return Plan.of(Delete(copy.key, copy.metadata.uid, "SourceDeleted"))
