"""One project deployment, its copy on the hub and all that decides about the two, from caches.

Facts that no cache holds are read before (`live_reads`) and given as `FederationLiveFacts`. Of a
deployment that does not exist any more the copies are observed: a stripped finalizer would leave
them on the hub for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from compute_api_types import conditions, labels, names
from compute_management_operator.discovery.observe import observe_suspension
from compute_management_operator.hub import indexes
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER
from compute_management_operator.hub.federation.source_spec import read_source_spec
from compute_management_operator.hub.hearing.verdicts import NOT_JUDGED, Hearing
from compute_management_operator.hub.identity import IdentityMatch, ProjectNamespace, match_identity
from compute_management_operator.hub.referenced_data.expectation import DataExpectation
from compute_management_operator.hub.wait_tracker import NOTHING
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, NAMESPACE, POLICY
from compute_management_operator.stored_status import NO_STATUS, StoredStatus, read_status
from compute_operator_kit.cache.store import CachedObject, Caches
from compute_operator_kit.controller.mass_delete import RemovalHeld, Ruling
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.json import (
    JsonObject,
    JsonValue,
    member_int,
    member_object,
)
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """The status of a WorkloadDeployment, in the project or on the hub."""

    stored: StoredStatus = NO_STATUS
    observed_generation: int = 0
    template_uid: str | None = None  # the deployment it is about; None from older cells
    reporting_cells: tuple[str, ...] | None = None  # None without the interpreter's condition


NO_DEPLOYMENT_STATUS: Final = DeploymentStatus()


@dataclass(frozen=True, slots=True)
class ProjectDeployment:
    """A WorkloadDeployment, in the project or on the hub."""

    key: ObjectKey
    metadata: Metadata
    city_code: str = ""  # the city it asks for
    scale: int = 0  # replicas it asks for
    status: DeploymentStatus = NO_DEPLOYMENT_STATUS
    whole_spec: JsonValue = None  # in the project: copied as it was served, with the template
    refusal: str = ""  # in the project: why the spec cannot be delivered

    @property
    def routed_to(self) -> str:
        """The city that a copy is routed to."""
        return indexes.read_routing(self.metadata)


@dataclass(frozen=True, slots=True)
class CopyPolicy:
    """A live policy and the city it names."""

    key: ObjectKey
    code: str


NOT_RULED: Final = RemovalHeld(0, 0, ZERO)


@dataclass(frozen=True, slots=True)
class FederationLiveFacts:
    """Facts from live reads right before the reconcile."""

    namespace: Uid | Absent | None = None  # UID of the project namespace; None: not needed
    hub_namespace: Metadata | Absent | None = None  # None: the cache is enough
    has_left_over_binding: bool = False
    ruling: Ruling = NOT_RULED  # about orphans
    data: DataExpectation | None = None  # None: referenced data is not delivered


@dataclass(frozen=True, slots=True)
class FederationMemory:
    """What this process remembers about the key."""

    since: Mapping[str, datetime] = field(default_factory=lambda: NOTHING)
    deleted_code: str = ""  # the city of a copy that this process has deleted
    repairs_left: int = 0  # how often the labels of a hub namespace may still be repaired
    operator: ObjectKey | None = None  # the operator's own Deployment, for events about itself
    hearing: Hearing = NOT_JUDGED  # which cells are heard


@dataclass(frozen=True, slots=True)
class ObservedDeployment:
    """One project deployment at one moment."""

    key: ObjectKey
    deployment: ProjectDeployment | Absent
    hub_name: str  # of the hub namespace; "" while it is unknown
    hub_namespace: Metadata | Absent
    copy: ProjectDeployment | Absent
    # Copies that name this deployment from another hub namespace.
    strays: tuple[ObjectKey, ...]
    policies: tuple[CopyPolicy, ...]  # live ones in the hub namespace
    needed_by_others: frozenset[str]  # cities that other deployments of the namespace need
    serving_cells: tuple[str, ...] | Unreadable  # Clusters that carry its city
    holds_ours: bool  # the hub namespace holds a deployment that names our project and namespace
    is_project_suspended: bool | None = False  # None: the root does not show it
    live: FederationLiveFacts = field(default_factory=FederationLiveFacts)
    known: FederationMemory = field(default_factory=FederationMemory)

    @property
    def project_namespace(self) -> ProjectNamespace:
        return ProjectNamespace(self.key.plane, self.key.namespace)

    @property
    def copy_key(self) -> ObjectKey:
        return ObjectKey(HUB, DEPLOYMENT, self.hub_name, self.key.name)

    @property
    def hub_namespace_key(self) -> ObjectKey:
        return ObjectKey(HUB, NAMESPACE, "", self.hub_name)


def observe(
    key: ObjectKey, caches: Caches, live: FederationLiveFacts, known: FederationMemory
) -> ObservedDeployment | None:
    """None where a cache is not complete."""
    existing = caches.lister(key.plane, DEPLOYMENT).get(key.namespace, key.name)
    if isinstance(existing, Unreadable) or not _is_hub_readable(caches):
        return None
    deployment = existing if isinstance(existing, Absent) else _read_source(existing)
    hub_name = derive_hub_name(deployment, live.namespace)
    hub_namespace = _hub_namespace(caches, hub_name, live)
    code = "" if isinstance(deployment, Absent) else deployment.city_code
    return ObservedDeployment(
        key=key,
        deployment=deployment,
        hub_name=hub_name,
        hub_namespace=hub_namespace,
        copy=_copy(caches, hub_name, key.name),
        strays=tuple(_strays(caches, key, hub_name)),
        policies=tuple(_policies(caches, hub_name)),
        needed_by_others=_needed_by_others(caches, deployment, hub_name),
        serving_cells=find_serving_cells(caches, code),
        holds_ours=_holds_ours(caches, hub_namespace, ProjectNamespace(key.plane, key.namespace)),
        is_project_suspended=observe_suspension(caches, key.plane),
        live=live,
        known=known,
    )


def read_deployment(snapshot: Snapshot) -> ProjectDeployment:
    body = DEPLOYMENT_DECODER.read(snapshot)
    return ProjectDeployment(
        snapshot.key,
        snapshot.metadata,
        indexes.read_city(body),
        indexes.read_scale(body),
        read_deployment_status(member_object(body, "status")),
    )


def read_without_status(snapshot: Snapshot) -> ProjectDeployment:
    """For the live reads, which need the metadata and the city alone."""
    city = indexes.read_city(DEPLOYMENT_DECODER.read(snapshot))
    return ProjectDeployment(snapshot.key, snapshot.metadata, city)


def read_deployment_status(status: JsonObject) -> DeploymentStatus:
    if not status:
        return NO_DEPLOYMENT_STATUS
    stored, template_uid = read_status(status), status.get("observedTemplateUID")
    reporting = conditions.find(stored.conditions, conditions.CELLS_REPORTING)
    return DeploymentStatus(
        stored,
        member_int(status, "observedGeneration"),
        template_uid if isinstance(template_uid, str) else None,
        indexes.reporting_cells(reporting),
    )


def _read_source(snapshot: Snapshot) -> ProjectDeployment:
    """The deployment in the project, with its spec as it is copied."""
    spec = read_source_spec(bytes(snapshot.member("spec")))
    return replace(read_deployment(snapshot), whole_spec=spec.document, refusal=spec.refusal)


def derive_hub_name(deployment: ProjectDeployment | Absent, namespace: Uid | Absent | None) -> str:
    """The hub namespace; "" where it is unknown.

    The recorded one is used only for a deployment that is being deleted in a namespace that does
    not exist any more: the labels of that hub namespace can still prove it.
    """
    if isinstance(namespace, str):
        return names.derive_hub_namespace(namespace)
    if not isinstance(namespace, Absent) or isinstance(deployment, Absent):
        return ""
    recorded = read_recorded(deployment)
    is_used = deployment.metadata.is_deleting and names.parse_hub_namespace(recorded)
    return recorded if is_used else ""


def read_recorded(deployment: ProjectDeployment) -> str:
    """The hub namespace in an annotation of a deployment, where a user can write any text."""
    return deployment.metadata.annotations.get(labels.FEDERATION_NAMESPACE, "")


def find_copies(caches: Caches, key: ObjectKey) -> tuple[CachedObject, ...]:
    """Hub deployments that name this one as their source."""
    value = indexes.join_identity(key.plane, key.namespace, key.name)
    return caches.lister(HUB, DEPLOYMENT).entries_by_index(indexes.IDENTITY, value)


def find_serving_cells(caches: Caches, code: str) -> tuple[str, ...] | Unreadable:
    """The Clusters that carry a city code, by name."""
    cells = caches.lister(HUB, CLUSTER).by_index(indexes.CITY, code)
    return cells if isinstance(cells, Unreadable) else tuple(one.key.name for one in cells)


def find_policies(caches: Caches, hub_name: str) -> Iterator[CopyPolicy]:
    """Live policies of ours in a hub namespace with a name derived from their city.

    A policy of another name may select the city too, but its deletion takes another lock than the
    creation of a copy.
    """
    view = caches.lister(HUB, POLICY)
    for entry in view.entries_by_index(indexes.NAMESPACE_OF, hub_name):
        code = indexes.find_value(entry, indexes.CODE)
        home = indexes.derive_policy_home(entry.key.name, code)
        if home == indexes.derive_base(code) and not entry.metadata.is_deleting:
            yield CopyPolicy(entry.key, code)


def _is_hub_readable(caches: Caches) -> bool:
    return all(caches.lister(HUB, kind).is_synced for kind in (NAMESPACE, DEPLOYMENT, POLICY))


def _hub_namespace(caches: Caches, hub_name: str, live: FederationLiveFacts) -> Metadata | Absent:
    if live.hub_namespace is not None:
        return live.hub_namespace
    entry = caches.lister(HUB, NAMESPACE).entry("", hub_name)
    return Absent() if entry is None else entry.metadata


def _copy(caches: Caches, hub_name: str, name: str) -> ProjectDeployment | Absent:
    entry = caches.lister(HUB, DEPLOYMENT).entry(hub_name, name)
    return Absent() if entry is None else read_deployment(entry.snapshot)


def _strays(caches: Caches, key: ObjectKey, hub_name: str) -> Iterator[ObjectKey]:
    for entry in find_copies(caches, key):
        if entry.key.namespace != hub_name:
            yield entry.key


def _policies(caches: Caches, hub_name: str) -> Iterable[CopyPolicy]:
    return find_policies(caches, hub_name) if hub_name else ()


def _needed_by_others(
    caches: Caches, deployment: ProjectDeployment | Absent, hub_name: str
) -> frozenset[str]:
    """Read only while a deployment is deleted: it takes time with the size of the namespace."""
    if isinstance(deployment, Absent) or not deployment.metadata.is_deleting:
        return frozenset()
    key = deployment.key
    asking = caches.lister(key.plane, DEPLOYMENT)
    routed = caches.lister(HUB, DEPLOYMENT)
    return frozenset(
        find_value(entry)
        for view, namespace, find_value in (
            (asking, key.namespace, _desired_city),
            (routed, hub_name, _routed_city),
        )
        for entry in view.entries_by_index(indexes.NAMESPACE_OF, namespace)
        if entry.key.name != key.name and not entry.metadata.is_deleting
    )


def _desired_city(entry: CachedObject) -> str:
    return indexes.find_value(entry, indexes.CITY)


def _routed_city(entry: CachedObject) -> str:
    return indexes.read_routing(entry.metadata)


def _holds_ours(caches: Caches, hub_namespace: Metadata | Absent, place: ProjectNamespace) -> bool:
    """Read only where the hub namespace names another project namespace."""
    if isinstance(hub_namespace, Absent):
        return False
    if match_identity(hub_namespace, place) is not IdentityMatch.FOREIGN:
        return False
    view = caches.lister(HUB, DEPLOYMENT)
    entries = view.entries_by_index(indexes.NAMESPACE_OF, hub_namespace.name)
    return any(match_identity(entry.metadata, place) is IdentityMatch.OURS for entry in entries)
