"""One Workload and all it depends on in its project, read from caches at one moment.

What cannot be read is `Unreadable`, never an empty list: a missing list of Locations must not read
as a missing city. Objects may have bypassed admission, so a field may have any type. Only objects
of this Workload are decoded: the time of a reconcile must not grow with the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from typing_extensions import override

from compute_api_types import conditions, labels, names
from compute_management_operator.discovery.observe import is_project_deleting
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER, WORKLOAD_DECODER
from compute_management_operator.networking import served_cities
from compute_management_operator.planes import DEPLOYMENT, NETWORK, WORKLOAD
from compute_management_operator.stored_status import (
    NO_STATUS,
    StoredCondition,
    StoredStatus,
    find_condition,
    read_status,
)
from compute_operator_kit.cache.optional_kinds import Off, OptionalKindsReader
from compute_operator_kit.cache.store import Caches, Lister
from compute_operator_kit.core.json import (
    Encoded,
    Json,
    JsonObject,
    JsonValue,
    member_int,
    member_list,
    member_object,
    member_text,
)
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable, cut_member

DEPLOYMENTS_BY_WORKLOAD: Final = "workload"
"""Index of WorkloadDeployments: the uid of the Workload they belong to."""


NOT_READ: Final = Unreadable("NotLooked")

# The hub namespace of a project namespace; "" unless a deployment in the cache proves its UID.
FindHubNamespace: TypeAlias = Callable[[str, Lister], str]


def find_none(_: str, __: Lister) -> str:
    """Nothing is federated."""
    return ""


@dataclass(frozen=True, slots=True)
class DeploymentIdentity:
    """The placement and city of a deployment, by which it is matched; names may be of others."""

    placement: str
    city_code: str


@dataclass(frozen=True, slots=True)
class WorkloadPlacement:
    """One placement of the spec; city codes that differ only in case are one city."""

    name: str
    city_codes: tuple[str, ...]
    scale_settings: JsonObject = field(default_factory=dict)

    @property
    def is_autoscaled(self) -> bool:
        settings = self.scale_settings
        return settings.get("maxReplicas") is not None and bool(member_list(settings, "metrics"))


@dataclass(frozen=True, slots=True)
class NetworkName:
    """A Network the template refers to."""

    namespace: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ChildStatus:
    """The part of a deployment's status from which the Workload's is derived.

    A counter that is no number, or below 0, is 0.
    """

    replicas: int = 0
    desired_replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    available: StoredCondition | None = None
    ready: StoredCondition | None = None
    autoscaling: tuple[
        StoredCondition, ...
    ] = ()  # AutoscalingReady and -Limited, where it has them


NO_CHILD_STATUS: Final = ChildStatus()


@dataclass(frozen=True, slots=True)
class WorkloadChild:
    """A WorkloadDeployment of this project."""

    key: ObjectKey
    metadata: Metadata
    workload_uid: str
    identity: DeploymentIdentity
    status: ChildStatus = NO_CHILD_STATUS
    replicas: int = 0  # of its autoscaler, in a cluster that is its cell too; 0 where there is none

    @property
    def name(self) -> str:
        return self.key.name


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """One Workload at one moment; of one without our finalizer, only the metadata is read."""

    key: ObjectKey
    metadata: Metadata
    template: JsonValue = None  # copied as it was served, not decoded
    placements: tuple[WorkloadPlacement, ...] = ()
    networks: tuple[NetworkName, ...] = ()
    status: StoredStatus = NO_STATUS
    stored_placements: Mapping[str, StoredStatus] = field(default_factory=dict[str, StoredStatus])
    is_reported: bool = False  # its status lists placements: it had its deployments once
    deployments: tuple[WorkloadChild, ...] = ()  # of this Workload, by name
    # Taken names that a deployment of this Workload may be given → uid of the Workload in use.
    holders: Mapping[str, str] = field(default_factory=dict[str, str])
    served: frozenset[str] | Unreadable | Off = NOT_READ  # city codes with a Location
    present_networks: frozenset[NetworkName] | Unreadable | Off = NOT_READ
    is_project_deleting: bool = False
    # What a new deployment records for federation; "" without federation, or while it is unknown.
    hub_namespace: str = ""
    is_cell: bool = False  # no federation: its deployments are those of the cell


def is_new(metadata: Metadata) -> bool:
    """Whether our finalizer has to be added before anything else."""
    return not metadata.is_deleting and labels.WORKLOAD_FINALIZER not in metadata.finalizers


def observe(
    key: ObjectKey,
    caches: Caches,
    networking: OptionalKindsReader,
    find_hub_namespace: FindHubNamespace = find_none,
) -> ObservedWorkload | None:
    """None where the Workload is absent or a hub copy, or a cache is not complete."""
    if names.parse_hub_namespace(key.namespace) is not None:
        return None  # a hub copy, should planes share an API server
    workload = caches.lister(key.plane, WORKLOAD).get(key.namespace, key.name)
    if isinstance(workload, Absent | Unreadable):
        return None
    if is_new(workload.metadata):
        return ObservedWorkload(key, workload.metadata)
    deployments = caches.lister(key.plane, DEPLOYMENT)
    owned = deployments.by_index(DEPLOYMENTS_BY_WORKLOAD, workload.metadata.uid)
    if isinstance(owned, Unreadable):
        return None
    body = WORKLOAD_DECODER.read(workload)
    spec, status = member_object(body, "spec"), member_object(body, "status")
    placements = read_placements(spec)
    networks = read_networks(member_object(spec, "template"), key.namespace)
    return ObservedWorkload(
        key=key,
        metadata=workload.metadata,
        template=Encoded(cut_member(workload.member("spec"), "template") or b"{}"),
        placements=placements,
        networks=networks,
        status=read_status(status),
        stored_placements=read_stored_placements(status),
        is_reported=bool(member_list(status, "placements")),
        deployments=_in_namespace(owned, key.namespace),
        holders=dict(_holders(workload.metadata, placements, deployments)),
        served=served_cities(caches, key.plane, networking),
        present_networks=_present(caches, key.plane, networking, networks),
        is_project_deleting=is_project_deleting(caches, key.plane),
        hub_namespace=find_hub_namespace(key.namespace, deployments),
        is_cell=find_hub_namespace is find_none,
    )


def read_deployment(snapshot: Snapshot) -> WorkloadChild:
    body = DEPLOYMENT_DECODER.read(snapshot)
    spec = member_object(body, "spec")
    return WorkloadChild(
        key=snapshot.key,
        metadata=snapshot.metadata,
        workload_uid=workload_uid_of(snapshot.metadata, spec),
        identity=DeploymentIdentity(
            member_text(spec, "placementName"), member_text(spec, "cityCode")
        ),
        status=read_child_status(member_object(body, "status")),
        replicas=max(0, member_int(spec, "replicas")),
    )


def read_child_status(status: JsonObject) -> ChildStatus:
    if not status:
        return NO_CHILD_STATUS
    return ChildStatus(
        _counter(status, "replicas"),
        _counter(status, "desiredReplicas"),
        _counter(status, "readyReplicas"),
        _counter(status, "currentReplicas"),
        _counter(status, "updatedReplicas"),
        member_int(status, "observedGeneration"),
        find_condition(status, conditions.AVAILABLE),
        find_condition(status, conditions.READY),
        tuple(filter(None, (find_condition(status, each) for each in conditions.AUTOSCALING))),
    )


def _counter(status: JsonObject, name: str) -> int:
    number = status.get(name)
    # Called five times per deployment; the exact type also excludes booleans.
    return number if type(number) is int and number > 0 else 0


def read_stored_placements(status: JsonObject) -> dict[str, StoredStatus]:
    """The entries of placements by name; of a repeated name the first counts."""
    stored: dict[str, StoredStatus] = {}
    for entry in member_list(status, "placements"):
        if isinstance(entry, dict) and (name := member_text(entry, "name")) not in stored:
            stored[name] = read_status(entry)
    return stored


def workload_uid_of(metadata: Metadata, spec: JsonObject) -> str:
    """The Workload a deployment belongs to; "" where it names none (management.md 1.3)."""
    controller = metadata.controller
    if controller is not None and controller.kind == WORKLOAD.kind:
        return controller.uid
    referred = member_text(member_object(spec, "workloadRef"), "uid")
    return referred or metadata.labels.get(labels.WORKLOAD_UID, "")


def read_placements(spec: JsonObject) -> tuple[WorkloadPlacement, ...]:
    """Placements in spec order; of a repeated name the first counts, of a repeated city too."""
    placements: dict[str, WorkloadPlacement] = {}
    for entry in member_list(spec, "placements"):
        if isinstance(entry, dict) and (name := member_text(entry, "name")):
            settings = member_object(entry, "scaleSettings")
            cities = _collapsed(member_list(entry, "cityCodes"))
            placements.setdefault(name, WorkloadPlacement(name, cities, settings))
    return tuple(placements.values())


def _collapsed(codes: list[Json]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for code in codes:
        if isinstance(code, str) and code:
            first.setdefault(code.lower(), code)
    return tuple(first.values())


def read_networks(template: JsonObject, namespace: str) -> tuple[NetworkName, ...]:
    """The Networks a template of a Workload in this namespace refers to, each once."""
    interfaces = member_list(member_object(template, "spec"), "networkInterfaces")
    references = (
        member_object(interface, "network")
        for interface in interfaces
        if isinstance(interface, dict)
    )
    named = (
        NetworkName(
            member_text(reference, "namespace") or namespace, member_text(reference, "name")
        )
        for reference in references
    )
    return tuple(dict.fromkeys(network for network in named if network.name))


def _in_namespace(owned: Iterable[Snapshot], namespace: str) -> tuple[WorkloadChild, ...]:
    """Without those that only copied the uid into another namespace."""
    return tuple(read_deployment(one) for one in owned if one.key.namespace == namespace)


def _holders(
    workload: Metadata, placements: Iterable[WorkloadPlacement], deployments: Lister
) -> Iterator[tuple[str, str]]:
    """Possible names that a deployment has already, with the uid of its Workload."""
    for name in possible_names(workload, placements):
        entry = deployments.entry(workload.namespace, name)
        if entry is not None:
            yield name, next(iter(entry.index_values.get(DEPLOYMENTS_BY_WORKLOAD, ())), "")


def possible_names(workload: Metadata, placements: Iterable[WorkloadPlacement]) -> Iterator[str]:
    """Every name a deployment of this Workload may be given."""
    for placement in placements:
        for code in placement.city_codes:
            both = names.derive_deployment_names(
                workload=workload.name,
                workload_uid=workload.uid,
                placement=placement.name,
                city_code=code,
            )
            if both.plain is not None:
                yield both.plain
            yield both.hashed


def _present(
    caches: Caches, plane: PlaneName, networking: OptionalKindsReader, named: Iterable[NetworkName]
) -> frozenset[NetworkName] | Unreadable | Off:
    view = networking.read(caches, plane, NETWORK)
    if isinstance(view, Unreadable | Off):
        return view
    return frozenset(one for one in named if view.entry(one.namespace, one.name) is not None)
