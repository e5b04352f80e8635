"""Watches: from changes of Notes and copies to the keys of Notes."""

from __future__ import annotations

from collections.abc import Iterable

from compute_operator_kit.cache.lister import Caches, Change
from compute_operator_kit.controller.mapping import DroppedChange
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Metadata
from example_operator.notes import HUB, NAME_LABEL, NOTE, PLANE_LABEL


def map_copy(change: Change, caches: Caches) -> Iterable[ObjectKey | DroppedChange]:
    """A copy enqueues the Note that its labels name, before and after the change."""
    engaged = caches.planes(Role.PROJECT)
    for entry in change.entries:
        plane = entry.metadata.labels.get(PLANE_LABEL, "")
        name = entry.metadata.labels.get(NAME_LABEL, "")
        if not plane or not name:
            yield DroppedChange("no_project")
        elif PlaneName(plane) not in engaged:
            yield DroppedChange("not_engaged")
        else:
            yield ObjectKey(PlaneName(plane), NOTE, entry.metadata.namespace, name)


def enqueue_copies(plane: PlaneName, caches: Caches) -> Iterable[ObjectKey]:
    """The keys of a plane on engage: also of copies with a Note that was deleted meanwhile."""
    if plane == HUB or HUB not in caches.planes(Role.HUB):
        return
    for entry in caches.lister(HUB, NOTE).entries_by_index("plane", plane):
        name = entry.metadata.labels.get(NAME_LABEL, "")
        if name:
            yield ObjectKey(plane, NOTE, entry.metadata.namespace, name)


def index_by_plane(metadata: Metadata, _: JsonObject) -> Iterable[str]:
    """Copies by the plane of their Note."""
    plane = metadata.labels.get(PLANE_LABEL)
    return (plane,) if plane else ()
