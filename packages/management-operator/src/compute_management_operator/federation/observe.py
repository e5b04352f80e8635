"""Reads caches: one project deployment, its copy on the hub and all that decides about the two.

What no cache holds was asked before (`lookups.py`) and is handed in as `Fresh`. A deployment that
is gone may still have copies: then the copies are what is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from compute_api_types import labels, names
from compute_management_operator import hub_indexes
from compute_management_operator.episodes import NOTHING
from compute_management_operator.identities import Place, Standing, judge_standing
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, NAMESPACE, POLICY
from compute_management_operator.outlines import DEPLOYMENT_OUTLINE
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches, Entry
from compute_operator_kit.clock import ZERO
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.mass_delete import Held, Ruling
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.wire import (
    Encoded,
    JsonObject,
    JsonValue,
    member_object,
    member_text,
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A WorkloadDeployment, in the project or on the hub."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject = field(default_factory=dict)  # without its template
    status: JsonObject = field(default_factory=dict)
    whole_spec: JsonValue = None  # of the one in the project: what is copied, as it was served

    @property
    def city_code(self) -> str:
        """The city it asks for."""
        return member_text(self.spec, "cityCode")

    @property
    def routed_to(self) -> str:
        """The city it is routed to; of a copy only."""
        return hub_indexes.read_routing(self.metadata)


@dataclass(frozen=True, slots=True)
class Policy:
    """A live policy and the city it names."""

    key: ObjectKey
    code: str


NOT_RULED: Final = Held(0, 0, ZERO)


@dataclass(frozen=True, slots=True)
class Fresh:
    """What was asked right before the pass."""

    namespace: Uid | Absent | None = None  # of the project; None: nobody needed it
    hub_namespace: Metadata | Absent | None = None  # None: the cache will do
    has_left_over_binding: bool = False
    ruling: Ruling = NOT_RULED  # about orphans


@dataclass(frozen=True, slots=True)
class Known:
    """What this process remembers about the key."""

    since: Mapping[str, datetime] = field(default_factory=lambda: NOTHING)
    deleted_code: str = ""  # the city of a copy we have deleted
    repairs_left: int = 0  # how often the labels of a hub namespace may still be put back
    operator: ObjectKey | None = None  # where events about ourselves go


@dataclass(frozen=True, slots=True)
class Seen:
    """One project deployment at one moment."""

    key: ObjectKey
    deployment: Deployment | Absent
    hub_name: str  # of the hub namespace; "" while nobody knows it
    hub_namespace: Metadata | Absent
    copy: Deployment | Absent
    strays: tuple[Deployment, ...]  # copies that name this deployment from another hub namespace
    policies: tuple[Policy, ...]  # live ones in the hub namespace
    needed_by_others: frozenset[str]  # cities that other deployments of the namespace need
    serving_cells: tuple[str, ...] | Unreadable  # Clusters that carry its city
    holds_ours: bool  # the hub namespace holds a deployment that names our project and namespace
    fresh: Fresh = field(default_factory=Fresh)
    known: Known = field(default_factory=Known)

    @property
    def place(self) -> Place:
        return Place(self.key.plane, self.key.namespace)

    @property
    def copy_key(self) -> ObjectKey:
        return ObjectKey(HUB, DEPLOYMENT, self.hub_name, self.key.name)

    @property
    def hub_namespace_key(self) -> ObjectKey:
        return ObjectKey(HUB, NAMESPACE, "", self.hub_name)


def observe(key: ObjectKey, caches: Caches, fresh: Fresh, known: Known) -> Seen | None:
    """None where a cache cannot be believed."""
    found = caches.view(key.plane, DEPLOYMENT).get(key.namespace, key.name)
    if isinstance(found, Unreadable) or not _is_hub_readable(caches):
        return None
    deployment = found if isinstance(found, Absent) else _read_source(found)
    hub_name = derive_hub_name(deployment, fresh.namespace)
    hub_namespace = _hub_namespace(caches, hub_name, fresh)
    code = "" if isinstance(deployment, Absent) else deployment.city_code
    return Seen(
        key=key,
        deployment=deployment,
        hub_name=hub_name,
        hub_namespace=hub_namespace,
        copy=_copy(caches, hub_name, key.name),
        strays=tuple(_strays(caches, key, hub_name)),
        policies=tuple(_policies(caches, hub_name)),
        needed_by_others=_needed_by_others(caches, deployment, hub_name),
        serving_cells=find_serving_cells(caches, code),
        holds_ours=_holds_ours(caches, hub_namespace, Place(key.plane, key.namespace)),
        fresh=fresh,
        known=known,
    )


def read_deployment(snapshot: Snapshot) -> Deployment:
    body = DEPLOYMENT_OUTLINE.read(snapshot)
    spec, status = member_object(body, "spec"), member_object(body, "status")
    return Deployment(snapshot.key, snapshot.metadata, spec, status)


def _read_source(snapshot: Snapshot) -> Deployment:
    """What is copied, with its template, which nobody here looks into."""
    spec = snapshot.member("spec")
    return replace(read_deployment(snapshot), whole_spec=Encoded(spec or b"{}"))


def derive_hub_name(deployment: Deployment | Absent, namespace: Uid | Absent | None) -> str:
    """The hub namespace, "" where it cannot be told.

    Only a deployment that is going, in a namespace that is gone, is believed what it recorded: it
    can still be proven by the labels of that hub namespace.
    """
    if isinstance(namespace, str):
        return names.derive_hub_namespace(namespace)
    if not isinstance(namespace, Absent) or isinstance(deployment, Absent):
        return ""
    recorded = read_recorded(deployment)
    is_believed = deployment.metadata.is_deleting and names.parse_hub_namespace(recorded)
    return recorded if is_believed else ""


def read_recorded(deployment: Deployment) -> str:
    """The hub namespace written on a deployment; its owner can write anything there."""
    return deployment.metadata.annotations.get(labels.FEDERATION_NAMESPACE, "")


def find_copies(caches: Caches, key: ObjectKey) -> tuple[Entry, ...]:
    """Hub deployments that name this one as their source."""
    value = hub_indexes.join_identity(key.plane, key.namespace, key.name)
    return caches.view(HUB, DEPLOYMENT).entries_by_index(hub_indexes.IDENTITY, value)


def find_serving_cells(caches: Caches, code: str) -> tuple[str, ...] | Unreadable:
    """The Clusters that carry a city code, by name."""
    found = caches.view(HUB, CLUSTER).by_index(hub_indexes.CITY, code)
    return found if isinstance(found, Unreadable) else tuple(one.key.name for one in found)


def find_policies(caches: Caches, hub_name: str) -> Iterator[Policy]:
    """Live policies of ours in a hub namespace that bear a name of their city.

    Another one may name the city too, but whoever deletes it does not exclude who creates a copy.
    """
    view = caches.view(HUB, POLICY)
    for entry in view.entries_by_index(hub_indexes.NAMESPACE_OF, hub_name):
        code = hub_indexes.find_value(entry, hub_indexes.CODE)
        home = hub_indexes.derive_policy_home(entry.key.name, code)
        if home == hub_indexes.derive_base(code) and not entry.metadata.is_deleting:
            yield Policy(entry.key, code)


def _is_hub_readable(caches: Caches) -> bool:
    return all(caches.view(HUB, kind).is_synced for kind in (NAMESPACE, DEPLOYMENT, POLICY))


def _hub_namespace(caches: Caches, hub_name: str, fresh: Fresh) -> Metadata | Absent:
    if fresh.hub_namespace is not None:
        return fresh.hub_namespace
    entry = caches.view(HUB, NAMESPACE).entry("", hub_name)
    return Absent() if entry is None else entry.metadata


def _copy(caches: Caches, hub_name: str, name: str) -> Deployment | Absent:
    entry = caches.view(HUB, DEPLOYMENT).entry(hub_name, name)
    return Absent() if entry is None else read_deployment(entry.snapshot)


def _strays(caches: Caches, key: ObjectKey, hub_name: str) -> Iterator[Deployment]:
    for entry in find_copies(caches, key):
        if entry.key.namespace != hub_name:
            yield read_deployment(entry.snapshot)


def _policies(caches: Caches, hub_name: str) -> Iterable[Policy]:
    return find_policies(caches, hub_name) if hub_name else ()


def _needed_by_others(
    caches: Caches, deployment: Deployment | Absent, hub_name: str
) -> frozenset[str]:
    """Asked only where a deployment is going: a pass must not grow with its neighbours."""
    if isinstance(deployment, Absent) or not deployment.metadata.is_deleting:
        return frozenset()
    key = deployment.key
    asking = caches.view(key.plane, DEPLOYMENT)
    routed = caches.view(HUB, DEPLOYMENT)
    return frozenset(
        find_value(entry)
        for view, namespace, find_value in (
            (asking, key.namespace, _wanted_city),
            (routed, hub_name, _routed_city),
        )
        for entry in view.entries_by_index(hub_indexes.NAMESPACE_OF, namespace)
        if entry.key.name != key.name and not entry.metadata.is_deleting
    )


def _wanted_city(entry: Entry) -> str:
    return hub_indexes.find_value(entry, hub_indexes.CITY)


def _routed_city(entry: Entry) -> str:
    return hub_indexes.read_routing(entry.metadata)


def _holds_ours(caches: Caches, hub_namespace: Metadata | Absent, place: Place) -> bool:
    """Asked only where the hub namespace names somebody else."""
    if isinstance(hub_namespace, Absent):
        return False
    if judge_standing(hub_namespace, place) is not Standing.FOREIGN:
        return False
    view = caches.view(HUB, DEPLOYMENT)
    entries = view.entries_by_index(hub_indexes.NAMESPACE_OF, hub_namespace.name)
    return any(judge_standing(entry.metadata, place) is Standing.OURS for entry in entries)
