"""Which ConfigMaps and Secrets of projects a changed object enqueues. Pure.

Keys are of objects in projects, also for changes on the hub, so that one key has all that decides
about one companion.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_management_operator.hub import indexes
from compute_management_operator.hub.federation.watches import find_source
from compute_management_operator.hub.identity import ProjectNamespace, read_project_namespace
from compute_management_operator.hub.referenced_data.observe import find_naming
from compute_management_operator.hub.referenced_data.references import (
    IN_NAMESPACE,
    KIND_BY_NAME,
    KINDS,
    read_references,
)
from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE
from compute_operator_kit.cache.store import CachedObject, Caches, Change
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role


def map_source(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A ConfigMap or Secret that a template names → itself."""
    if any(True for _ in find_naming(change.key, caches)):
        yield change.key


def map_deployment(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """A project deployment → what its template named and names, where that may have changed."""
    before, after = change.before, change.after
    if before is not None and after is not None:
        is_going = before.metadata.is_deleting != after.metadata.is_deleting
        if not is_going and read_references(before) == read_references(after):
            return
    yield from dict.fromkeys(key for entry in change.entries for key in _named(entry))


def map_copy(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A copy that appeared, is being deleted or is gone → what the template of its source names."""
    before, after = change.before, change.after
    if before is not None and after is not None:
        was, now = before.metadata, after.metadata
        if (was.uid, was.is_deleting) == (now.uid, now.is_deleting):
            return
    for entry in change.entries[:1]:
        source = find_source(entry, caches)
        if isinstance(source, ObjectKey):
            deployments = caches.lister(source.plane, DEPLOYMENT)
            deployment = deployments.entry(source.namespace, source.name)
            if deployment is not None:
                yield from _named(deployment)


def map_companion(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A companion → its source, in the project namespace that its hub namespace names."""
    place = _find_place(change.key.namespace, caches)
    if place is not None and place.plane in caches.planes(Role.PROJECT):
        yield ObjectKey(place.plane, change.key.kind, place.namespace, change.key.name)


def enqueue_references(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """All that the templates of a project name, and what is on the hub for it."""
    if plane not in caches.planes(Role.PROJECT):
        return
    keys: dict[ObjectKey, None] = {}
    deployments = caches.lister(plane, DEPLOYMENT)
    for namespace in deployments.index_values(indexes.NAMESPACE_OF):
        for entry in deployments.entries_by_index(indexes.NAMESPACE_OF, namespace):
            keys.update(dict.fromkeys(_named(entry)))
    keys.update(dict.fromkeys(_delivered(plane, caches)))
    yield from keys


def _delivered(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    if HUB not in caches.planes(Role.HUB):
        return
    for namespace in caches.lister(HUB, NAMESPACE).entries_by_index(indexes.PROJECT, plane):
        place = read_project_namespace(namespace.metadata)
        if place is None:
            continue
        for kind in KINDS:
            companions = caches.lister(HUB, kind)
            for entry in companions.entries_by_index(IN_NAMESPACE, namespace.key.name):
                yield ObjectKey(plane, kind, place.namespace, entry.key.name)


def _named(entry: CachedObject) -> Iterator[ObjectKey]:
    for one in read_references(entry):
        yield ObjectKey(entry.key.plane, KIND_BY_NAME[one.kind], entry.key.namespace, one.name)


def _find_place(hub_name: str, caches: Caches) -> ProjectNamespace | None:
    entry = caches.lister(HUB, NAMESPACE).entry("", hub_name)
    return None if entry is None else read_project_namespace(entry.metadata)
