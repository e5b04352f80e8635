"""Says which policy keys a change concerns. Pure.

A key is (hub namespace, base name). Where the hub namespace of a project namespace is not known
yet, the key names the project namespace instead: a pass on it asks for the UID and wakes the right
one. A deployment that comes where the policy of its city lives already concerns nobody: it can only
need what is there, and whatever becomes of that policy is told by its own changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from compute_api_types import names
from compute_management_operator import hub_indexes
from compute_management_operator.federation.mapping import changed_cities
from compute_management_operator.identities import Place, read_project
from compute_management_operator.kinds import NAMESPACE, POLICY
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches, Change, Entry
from compute_operator_kit.keys import ObjectKey, Role, Uid

NOBODYS: Final = "@nobody"  # the queue of hub namespaces that name no project
_SUFFIX: Final = re.compile(r"-[0-9a-f]{8}")


def map_policy(change: Change, _: Caches) -> Iterator[ObjectKey]:
    """A policy of ours → the key of its name, and that of the city it may be the second name of."""
    name, namespace = change.key.name, change.key.namespace
    if not hub_indexes.is_policy_of_ours(namespace, name):
        return
    yield hub_key(namespace, name)
    if _SUFFIX.fullmatch(name[-9:]):
        yield hub_key(namespace, name[:-9])


def map_copy(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A copy → the cities it was and is routed to."""
    code = "" if change.after is None else hub_indexes.read_routing(change.after.metadata)
    for base in _news(change, lambda entry: hub_indexes.find_value(entry, hub_indexes.BASE)):
        namespace, _slash, name = base.partition("/")
        if names.parse_hub_namespace(namespace) is not None:
            key = hub_key(namespace, name)
            if not _finds_policy(change, caches, key, code):
                yield key


def map_deployment(
    change: Change, caches: Caches, find_uid: Callable[[Place], Uid | None]
) -> Iterator[ObjectKey]:
    """A project deployment → the cities it asked and asks for, in its hub namespace."""
    code = "" if change.after is None else hub_indexes.find_value(change.after, hub_indexes.CITY)
    place = Place(change.key.plane, change.key.namespace)
    uid = find_uid(place)
    for value in _news(change, lambda entry: hub_indexes.find_value(entry, hub_indexes.BASE)):
        base = value.partition("/")[2]
        if uid is None:
            yield ObjectKey(place.plane, POLICY, place.namespace, base)
        else:
            key = hub_key(names.derive_hub_namespace(uid), base)
            if not _finds_policy(change, caches, key, code):
                yield key


def _finds_policy(change: Change, caches: Caches, key: ObjectKey, code: str) -> bool:
    """Whether what changed is new and alive, and meets the living policy of its very city."""
    after = change.after
    if change.before is not None or after is None or after.metadata.is_deleting:
        return False
    if HUB not in caches.planes(Role.HUB):
        return False
    policy = caches.view(HUB, POLICY).entry(key.namespace, key.name)
    if policy is None or policy.metadata.is_deleting:
        return False
    return hub_indexes.find_value(policy, hub_indexes.CODE) == code


def map_cluster(change: Change, caches: Caches) -> Iterator[ObjectKey]:
    """A Cluster → the policies of the cities it began or ceased to carry."""
    view = caches.view(HUB, POLICY)
    for code in changed_cities(change):
        for entry in view.entries_by_index(hub_indexes.CODE, code):
            if hub_indexes.is_policy_of_ours(entry.key.namespace, entry.key.name):
                yield hub_key(entry.key.namespace, hub_indexes.derive_base(code))


def share_by_project(key: ObjectKey, caches: Caches) -> str:
    """A hub key queues with the project its hub namespace names."""
    if key.plane != HUB:
        return key.plane
    entry = caches.view(HUB, NAMESPACE).entry("", key.namespace)
    return (entry and read_project(entry.metadata)) or NOBODYS


def hub_key(namespace: str, base: str) -> ObjectKey:
    return ObjectKey(HUB, POLICY, namespace, base)


def _news(change: Change, value_of: Callable[[Entry], str]) -> Iterable[str]:
    """The values that a change is about: those of an object that came, went, began to go, or says
    something else now. What else happens to it concerns no policy.
    """
    before, after = change.before, change.after
    values = [value_of(entry) for entry in change.entries]
    if before is not None and after is not None:
        is_same = before.metadata.is_deleting == after.metadata.is_deleting
        is_same = is_same and before.metadata.uid == after.metadata.uid
        if is_same and values[0] == values[1]:
            return ()
    return dict.fromkeys(value for value in values if value)
