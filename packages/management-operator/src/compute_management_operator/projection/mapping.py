"""Says which hub Instances a change concerns. Pure.

A key is a hub Instance. Where the hub namespace of a project namespace is not known yet, the key is
the project object itself, or, for all of a first list together, the project namespace: a pass on it
asks for the UID and wakes the right ones. What a first list tells of deployments concerns nobody:
engagement wakes every Instance of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compute_api_types import names
from compute_management_operator import hub_indexes
from compute_management_operator.federation.mapping import changed_cities
from compute_management_operator.identities import Place
from compute_management_operator.kinds import DEPLOYMENT, INSTANCE, NAMESPACE
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.keys import ObjectKey, PlaneName, Role, Uid


def map_instance(change: Change, find_uid: Callable[[Place], Uid | None]) -> Iterator[ObjectKey]:
    """A project Instance → the hub Instance of its name; until that can be told itself, and of a
    first list its namespace.
    """
    if names.parse_hub_namespace(change.key.namespace) is not None:
        return  # a hub copy, should planes share an API server
    uid = find_uid(Place(change.key.plane, change.key.namespace))
    if uid is not None:
        yield source_key(uid, change.key.name)
    elif change.is_initial:
        yield namespace_key(change.key)
    else:
        yield change.key


def map_deployment(
    change: Change, caches: Caches, find_uid: Callable[[Place], Uid | None]
) -> Iterator[ObjectKey]:
    """A project deployment → the hub Instances that name it; when it comes, goes, begins to go or
    changes its city or scale. What its status says concerns no Instance.
    """
    if change.is_initial or not _is_news(change):
        return
    if names.parse_hub_namespace(change.key.namespace) is not None:
        return
    uid = find_uid(Place(change.key.plane, change.key.namespace))
    if uid is None:
        yield change.key
    else:
        yield from sources_of(uid, change.key.name, caches)


def map_hub_namespace(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A hub namespace → its Instances."""
    view = caches.view(HUB, INSTANCE)
    for entry in view.entries_by_index(hub_indexes.NAMESPACE_OF, change.key.name):
        yield entry.key


def map_cluster(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Cluster → the Instances labelled with it, when its city changes."""
    if not changed_cities(change):
        return
    view = caches.view(HUB, INSTANCE)
    for entry in view.entries_by_index(hub_indexes.CELL, change.key.name):
        yield entry.key


def wake_instances(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """Every Instance of a project that was engaged."""
    if plane not in caches.planes(Role.PROJECT) or HUB not in caches.planes(Role.HUB):
        return
    for entry in caches.view(HUB, INSTANCE).entries_by_index(hub_indexes.PROJECT, plane):
        yield entry.key


def resolve(key: ObjectKey, uid: Uid, caches: Caches) -> Iterator[ObjectKey]:
    """The hub Instances that a project object concerns, now that the UID is known; of a namespace
    those that are gone and still shown there.
    """
    if key.kind == NAMESPACE:
        sources = caches.view(HUB, INSTANCE)
        for shown in caches.view(key.plane, INSTANCE).entries_by_index(
            hub_indexes.NAMESPACE_OF, key.name
        ):
            source = source_key(uid, shown.key.name)
            if sources.entry(source.namespace, source.name) is None:
                yield source
    elif key.kind == DEPLOYMENT:
        yield from sources_of(uid, key.name, caches)
    else:
        yield source_key(uid, key.name)


def sources_of(uid: Uid, deployment: str, caches: Caches) -> Iterator[ObjectKey]:
    value = hub_indexes.join_place(names.derive_hub_namespace(uid), deployment)
    for entry in caches.view(HUB, INSTANCE).entries_by_index(hub_indexes.OWNER, value):
        yield entry.key


def namespace_key(key: ObjectKey) -> ObjectKey:
    return ObjectKey(key.plane, NAMESPACE, "", key.namespace)


def place_of(key: ObjectKey) -> Place:
    """The project namespace that a key of a project object is about."""
    return Place(key.plane, key.name if key.kind == NAMESPACE else key.namespace)


def source_key(uid: Uid, name: str) -> ObjectKey:
    return ObjectKey(HUB, INSTANCE, names.derive_hub_namespace(uid), name)


def _is_news(change: Change) -> bool:
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    is_same = before.metadata.uid == after.metadata.uid
    is_same = is_same and before.metadata.is_deleting == after.metadata.is_deleting
    read = hub_indexes.find_value
    compared = (hub_indexes.CITY, hub_indexes.SCALE)
    return not is_same or any(read(before, name) != read(after, name) for name in compared)
