"""Which policy keys a changed object enqueues. Pure.

A key is (hub namespace, base name). While the hub namespace of a project namespace is unknown, the
key names the project namespace instead: its reconcile reads the UID and enqueues the key on the
hub. A new deployment in a city with a live policy enqueues nothing: the policy exists, and its own
changes enqueue its key. Without that exception each new deployment costs one more reconcile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from compute_api_types import names
from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.watches import changed_cities
from compute_management_operator.planes import HUB, POLICY
from compute_operator_kit.cache.store import CachedObject, Caches, Change
from compute_operator_kit.core.keys import ObjectKey, Role, Uid

_SUFFIX: Final = re.compile(r"-[0-9a-f]{8}")


def map_policy(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """A policy of ours → the key of its name, and that of the city it may be the second name of."""
    name, namespace = change.key.name, change.key.namespace
    if not indexes.is_policy_of_ours(namespace, name):
        return
    yield hub_key(namespace, name)
    if _SUFFIX.fullmatch(name[-9:]):
        yield hub_key(namespace, name[:-9])


def map_copy(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A copy → the cities it was and is routed to."""
    code = "" if change.after is None else indexes.read_routing(change.after.metadata)
    has_moved = _has_data(change.before) != _has_data(change.after)
    values = _bases(change) if has_moved else _changed_values(change, _base_of)
    for base in values:
        namespace, _slash, name = base.partition("/")
        if names.parse_hub_namespace(namespace) is not None:
            key = hub_key(namespace, name)
            if has_moved or not _has_policy(change, caches, key, code):
                yield key


def map_deployment(
    change: Change, caches: Caches, find_uid: Callable[[ProjectNamespace], Uid | None]
) -> Iterator[ObjectKey]:
    """A project deployment → the cities it asked and asks for, in its hub namespace."""
    code = "" if change.after is None else indexes.find_value(change.after, indexes.CITY)
    place = ProjectNamespace(change.key.plane, change.key.namespace)
    uid = find_uid(place)
    for value in _changed_values(change, _base_of):
        base = value.partition("/")[2]
        if uid is None:
            yield ObjectKey(place.plane, POLICY, place.namespace, base)
        else:
            key = hub_key(names.derive_hub_namespace(uid), base)
            if not _has_policy(change, caches, key, code):
                yield key


def _has_policy(change: Change, caches: Caches, key: ObjectKey, code: str) -> bool:
    """Whether the changed object is new and live, and a live policy of its city exists."""
    after = change.after
    if change.before is not None or after is None or after.metadata.is_deleting:
        return False
    if HUB not in caches.planes(Role.HUB):
        return False
    policy = caches.lister(HUB, POLICY).entry(key.namespace, key.name)
    if policy is None or policy.metadata.is_deleting:
        return False
    return indexes.find_value(policy, indexes.CODE) == code


def map_cluster(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Cluster → the policies of the cities it began or ceased to carry."""
    view = caches.lister(HUB, POLICY)
    for code in changed_cities(change):
        for entry in view.entries_by_index(indexes.CODE, code):
            if indexes.is_policy_of_ours(entry.key.namespace, entry.key.name):
                yield hub_key(entry.key.namespace, indexes.derive_base(code))


def hub_key(namespace: str, base: str) -> ObjectKey:
    return ObjectKey(HUB, POLICY, namespace, base)


def _has_data(entry: CachedObject | None) -> bool:
    return entry is not None and indexes.has_data(entry.metadata)


def _bases(change: Change) -> Iterable[str]:
    return dict.fromkeys(base for entry in change.entries if (base := _base_of(entry)))


def _base_of(entry: CachedObject) -> str:
    return indexes.find_value(entry, indexes.BASE)


def _changed_values(change: Change, value_of: Callable[[CachedObject], str]) -> Iterable[str]:
    """The values before and after a change, of an object that was created or deleted, is being
    deleted, or has another value now; none after any other change.
    """
    before, after = change.before, change.after
    values = [value_of(entry) for entry in change.entries]
    if before is not None and after is not None:
        is_same = before.metadata.is_deleting == after.metadata.is_deleting
        is_same = is_same and before.metadata.uid == after.metadata.uid
        if is_same and values[0] == values[1]:
            return ()
    return dict.fromkeys(value for value in values if value)
