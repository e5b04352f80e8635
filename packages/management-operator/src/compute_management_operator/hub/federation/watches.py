"""Which project deployments a changed object, on a project or on the hub, enqueues. Pure.

A hub object names its project by labels; where its own are missing, those of its namespace count. A
change without a project is counted and is no error: when the project is engaged, all of its objects
are listed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from compute_api_types import labels
from compute_management_operator.discovery.observe import read_suspension
from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import read_namespace, read_project
from compute_management_operator.hub.watches import changed_cities
from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE
from compute_operator_kit.cache.store import CachedObject, Caches, Change
from compute_operator_kit.controller.spec import DroppedChange
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role

NO_NAMESPACE: Final = DroppedChange("no_namespace")
NO_PROJECT: Final = DroppedChange("no_project")
NOT_ENGAGED: Final = DroppedChange("not_engaged")


def map_copy(change: Change, caches: Caches) -> Iterable[ObjectKey | DroppedChange]:
    """A copy → the deployment it is a copy of."""
    return dict.fromkeys(find_source(entry, caches) for entry in change.entries)


def concerns_copy(change: Change) -> bool:
    """Whether a project deployment may differ from its copy now; its status is not copied."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    was, now = before.metadata, after.metadata
    return (was.generation, was.is_deleting, was.annotations) != (
        now.generation,
        now.is_deleting,
        now.annotations,
    )


def map_hub_namespace(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A hub namespace → the deployments that recorded it, in the projects of its labels before and
    after.
    """
    for plane in _named_projects(change.entries, caches):
        view = caches.lister(plane, DEPLOYMENT)
        for entry in view.entries_by_index(indexes.RECORDED, change.key.name):
            yield entry.key


def map_policy(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A policy → the deployments of its city with copies in its namespace."""
    if not concerns_city(change):
        return
    codes = {indexes.find_value(entry, indexes.CODE) for entry in change.entries}
    hub_namespace = caches.lister(HUB, NAMESPACE).entry("", change.key.namespace)
    for plane in _named_projects(() if hub_namespace is None else (hub_namespace,), caches):
        view = caches.lister(plane, DEPLOYMENT)
        for entry in view.entries_by_index(indexes.RECORDED, change.key.namespace):
            if indexes.find_value(entry, indexes.CITY) in codes:
                yield entry.key


def concerns_city(change: Change) -> bool:
    """Whether a policy was created or deleted, is being deleted, or names another city."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    if before.metadata.is_deleting != after.metadata.is_deleting:
        return True
    return indexes.find_value(before, indexes.CODE) != indexes.find_value(after, indexes.CODE)


def map_cluster(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Cluster → the deployments of its city before and after; none for a heartbeat."""
    for code in changed_cities(change):
        for plane in caches.planes(Role.PROJECT):
            view = caches.lister(plane, DEPLOYMENT)
            for entry in view.entries_by_index(indexes.CITY, code):
                yield entry.key


def find_deployments_of_cell(cell: str, city: str, caches: Caches) -> Iterator[ObjectKey]:
    """The deployments that a cell has reported, and those of its city, which may wait for it."""
    copies = caches.lister(HUB, DEPLOYMENT).entries_by_index(indexes.REPORTED_BY, cell)
    reported = (find_source(entry, caches) for entry in copies)
    waiting = (
        entry.key
        for plane in (caches.planes(Role.PROJECT) if city else ())
        for entry in caches.lister(plane, DEPLOYMENT).entries_by_index(indexes.CITY, city)
    )
    keys = dict.fromkeys((*reported, *waiting))
    yield from (key for key in keys if isinstance(key, ObjectKey))


def map_project(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Project whose suspension changed → all its deployments. One that is seen for the first time
    → those with a copy that is suspended: it may have resumed while no process watched.
    """
    plane = PlaneName(change.key.name)
    if change.after is None or plane not in caches.planes(Role.PROJECT):
        return
    was, now = read_suspension(change.before), read_suspension(change.after)
    if was != now:
        yield from enqueue_deployments(plane, caches)
    elif change.before is None and HUB in caches.planes(Role.HUB):
        yield from _enqueue_copies(plane, caches, only_suspended=True)


def enqueue_deployments(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """All deployments of a project, and the keys of copies that have none any more."""
    if plane not in caches.planes(Role.PROJECT):
        return
    deployments = caches.lister(plane, DEPLOYMENT)
    for namespace in deployments.index_values(indexes.NAMESPACE_OF):
        for entry in deployments.entries_by_index(indexes.NAMESPACE_OF, namespace):
            yield entry.key
    if HUB in caches.planes(Role.HUB):
        yield from _enqueue_copies(plane, caches)


def _enqueue_copies(
    plane: PlaneName, caches: Caches, *, only_suspended: bool = False
) -> Iterator[ObjectKey]:
    copies = caches.lister(HUB, DEPLOYMENT)
    for namespace in caches.lister(HUB, NAMESPACE).entries_by_index(indexes.PROJECT, plane):
        for entry in copies.entries_by_index(indexes.NAMESPACE_OF, namespace.key.name):
            if only_suspended and labels.SUSPENDED not in entry.metadata.annotations:
                continue
            source = find_source(entry, caches)
            if isinstance(source, ObjectKey) and source.plane == plane:
                yield source


def _named_projects(entries: Iterable[CachedObject], caches: Caches) -> tuple[PlaneName, ...]:
    """The projects that hub namespaces name; all projects where one names none.

    A hub namespace that names another project than its own is a conflict, which the deployments in
    conflict read again after `IDENTITY_RETRY`.
    """
    engaged = caches.planes(Role.PROJECT)
    named = {read_project(entry.metadata) for entry in entries}
    if not named or None in named:
        return engaged
    return tuple(plane for plane in engaged if plane in named)


def find_source(entry: CachedObject, caches: Caches) -> ObjectKey | DroppedChange:
    """The deployment of a copy, by its own labels or else by those of its namespace."""
    hub_namespace = caches.lister(HUB, NAMESPACE).entry("", entry.key.namespace)
    outer = None if hub_namespace is None else hub_namespace.metadata
    project = read_project(entry.metadata) or (outer and read_project(outer))
    namespace = read_namespace(entry.metadata) or (read_namespace(outer) if outer else "")
    if not project:
        return NO_PROJECT
    if not namespace:
        return NO_NAMESPACE
    if project not in caches.planes(Role.PROJECT):
        return NOT_ENGAGED
    return ObjectKey(project, DEPLOYMENT, namespace, entry.key.name)
