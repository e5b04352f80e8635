"""Reads caches: one hub Instance, everything that must agree with its labels, and its projection.

Labels come from a cell and may be forged, so each of them is looked up where it leads; what does
not lead anywhere is a value of its own here. When the hub Instance is gone, the project side is
found through the UID in the name of its hub namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from compute_api_types import labels, names
from compute_management_operator import hub_indexes
from compute_management_operator.episodes import NOTHING
from compute_management_operator.identities import Place, read_namespace, read_project
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, INSTANCE, NAMESPACE, PROJECT
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.mass_delete import SOON, Allowed, Held, Ruling
from compute_operator_kit.objects import Absent, Metadata, OwnerReference, Snapshot, Unreadable
from compute_operator_kit.wire import JsonObject, encode, member_object

OWNER: Final = (DEPLOYMENT.api_version, DEPLOYMENT.kind)
LARGEST: Final = 256 * 1024  # management.md 8.1, check 10: spec and status together


@dataclass(frozen=True, slots=True)
class Instance:
    """An Instance, on the hub or in a project."""

    key: ObjectKey
    metadata: Metadata
    spec: JsonObject = field(default_factory=dict)
    status: JsonObject = field(default_factory=dict)
    size: int = 0  # of spec and status, as they travel


@dataclass(frozen=True, slots=True)
class Deployment:
    """The project's deployment that an Instance names."""

    metadata: Metadata
    city_code: str
    scale: int = 0  # how many instances it asks for


@dataclass(frozen=True, slots=True)
class Cell:
    """The Cluster that an Instance says it comes from, and the city that one carries."""

    name: str
    city_code: str


@dataclass(frozen=True, slots=True)
class Fresh:
    """What was asked right before the pass."""

    place: Place | None = None  # where the projection is, by labels or by UID
    namespace: Uid | Absent | None = None  # of that place; None: nobody could ask
    # About a removal; a source that vanishes while we ask was never asked about.
    ruling: Ruling = field(default_factory=lambda: Held(0, 0, SOON))


@dataclass(frozen=True, slots=True)
class Seen:
    """One hub Instance at one moment."""

    key: ObjectKey
    source: Instance | Absent
    hub_namespace: Metadata | Absent
    project: PlaneName | None  # as the labels of the source name it
    namespace: str
    is_engaged: bool
    place: Place | None
    namespace_uid: Uid | Absent | None
    deployment: Deployment | Absent | Unreadable
    cell: Cell | Absent
    found: Instance | Absent | Unreadable  # the project Instance of that name
    other_owners: tuple[OwnerReference, ...] = ()  # live deployments that own it besides ours
    is_project_deleting: bool = False
    is_of_former_city: bool = (
        False  # its own deployment on the hub is replaced, and it goes with it
    )
    ruling: Ruling = field(default_factory=Allowed)
    since: Mapping[str, datetime] = field(default_factory=lambda: NOTHING)
    needs_cell_label: bool = True
    operator: ObjectKey | None = None
    was_made: bool = False  # its projection, by this process

    @property
    def hub_uid(self) -> str | None:
        """The UID of a project namespace that the name of the hub namespace carries."""
        return names.parse_hub_namespace(self.key.namespace)


@dataclass(frozen=True, slots=True)
class Known:
    """What this process remembers, and how it is set up."""

    since: Mapping[str, datetime] = field(default_factory=lambda: NOTHING)
    needs_cell_label: bool = True
    operator: ObjectKey | None = None
    was_made: bool = False  # a projection of the Instance, lately


def observe(key: ObjectKey, caches: Caches, fresh: Fresh, known: Known) -> Seen | None:
    """None where the hub cannot be believed."""
    found = caches.view(HUB, INSTANCE).get(key.namespace, key.name)
    namespaces = caches.view(HUB, NAMESPACE)
    if isinstance(found, Unreadable) or not namespaces.is_synced:
        return None
    source = found if isinstance(found, Absent) else read_instance(found)
    around = namespaces.entry("", key.namespace)
    project = None if isinstance(source, Absent) else read_project(source.metadata)
    projected = _projected(caches, fresh.place, key.name)
    deployment = _deployment(caches, fresh.place, source)
    cell = _cell(caches, source)
    return Seen(
        key=key,
        source=source,
        hub_namespace=Absent() if around is None else around.metadata,
        project=project,
        namespace="" if isinstance(source, Absent) else read_namespace(source.metadata),
        is_engaged=_is_engaged(caches, fresh.place),
        place=fresh.place,
        namespace_uid=fresh.namespace,
        deployment=deployment,
        cell=cell,
        found=projected,
        other_owners=_other_owners(caches, fresh.place, projected, deployment),
        is_project_deleting=_is_project_deleting(caches, fresh.place),
        is_of_former_city=_is_of_former_city(caches, source, cell),
        ruling=fresh.ruling,
        since=known.since,
        needs_cell_label=known.needs_cell_label,
        operator=known.operator,
        was_made=known.was_made,
    )


