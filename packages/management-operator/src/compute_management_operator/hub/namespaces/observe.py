"""One hub namespace as the caches and one live read show it, as a typed value.

Absent is not unreadable: only a live read of the project, or of the root where the whole Project is
gone, makes a source `GONE`; without one nothing may be concluded from a cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from compute_api_types import names
from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import ProjectNamespace, read_project_namespace
from compute_management_operator.planes import (
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    POLICY,
    PROJECT,
    ROOT,
)
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.keys import ObjectKey, Role, Uid
from compute_operator_kit.core.objects import Absent, Snapshot

CONTENTS = (DEPLOYMENT, INSTANCE, POLICY)


class SourceState(StrEnum):
    """The project namespace of a hub namespace."""

    LIVE = "live"
    TERMINATING = "terminating"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EmptyHubNamespace:
    """A hub namespace of ours without deployments, Instances and policies."""

    key: ObjectKey
    uid: Uid
    source: ObjectKey  # the project namespace, or the Project, that must not exist
    source_uid: Uid | None  # None: any object of that name counts as present


@dataclass(frozen=True, slots=True)
class ObservedNamespace:
    """The hub namespace, its source, and since when that is known to be gone."""

    namespace: EmptyHubNamespace
    state: SourceState
    gone_for: timedelta | None = None  # since the first live read that showed it; None: not gone
    are_many: bool = False  # so many sources of this plane are gone that the plane may be at fault


def find_empty(
    key: ObjectKey, caches: Caches, known: ProjectNamespace | None
) -> EmptyHubNamespace | None:
    """None where it is not ours, is being deleted, is not empty, or a cache is not complete.

    `known` is the project namespace of the UID, if remembered: labels that name another one are a
    conflict, which federation reports.
    """
    views = [caches.lister(HUB, kind) for kind in (NAMESPACE, *CONTENTS)]
    if not all(view.is_synced for view in views):
        return None
    entry = views[0].entry("", key.name)
    uid = names.parse_hub_namespace(key.name)
    place = None if entry is None else read_project_namespace(entry.metadata)
    if entry is None or place is None or uid is None or entry.metadata.is_deleting:
        return None
    if known is not None and known != place:
        return None
    if any(view.entries_by_index(indexes.NAMESPACE_OF, key.name) for view in views[1:]):
        return None
    source, source_uid = _derive_source(place, Uid(uid), caches)
    return EmptyHubNamespace(key, entry.metadata.uid, source, source_uid)


def _derive_source(
    place: ProjectNamespace, uid: Uid, caches: Caches
) -> tuple[ObjectKey, Uid | None]:
    """The project namespace, or the Project where no plane of that name is engaged."""
    if place.plane in caches.planes(Role.PROJECT):
        return ObjectKey(place.plane, NAMESPACE, "", place.namespace), uid
    return ObjectKey(ROOT, PROJECT, "", place.plane), None


def read_state(namespace: EmptyHubNamespace, existing: Snapshot | Absent) -> SourceState:
    """What a live read of the source shows."""
    if isinstance(existing, Absent):
        return SourceState.GONE
    if namespace.source_uid is None:
        # The Project exists and its plane is not engaged: its namespaces cannot be read.
        return SourceState.UNKNOWN
    if existing.metadata.uid != namespace.source_uid:
        return SourceState.GONE
    return SourceState.TERMINATING if existing.metadata.is_deleting else SourceState.LIVE
