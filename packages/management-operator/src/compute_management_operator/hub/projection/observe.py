"""One hub Instance, the objects that its labels name, and its projection, from caches.

The labels come from a cell and may be forged, so each named object is read; one that does not exist
is `Absent`. When the hub Instance is gone, its projection is found by the UID in the name of its
hub namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from compute_api_types import labels, names
from compute_management_operator.discovery.observe import is_project_deleting
from compute_management_operator.hub import indexes
from compute_management_operator.hub.hearing.verdicts import NOT_JUDGED, Hearing
from compute_management_operator.hub.identity import ProjectNamespace, read_namespace, read_project
from compute_management_operator.hub.wait_tracker import NOTHING
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_management_operator.stored_status import NO_STATUS, StoredStatus, read_status
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.controller.mass_delete import SOON, RemovalAllowed, RemovalHeld, Ruling
from compute_operator_kit.core.json import JsonObject, encode, member_object
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.core.objects import Absent, Metadata, OwnerReference, Snapshot, Unreadable

OWNER: Final = (DEPLOYMENT.api_version, DEPLOYMENT.kind)
LARGEST: Final = 256 * 1024  # management.md 8.1, check 10: spec and status together


@dataclass(frozen=True, slots=True)
class HubInstance:
    """An Instance, on the hub or in a project."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject = field(default_factory=dict)
    status: StoredStatus = NO_STATUS
    size: int = 0  # of spec and status as JSON, in bytes


@dataclass(frozen=True, slots=True)
class InstanceDeployment:
    """The project's deployment that an Instance names."""

    metadata: Metadata
    city_code: str
    scale: int = 0  # replicas it asks for


@dataclass(frozen=True, slots=True)
class ReportingCell:
    """The Cluster in the cell label of an Instance, and the city that it carries."""

    name: str
    city_code: str


@dataclass(frozen=True, slots=True)
class ProjectionLiveFacts:
    """Facts from live reads right before the reconcile."""

    # The namespace of the projection, by labels or by UID.
    project_namespace: ProjectNamespace | None = None
    namespace: Uid | Absent | None = None  # its UID; None: could not be read
    # About a removal; held where the source was deleted during the live reads.
    ruling: Ruling = field(default_factory=lambda: RemovalHeld(0, 0, SOON))


@dataclass(frozen=True, slots=True)
class ObservedInstance:
    """One hub Instance at one moment."""

    key: ObjectKey
    source: HubInstance | Absent
    hub_namespace: Metadata | Absent
    project: PlaneName | None  # as the labels of the source name it
    namespace: str
    is_engaged: bool
    project_namespace: ProjectNamespace | None
    namespace_uid: Uid | Absent | None
    deployment: InstanceDeployment | Absent | Unreadable
    cell: ReportingCell | Absent
    projection: HubInstance | Absent | Unreadable  # the project Instance of that name
    other_owners: tuple[OwnerReference, ...] = ()  # live deployments that own it besides ours
    is_project_deleting: bool = False
    # Its deployment on the hub is being replaced, and it is deleted with that one.
    is_of_former_city: bool = False
    ruling: Ruling = field(default_factory=RemovalAllowed)
    since: Mapping[str, datetime] = field(default_factory=lambda: NOTHING)
    needs_cell_label: bool = True
    operator: ObjectKey | None = None
    was_created: bool = False  # its projection, by this process
    hearing: Hearing = NOT_JUDGED  # which cells are heard

    @property
    def hub_uid(self) -> str | None:
        """The UID of the project namespace, from the name of the hub namespace."""
        return names.parse_hub_namespace(self.key.namespace)


@dataclass(frozen=True, slots=True)
class ProjectionMemory:
    """What this process remembers about the key, and settings."""

    since: Mapping[str, datetime] = field(default_factory=lambda: NOTHING)
    needs_cell_label: bool = True
    operator: ObjectKey | None = None
    was_created: bool = False  # a projection of the Instance, lately
    hearing: Hearing = NOT_JUDGED


