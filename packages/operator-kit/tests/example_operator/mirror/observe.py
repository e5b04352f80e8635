"""Observe: a Note and its copy, read from caches at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable
from example_operator.notes import HUB, NOTE


@dataclass(frozen=True, slots=True)
class Note:
    """The members of a Note that a reconcile needs."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject
    status: JsonObject


@dataclass(frozen=True, slots=True)
class ObservedNote:
    """One Note and its copy."""

    key: ObjectKey
    note: Note | Absent
    copy: Note | Absent


def observe(key: ObjectKey, caches: Caches) -> ObservedNote | None:
    """None if neither exists, or if a cache is not complete."""
    note = caches.lister(key.plane, NOTE).get(key.namespace, key.name)
    hub_key = copy_key(key)
    copy = caches.lister(HUB, NOTE).get(hub_key.namespace, hub_key.name)
    if isinstance(note, Unreadable) or isinstance(copy, Unreadable):
        return None
    if isinstance(note, Absent) and isinstance(copy, Absent):
        return None
    return ObservedNote(key, _read(note), _read(copy))


def copy_key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(HUB, NOTE, key.namespace, f"{key.plane}.{key.name}")


def _read(snapshot: Snapshot | Absent) -> Note | Absent:
    if isinstance(snapshot, Absent):
        return snapshot
    body = snapshot.decode()
    spec, status = body.get("spec"), body.get("status")
    return Note(
        key=snapshot.key,
        metadata=snapshot.metadata,
        spec=spec if isinstance(spec, dict) else {},
        status=status if isinstance(status, dict) else {},
    )
