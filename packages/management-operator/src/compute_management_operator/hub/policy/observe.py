"""The policies of one base name in one hub namespace, and the cities that need one, from caches.

A city is needed if a live deployment on the hub is routed to it, or one of the source namespace in
the project asks for it. The source namespace is an argument, proven by its UID before. Where it
could not be read, no policy may be deleted: a deployment of the project may need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from compute_management_operator.hub import indexes
from compute_management_operator.hub.identity import IdentityMatch, ProjectNamespace, match_identity
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, NAMESPACE, POLICY
from compute_operator_kit.cache.store import CachedObject, Caches
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Metadata, Unreadable


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """The two selectors of a policy: which objects it takes, and to which clusters."""

    resource_selectors: tuple[Json, ...] = ()  # as served
    # The only resource selector without the namespace that the API server adds; None where there
    # are several, or it selects another namespace.
    only_selector: JsonObject | None = None
    cluster_selector_members: tuple[str, ...] = ()
    cluster_labels: tuple[str, ...] = ()  # keys that the cluster selector matches


@dataclass(frozen=True, slots=True)
class HubPolicy:
    """A policy with a name of the form of ours."""

    key: ObjectKey
    metadata: Metadata
    code: str  # the city it names; "" where it names none, or several
    scope: PolicyScope = field(default_factory=PolicyScope)

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def is_live(self) -> bool:
        return not self.metadata.is_deleting


@dataclass(frozen=True, slots=True)
class ObservedPolicies:
    """One (hub namespace, base name) at one moment."""

    key: ObjectKey
    may_create: bool  # the hub namespace is live and names no other project namespace
    routed: frozenset[str]  # cities of live hub deployments
    asked: frozenset[str] | Unreadable  # cities that live deployments of the project ask for
    policies: tuple[HubPolicy, ...]  # of this key, by name
    clusters: Mapping[str, tuple[str, ...]] | Unreadable  # city code → Clusters that carry it
    reported: Mapping[ObjectKey, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )  # Clusters that the last event about a policy named
    # Cities of copies with referenced data; None: it is not delivered, and no policy is about it.
    with_data: frozenset[str] | None = None

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
    place: ProjectNamespace | Absent | Unreadable,
    reported: Mapping[ObjectKey, tuple[str, ...]],
    *,
    delivers_data: bool = False,
) -> ObservedPolicies | None:
    """None where a cache is not complete, or the key is of no policy of ours."""
    if not indexes.is_policy_of_ours(key.namespace, key.name):
        return None
    views = [caches.lister(HUB, kind) for kind in (NAMESPACE, DEPLOYMENT, POLICY)]
    if not all(view.is_synced for view in views):
        return None
    hub_namespace = views[0].entry("", key.namespace)
    return ObservedPolicies(
        key=key,
        may_create=_may_create(None if hub_namespace is None else hub_namespace.metadata, place),
        routed=frozenset(_routed(key, caches)),
        asked=_asked(key, caches, place),
        policies=tuple(_policies(key, caches)),
        clusters=read_clusters(caches),
        reported=reported,
        with_data=frozenset(_with_data(key, caches)) if delivers_data else None,
    )


def _may_create(
    hub_namespace: Metadata | None, place: ProjectNamespace | Absent | Unreadable
) -> bool:
    """Whether a policy may be created in the hub namespace."""
    if hub_namespace is None or hub_namespace.is_deleting:
        return False
    # Its name proves the project namespace; labels that name another are a conflict, which
    # federation reports.
    return not isinstance(place, ProjectNamespace) or (
        match_identity(hub_namespace, place) is not IdentityMatch.FOREIGN
    )


def read_clusters(caches: Caches) -> Mapping[str, tuple[str, ...]] | Unreadable:
    """Which Clusters carry which city code, by name."""
    view = caches.lister(HUB, CLUSTER)
    if not view.is_synced:
        return Unreadable("NotSynced")
    return {
        code: tuple(entry.key.name for entry in view.entries_by_index(indexes.CITY, code))
        for code in view.index_values(indexes.CITY)
    }


def _routed(key: ObjectKey, caches: Caches) -> Iterator[str]:
    view = caches.lister(HUB, DEPLOYMENT)
    value = indexes.join_project_namespace(key.namespace, key.name)
    for entry in view.entries_by_index(indexes.BASE, value):
        if not entry.metadata.is_deleting:
            yield indexes.read_routing(entry.metadata)


def _with_data(key: ObjectKey, caches: Caches) -> Iterator[str]:
    """Cities with a live copy that states what data it expects."""
    view = caches.lister(HUB, DEPLOYMENT)
    value = indexes.join_project_namespace(key.namespace, key.name)
    for entry in view.entries_by_index(indexes.BASE, value):
        if not entry.metadata.is_deleting and indexes.has_data(entry.metadata):
            yield indexes.read_routing(entry.metadata)


def _asked(
    key: ObjectKey, caches: Caches, place: ProjectNamespace | Absent | Unreadable
) -> frozenset[str] | Unreadable:
    if isinstance(place, Unreadable):
        return place
    if isinstance(place, Absent):
        return frozenset()  # not engaged, or without a project: only the hub's copies count
    view = caches.lister(place.plane, DEPLOYMENT)
    if not view.is_synced:
        return Unreadable("NotSynced")
    value = indexes.join_project_namespace(place.namespace, key.name)
    entries = view.entries_by_index(indexes.BASE, value)
    return frozenset(
        indexes.find_value(entry, indexes.CITY)
        for entry in entries
        if not entry.metadata.is_deleting
    )


def _policies(key: ObjectKey, caches: Caches) -> Iterator[HubPolicy]:
    view = caches.lister(HUB, POLICY)
    for entry in view.entries_by_index(indexes.NAMESPACE_OF, key.namespace):
        code = indexes.find_value(entry, indexes.CODE)
        if entry.key.name.startswith("city-") and key.name in {
            entry.key.name,
            indexes.derive_policy_home(entry.key.name, code),
        }:
            yield _read_policy(entry, code)


def _read_policy(entry: CachedObject, code: str) -> HubPolicy:
    spec = member_object(entry.snapshot.read(), "spec")
    return HubPolicy(entry.key, entry.metadata, code, read_scope(spec, entry.key.namespace))


def read_scope(spec: JsonObject, namespace: str) -> PolicyScope:
    """The selectors of a policy in this namespace."""
    selectors = member_list(spec, "resourceSelectors")
    affinity = member_object(member_object(spec, "placement"), "clusterAffinity")
    cluster_selector = member_object(affinity, "labelSelector")
    return PolicyScope(
        tuple(selectors),
        _read_only_selector(selectors, namespace),
        tuple(cluster_selector),
        tuple(member_object(cluster_selector, "matchLabels")),
    )


def _read_only_selector(selectors: list[Json], namespace: str) -> JsonObject | None:
    only = selectors[0] if len(selectors) == 1 else None
    if not isinstance(only, dict) or only.get("namespace", namespace) != namespace:
        return None
    return {name: value for name, value in only.items() if name != "namespace"}
