"""Reads caches: a Note and its copy, at one moment; and says which key a change concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.mapping import Dropped
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.wire import JsonObject
from example_operator.notes import HUB, NAME_LABEL, NOTE, PLANE_LABEL


@dataclass(frozen=True, slots=True)
class Note:
    """What a pass needs of a Note: header, spec and status."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject
    status: JsonObject


@dataclass(frozen=True, slots=True)
class Seen:
    """One Note and its copy."""

    key: ObjectKey
    note: Note | Absent
    copy: Note | Absent


def observe(key: ObjectKey, caches: Caches) -> Seen | None:
    """None where there is nothing to look at, or where a cache cannot be believed."""
    note = caches.view(key.plane, NOTE).get(key.namespace, key.name)
    place = copy_key(key)
    copy = caches.view(HUB, NOTE).get(place.namespace, place.name)
    if isinstance(note, Unreadable) or isinstance(copy, Unreadable):
        return None
    if isinstance(note, Absent) and isinstance(copy, Absent):
        return None
    return Seen(key, _read(note), _read(copy))


def copy_key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(HUB, NOTE, key.namespace, f"{key.plane}.{key.name}")


def map_copy(change: Change, caches: Caches) -> Iterable[ObjectKey | Dropped]:
    """A change of a copy concerns the Note it names, before and after."""
    engaged = caches.planes(Role.PROJECT)
    for entry in change.entries:
        plane = entry.metadata.labels.get(PLANE_LABEL, "")
        name = entry.metadata.labels.get(NAME_LABEL, "")
        if not plane or not name:
            yield Dropped("no_project")
        elif PlaneName(plane) not in engaged:
            yield Dropped("not_engaged")
        else:
            yield ObjectKey(PlaneName(plane), NOTE, entry.metadata.namespace, name)


def wake_copies(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:
    """A plane is engaged: copies whose Note went while nobody looked are found by their index."""
    for entry in caches.view(HUB, NOTE).entries_by_index("plane", plane):
        name = entry.metadata.labels.get(NAME_LABEL, "")
        if name:
            yield ObjectKey(plane, NOTE, entry.metadata.namespace, name)


def index_by_plane(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """For copies: the plane of the Note."""
    plane = metadata.labels.get(PLANE_LABEL)
    return (plane,) if plane else ()


def _read(found: Snapshot | Absent) -> Note | Absent:
    if isinstance(found, Absent):
        return found
    body = found.decode()
    spec, status = body.get("spec"), body.get("status")
    return Note(
        key=found.key,
        metadata=found.metadata,
        spec=spec if isinstance(spec, dict) else {},
        status=status if isinstance(status, dict) else {},
    )
