"""Decides what is done about a Note. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_operator_kit.intents import (
    AddFinalizer,
    Delete,
    Emit,
    Ensure,
    IfGone,
    Owned,
    Plan,
    RemoveFinalizer,
    Wait,
)
from compute_operator_kit.objects import Absent
from example_operator.mirror.observe import Note, Seen, copy_key
from example_operator.notes import FINALIZER, NAME_LABEL, PLANE_LABEL, SOURCE_UID

RETRY_TERMINATING: Final = timedelta(seconds=1)


def plan(seen: Seen) -> Plan:
    if isinstance(seen.note, Absent):
        return _remove_orphan(seen)
    if seen.note.metadata.is_deleting:
        return _finalize(seen.note, seen.copy)
    if FINALIZER not in seen.note.metadata.finalizers:
        # Nothing is made on the hub before the finalizer that removes it again is stored.
        return Plan.of(AddFinalizer(seen.key, seen.note.metadata.uid, FINALIZER, "NotProtected"))
    if isinstance(seen.copy, Absent):
        made = Ensure(copy_key(seen.key), _wanted(seen.note), "NotMirrored")
        told = Emit(
            seen.key,
            seen.note.metadata.uid,
            reason="Mirrored",
            message="Copied to the hub",
            action="Mirroring",
            after=made,
        )
        return Plan.of(made, told)
    if seen.copy.metadata.is_deleting:
        return Plan.of(Wait(seen.key, "CopyTerminating", RETRY_TERMINATING))
    if seen.copy.metadata.annotations.get(SOURCE_UID) != seen.note.metadata.uid:
        # A copy of a Note that had this name before: another object, so the copy is replaced.
        return Plan.of(Delete(seen.copy.key, seen.copy.metadata.uid, "Replaced"))
    return Plan.of(Ensure(seen.copy.key, _wanted(seen.note), "Drifted", uid=seen.copy.metadata.uid))


def _wanted(note: Note) -> Owned:
    return Owned(
        labels={PLANE_LABEL: note.key.plane, NAME_LABEL: note.key.name},
        annotations={SOURCE_UID: note.metadata.uid},
        whole={"spec": note.spec},
    )


def _remove_orphan(seen: Seen) -> Plan:
    """The Note went without its finalizer; the copy goes once the plane itself says so."""
    if isinstance(seen.copy, Absent):
        return Plan()
    gone = IfGone(seen.key)
    return Plan.of(Delete(seen.copy.key, seen.copy.metadata.uid, "Orphaned", if_gone=gone))


def _finalize(note: Note, copy: Note | Absent) -> Plan:
    if FINALIZER not in note.metadata.finalizers:
        return Plan()
    if isinstance(copy, Absent):
        released = RemoveFinalizer(
            note.key,
            note.metadata.uid,
            FINALIZER,
            "CopyGone",
            if_gone=IfGone(copy_key(note.key)),
        )
        return Plan.of(released)
    return Plan.of(Delete(copy.key, copy.metadata.uid, "SourceDeleted"))