def observe(
    key: ObjectKey, caches: Caches, live: ProjectionLiveFacts, known: ProjectionMemory
) -> ObservedInstance | None:
    """None where a cache of the hub is not complete."""
    cached = caches.lister(HUB, INSTANCE).get(key.namespace, key.name)
    namespaces = caches.lister(HUB, NAMESPACE)
    if isinstance(cached, Unreadable) or not namespaces.is_synced:
        return None
    source = cached if isinstance(cached, Absent) else read_instance(cached)
    hub_namespace = namespaces.entry("", key.namespace)
    project = None if isinstance(source, Absent) else read_project(source.metadata)
    place = live.project_namespace
    projection = _projection(caches, place, key.name)
    deployment = _deployment(caches, place, source)
    cell = _cell(caches, source)
    return ObservedInstance(
        key=key,
        source=source,
        hub_namespace=Absent() if hub_namespace is None else hub_namespace.metadata,
        project=project,
        namespace="" if isinstance(source, Absent) else read_namespace(source.metadata),
        is_engaged=place is not None and is_engaged(caches, place.plane),
        project_namespace=place,
        namespace_uid=live.namespace,
        deployment=deployment,
        cell=cell,
        projection=projection,
        other_owners=_other_owners(caches, place, projection, deployment),
        is_project_deleting=place is not None and is_project_deleting(caches, place.plane),
        is_of_former_city=_is_of_former_city(caches, source, cell),
        ruling=live.ruling,
        since=known.since,
        needs_cell_label=known.needs_cell_label,
        operator=known.operator,
        was_created=known.was_created,
        hearing=known.hearing,
    )


def read_instance(snapshot: Snapshot) -> HubInstance:
    body = snapshot.read()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    # The object is larger than spec and status: only a large one is encoded to be measured.
    size = len(snapshot.raw)
    if size > LARGEST:
        size = len(encode(spec)) + len(encode(status))
    return HubInstance(snapshot.key, snapshot.metadata, spec, read_status(status), size)


def is_engaged(caches: Caches, plane: PlaneName) -> bool:
    return plane in caches.planes(Role.PROJECT)


def _projection(
    caches: Caches, place: ProjectNamespace | None, name: str
) -> HubInstance | Absent | Unreadable:
    if place is None or not is_engaged(caches, place.plane):
        return Unreadable("NotEngaged")
    cached = caches.lister(place.plane, INSTANCE).get(place.namespace, name)
    return read_instance(cached) if isinstance(cached, Snapshot) else cached


def _deployment(
    caches: Caches, place: ProjectNamespace | None, source: HubInstance | Absent
) -> InstanceDeployment | Absent | Unreadable:
    if isinstance(source, Absent) or place is None or not is_engaged(caches, place.plane):
        return Unreadable("NotEngaged")
    name = source.metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
    cached = caches.lister(place.plane, DEPLOYMENT).get(place.namespace, name)
    if isinstance(cached, Absent | Unreadable):
        return cached
    entry = caches.lister(place.plane, DEPLOYMENT).entry(place.namespace, name)
    if entry is None:
        return InstanceDeployment(cached.metadata, "")
    city = indexes.find_value(entry, indexes.CITY)
    scale = int(indexes.find_value(entry, indexes.SCALE) or 0)
    return InstanceDeployment(cached.metadata, city, scale)


def _cell(caches: Caches, source: HubInstance | Absent) -> ReportingCell | Absent:
    """Unreadable Clusters count as absent: retried, and existing projections are updated."""
    if isinstance(source, Absent):
        return Absent()
    name = source.metadata.labels.get(labels.CELL, "")
    entry = caches.lister(HUB, CLUSTER).entry("", name)
    return Absent() if entry is None else ReportingCell(name, indexes.read_routing(entry.metadata))


def _is_of_former_city(
    caches: Caches, source: HubInstance | Absent, cell: ReportingCell | Absent
) -> bool:
    """Whether the hub's deployment that owns it does not exist, is being deleted, or is still
    routed to its cell's city.

    An edited city replaces that deployment, and the garbage collector deletes its Instances.
    """
    if isinstance(source, Absent) or isinstance(cell, Absent):
        return False
    owner = source.metadata.controller
    if owner is None or (owner.api_version, owner.kind) != OWNER:
        return False
    entry = caches.lister(HUB, DEPLOYMENT).entry(source.key.namespace, owner.name)
    if entry is None or entry.metadata.uid != owner.uid or entry.metadata.is_deleting:
        return True
    return indexes.read_routing(entry.metadata) == cell.city_code


def _other_owners(
    caches: Caches,
    place: ProjectNamespace | None,
    projection: HubInstance | Absent | Unreadable,
    deployment: InstanceDeployment | Absent | Unreadable,
) -> tuple[OwnerReference, ...]:
    if (
        place is None
        or not isinstance(projection, HubInstance)
        or not isinstance(deployment, InstanceDeployment)
    ):
        return ()
    view = caches.lister(place.plane, DEPLOYMENT)
    others: list[OwnerReference] = []
    for owner in projection.metadata.owners:
        entry = view.entry(place.namespace, owner.name)
        is_live = entry is not None and entry.metadata.uid == owner.uid
        if is_live and owner.uid != deployment.metadata.uid and owner.kind == DEPLOYMENT.kind:
            others.append(owner)
    return tuple(others)
