"""Reads caches: the policies of one base name in one hub namespace, and who needs them.

Needed is a city that a live deployment on the hub is routed to, or that a live deployment of the
project namespace behind asks for. Which project namespace that is was proven before by its UID
and is handed in; where it could not be read, nothing may be concluded about what is *not* needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from compute_management_operator import hub_indexes
from compute_management_operator.identities import Place, Standing, judge_standing
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, NAMESPACE, POLICY
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches, Entry
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.objects import Absent, Metadata, Unreadable
from compute_operator_kit.wire import JsonObject, member_object


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that bears a name of ours."""

    key: ObjectKey
    metadata: Metadata
    code: str  # the city it names; "" where it names none, or several
    spec: JsonObject = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def is_live(self) -> bool:
        return not self.metadata.is_deleting


@dataclass(frozen=True, slots=True)
class Seen:
    """One (hub namespace, base name) at one moment."""

    key: ObjectKey
    may_create: bool  # the hub namespace lives and names nobody else
    routed: frozenset[str]  # cities of live hub deployments
    asked: frozenset[str] | Unreadable  # cities that live deployments of the project ask for
    policies: tuple[Policy, ...]  # by name; those that belong to this key
    clusters: Mapping[str, tuple[str, ...]] | Unreadable  # city code → Clusters that carry it
    told: Mapping[ObjectKey, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )  # Clusters that were named in the last event about a policy

    @property
    def base(self) -> str:
        return self.key.name

    @property
    def needed(self) -> tuple[str, ...]:
        """Cities that need a policy, ascending."""
        asked = frozenset[str]() if isinstance(self.asked, Unreadable) else self.asked
        return tuple(sorted(self.routed | asked))


def observe(
    key: ObjectKey,
    caches: Caches,
    place: Place | Absent | Unreadable,
    told: Mapping[ObjectKey, tuple[str, ...]],
) -> Seen | None:
    """None where a cache cannot be believed, or the key is of no policy that we make."""
    if not hub_indexes.is_policy_of_ours(key.namespace, key.name):
        return None
    views = [caches.view(HUB, kind) for kind in (NAMESPACE, DEPLOYMENT, POLICY)]
    if not all(view.is_synced for view in views):
        return None
    around = views[0].entry("", key.namespace)
    return Seen(
        key=key,
        may_create=_may_create(None if around is None else around.metadata, place),
        routed=frozenset(_routed(key, caches)),
        asked=_asked(key, caches, place),
        policies=tuple(_policies(key, caches)),
        clusters=read_clusters(caches),
        told=told,
    )


def _may_create(around: Metadata | None, place: Place | Absent | Unreadable) -> bool:
    """Whether something may be written into the hub namespace."""
    if around is None or around.is_deleting:
        return False
    # Its name proves the project namespace; labels of somebody else are a conflict, which
    # federation holds and tells.
    return not isinstance(place, Place) or (judge_standing(around, place) is not Standing.FOREIGN)


def read_clusters(caches: Caches) -> Mapping[str, tuple[str, ...]] | Unreadable:
    """Which Clusters carry which city code, by name."""
    view = caches.view(HUB, CLUSTER)
    if not view.is_synced:
        return Unreadable("NotSynced")
    return {
        code: tuple(entry.key.name for entry in view.entries_by_index(hub_indexes.CITY, code))
        for code in view.index_values(hub_indexes.CITY)
    }


def _routed(key: ObjectKey, caches: Caches) -> Iterator[str]:
    view = caches.view(HUB, DEPLOYMENT)
    value = hub_indexes.join_place(key.namespace, key.name)
    for entry in view.entries_by_index(hub_indexes.BASE, value):
        if not entry.metadata.is_deleting:
            yield hub_indexes.read_routing(entry.metadata)


def _asked(
    key: ObjectKey, caches: Caches, place: Place | Absent | Unreadable
) -> frozenset[str] | Unreadable:
    if isinstance(place, Unreadable):
        return place
    if isinstance(place, Absent):
        return frozenset()  # not engaged, or nobody's: the hub alone decides
    view = caches.view(place.plane, DEPLOYMENT)
    if not view.is_synced:
        return Unreadable("NotSynced")
    value = hub_indexes.join_place(place.namespace, key.name)
    entries = view.entries_by_index(hub_indexes.BASE, value)
    return frozenset(
        hub_indexes.find_value(entry, hub_indexes.CITY)
        for entry in entries
        if not entry.metadata.is_deleting
    )


def _policies(key: ObjectKey, caches: Caches) -> Iterator[Policy]:
    view = caches.view(HUB, POLICY)
    for entry in view.entries_by_index(hub_indexes.NAMESPACE_OF, key.namespace):
        code = hub_indexes.find_value(entry, hub_indexes.CODE)
        if entry.key.name.startswith("city-") and key.name in {
            entry.key.name,
            hub_indexes.derive_policy_home(entry.key.name, code),
        }:
            yield _read_policy(entry, code)


def _read_policy(entry: Entry, code: str) -> Policy:
    spec = member_object(entry.snapshot.read(), "spec")
    return Policy(entry.key, entry.metadata, code, spec)
