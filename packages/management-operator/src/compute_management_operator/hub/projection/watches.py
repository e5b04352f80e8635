"""Which hub Instances a changed object enqueues. Pure.

A key is a hub Instance. While the hub namespace of a project namespace is unknown, the key is the
project object itself, or, for all objects of a first list, the project namespace: its reconcile
reads the UID and enqueues the hub Instances. Deployments of a first list enqueue nothing, since the
engagement of their project enqueues every Instance: each would be enqueued twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compute_api_types import names
from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.watches import changed_cities
from compute_management_operator.planes import DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role, Uid


def map_instance(
    change: Change, find_uid: Callable[[ProjectNamespace], Uid | None]
) -> Iterator[ObjectKey]:
    """A project Instance → the hub Instance of its name; while that is unknown the Instance itself,
    or its namespace for a first list.
    """
    if names.parse_hub_namespace(change.key.namespace) is not None:
        return  # a hub copy, should planes share an API server
    uid = find_uid(ProjectNamespace(change.key.plane, change.key.namespace))
    if uid is not None:
        yield source_key(uid, change.key.name)
    elif change.is_initial:
        yield namespace_key(change.key)
    else:
        yield change.key


def map_deployment(
    change: Change, caches: Caches, find_uid: Callable[[ProjectNamespace], Uid | None]
) -> Iterator[ObjectKey]:
    """A project deployment → the hub Instances that name it, when it is created or deleted, is
    being deleted, or changes its city or scale. Its status concerns no Instance.
    """
    if change.is_initial or not _concerns_instances(change):
        return
    if names.parse_hub_namespace(change.key.namespace) is not None:
        return
    uid = find_uid(ProjectNamespace(change.key.plane, change.key.namespace))
    if uid is None:
        yield change.key
    else:
        yield from sources_of(uid, change.key.name, caches)


def map_hub_namespace(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A hub namespace → its Instances."""
    view = caches.lister(HUB, INSTANCE)
    for entry in view.entries_by_index(indexes.NAMESPACE_OF, change.key.name):
        yield entry.key


def map_cluster(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Cluster → the Instances labelled with it, when its city changes."""
    if not changed_cities(change):
        return
    view = caches.lister(HUB, INSTANCE)
    for entry in view.entries_by_index(indexes.CELL, change.key.name):
        yield entry.key


def enqueue_instances(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """Every Instance of a project that was engaged."""
    if plane not in caches.planes(Role.PROJECT) or HUB not in caches.planes(Role.HUB):
        return
    for entry in caches.lister(HUB, INSTANCE).entries_by_index(indexes.PROJECT, plane):
        yield entry.key


def resolve(key: ObjectKey, uid: Uid, caches: Caches) -> Iterator[ObjectKey]:
    """The hub Instances of a project object, now that the UID is known; of a namespace those that
    do not exist and still have a projection.
    """
    if key.kind == NAMESPACE:
        sources = caches.lister(HUB, INSTANCE)
        for shown in caches.lister(key.plane, INSTANCE).entries_by_index(
            indexes.NAMESPACE_OF, key.name
        ):
            source = source_key(uid, shown.key.name)
            if sources.entry(source.namespace, source.name) is None:
                yield source
    elif key.kind == DEPLOYMENT:
        yield from sources_of(uid, key.name, caches)
    else:
        yield source_key(uid, key.name)


def sources_of(uid: Uid, deployment: str, caches: Caches) -> Iterator[ObjectKey]:
    value = indexes.join_project_namespace(names.derive_hub_namespace(uid), deployment)
    for entry in caches.lister(HUB, INSTANCE).entries_by_index(indexes.OWNER, value):
        yield entry.key


def namespace_key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(key.plane, NAMESPACE, "", key.namespace)


def project_namespace_of(key: ObjectKey) -> ProjectNamespace:
    """The project namespace that a key of a project object is about."""
    return ProjectNamespace(key.plane, key.name if key.kind == NAMESPACE else key.namespace)


def source_key(uid: Uid, name: str) -> ObjectKey:
    return ObjectKey(HUB, INSTANCE, names.derive_hub_namespace(uid), name)


def _concerns_instances(change: Change) -> bool:
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    is_same = before.metadata.uid == after.metadata.uid
    is_same = is_same and before.metadata.is_deleting == after.metadata.is_deleting
    read = indexes.find_value
    compared = (indexes.CITY, indexes.SCALE)
    return not is_same or any(read(before, name) != read(after, name) for name in compared)