def read_instance(snapshot: Snapshot) -> Instance:
    body = snapshot.read()
    spec, status = member_object(body, "spec"), member_object(body, "status")
    # The whole is larger than its parts: only a large object is measured a second time.
    size = len(snapshot.raw)
    if size > LARGEST:
        size = len(encode(spec)) + len(encode(status))
    return Instance(snapshot.key, snapshot.metadata, spec, status, size)


def is_engaged(caches: Caches, plane: PlaneName) -> bool:
    return plane in caches.planes(Role.PROJECT)


def _is_engaged(caches: Caches, place: Place | None) -> bool:
    return place is not None and is_engaged(caches, place.plane)


def _projected(caches: Caches, place: Place | None, name: str) -> Instance | Absent | Unreadable:
    if place is None or not is_engaged(caches, place.plane):
        return Unreadable("NotEngaged")
    found = caches.view(place.plane, INSTANCE).get(place.namespace, name)
    return read_instance(found) if isinstance(found, Snapshot) else found


def _deployment(
    caches: Caches, place: Place | None, source: Instance | Absent
) -> Deployment | Absent | Unreadable:
    if isinstance(source, Absent) or place is None or not is_engaged(caches, place.plane):
        return Unreadable("NotEngaged")
    name = source.metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
    found = caches.view(place.plane, DEPLOYMENT).get(place.namespace, name)
    if isinstance(found, Absent | Unreadable):
        return found
    entry = caches.view(place.plane, DEPLOYMENT).entry(place.namespace, name)
    if entry is None:
        return Deployment(found.metadata, "")
    city = hub_indexes.find_value(entry, hub_indexes.CITY)
    scale = int(hub_indexes.find_value(entry, hub_indexes.SCALE) or 0)
    return Deployment(found.metadata, city, scale)


def _cell(caches: Caches, source: Instance | Absent) -> Cell | Absent:
    """Unreadable Clusters count as absent: retried, and what is projected stays up to date."""
    if isinstance(source, Absent):
        return Absent()
    name = source.metadata.labels.get(labels.CELL, "")
    entry = caches.view(HUB, CLUSTER).entry("", name)
    return Absent() if entry is None else Cell(name, hub_indexes.read_routing(entry.metadata))


def _is_of_former_city(caches: Caches, source: Instance | Absent, cell: Cell | Absent) -> bool:
    """Whether the hub's deployment that owns it is gone, going, or still routed to its cell's city.

    A city that is edited replaces that deployment, and the garbage collector takes its Instances.
    """
    if isinstance(source, Absent) or isinstance(cell, Absent):
        return False
    owner = source.metadata.controller
    if owner is None or (owner.api_version, owner.kind) != OWNER:
        return False
    entry = caches.view(HUB, DEPLOYMENT).entry(source.key.namespace, owner.name)
    if entry is None or entry.metadata.uid != owner.uid or entry.metadata.is_deleting:
        return True
    return hub_indexes.read_routing(entry.metadata) == cell.city_code


def _other_owners(
    caches: Caches,
    place: Place | None,
    found: Instance | Absent | Unreadable,
    deployment: Deployment | Absent | Unreadable,
) -> tuple[OwnerReference, ...]:
    if place is None or not isinstance(found, Instance) or not isinstance(deployment, Deployment):
        return ()
    view = caches.view(place.plane, DEPLOYMENT)
    others: list[OwnerReference] = []
    for owner in found.metadata.owners:
        entry = view.entry(place.namespace, owner.name)
        is_live = entry is not None and entry.metadata.uid == owner.uid
        if is_live and owner.uid != deployment.metadata.uid and owner.kind == DEPLOYMENT.kind:
            others.append(owner)
    return tuple(others)


def _is_project_deleting(caches: Caches, place: Place | None) -> bool:
    if place is None:
        return False
    for root in caches.planes(Role.ROOT):
        project = caches.view(root, PROJECT).get("", place.plane)
        if isinstance(project, Snapshot) and project.metadata.is_deleting:
            return True
    return False
