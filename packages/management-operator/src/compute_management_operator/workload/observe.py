"""Reads caches: one Workload and all it depends on in its project, at one moment.

What cannot be read is a value of its own here (`Unreadable`), never an empty list: a missing list
must not look like a missing city. Objects may have bypassed admission, so every field is read as if
it could be anything. Only what this Workload is about is looked up and decoded: a pass must not
grow with its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from typing_extensions import override

from compute_api_types import labels, names
from compute_management_operator.kinds import DEPLOYMENT, NETWORK, PROJECT, WORKLOAD
from compute_management_operator.networking import Consulting, Off, consult, served_cities
from compute_management_operator.outlines import DEPLOYMENT_OUTLINE, WORKLOAD_OUTLINE
from compute_operator_kit.cache import Caches, View
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable, cut_member
from compute_operator_kit.wire import (
    Encoded,
    Json,
    JsonObject,
    JsonValue,
    member_list,
    member_object,
    member_text,
)

DEPLOYMENTS_BY_WORKLOAD: Final = "workload"
"""Index of WorkloadDeployments: the uid of the Workload they belong to."""


NOT_LOOKED: Final = Unreadable("NotLooked")

# The hub namespace of a project namespace, as far as the deployments beside it prove it.
FindHubNamespace: TypeAlias = Callable[[str, View], str]


def find_none(_: str, __: View) -> str:
    """Nothing is federated."""
    return ""


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a deployment the one of a placement and a city; found by this, never by name."""

    placement: str
    city_code: str


@dataclass(frozen=True, slots=True)
class Placement:
    """One placement of the spec, its cities collapsed: case makes no second city."""

    name: str
    city_codes: tuple[str, ...]
    scale_settings: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetworkName:
    """A Network the template refers to."""

    namespace: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A WorkloadDeployment of this project, as far as the Workload is concerned."""

    key: ObjectKey
    metadata: Metadata
    workload_uid: str
    identity: Identity
    status: JsonObject = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.key.name


@dataclass(frozen=True, slots=True)
class Seen:
    """One Workload at one moment; of one that is new, nothing but its header is looked at."""

    key: ObjectKey
    metadata: Metadata
    template: JsonValue = None  # what is copied, as it was served; nobody here looks into it
    placements: tuple[Placement, ...] = ()
    networks: tuple[NetworkName, ...] = ()
    status: JsonObject = field(default_factory=dict)
    deployments: tuple[Deployment, ...] = ()  # of this Workload, by name
    # Names we might use that are taken → uid of the Workload behind.
    holders: Mapping[str, str] = field(default_factory=dict[str, str])
    served: frozenset[str] | Unreadable | Off = NOT_LOOKED  # city codes with a Location
    present_networks: frozenset[NetworkName] | Unreadable | Off = NOT_LOOKED
    is_project_deleting: bool = False
    # What a new deployment records for federation; "" where nobody federates, or can tell.
    hub_namespace: str = ""

    @property
    def is_reported(self) -> bool:
        """Whether a pass before has written of its placements: it had its deployments once."""
        return bool(member_list(self.status, "placements"))


def is_new(metadata: Metadata) -> bool:
    """Whether all there is to do is to put our finalizer on it."""
    return not metadata.is_deleting and labels.WORKLOAD_FINALIZER not in metadata.finalizers


def observe(
    key: ObjectKey,
    caches: Caches,
    consulting: Consulting,
    find_hub_namespace: FindHubNamespace = find_none,
) -> Seen | None:
    """None where the Workload is absent, not ours to look at, or a cache cannot be believed."""
    if names.parse_hub_namespace(key.namespace) is not None:
        return None  # a hub copy, should planes share an API server
    workload = caches.view(key.plane, WORKLOAD).get(key.namespace, key.name)
    if isinstance(workload, Absent | Unreadable):
        return None
    if is_new(workload.metadata):
        return Seen(key, workload.metadata)
    beside = caches.view(key.plane, DEPLOYMENT)
    found = beside.by_index(DEPLOYMENTS_BY_WORKLOAD, workload.metadata.uid)
    if isinstance(found, Unreadable):
        return None
    body = WORKLOAD_OUTLINE.read(workload)
    spec = member_object(body, "spec")
    placements = read_placements(spec)
    networks = read_networks(member_object(spec, "template"), key.namespace)
    return Seen(
        key=key,
        metadata=workload.metadata,
        template=Encoded(cut_member(workload.member("spec"), "template") or b"{}"),
        placements=placements,
        networks=networks,
        status=member_object(body, "status"),
        deployments=_in_namespace(found, key.namespace),
        holders=dict(_holders(workload.metadata, placements, beside)),
        served=served_cities(caches, key.plane, consulting),
        present_networks=_present(caches, key.plane, consulting, networks),
        is_project_deleting=_is_project_deleting(key.plane, caches),
        hub_namespace=find_hub_namespace(key.namespace, beside),
    )


def read_deployment(snapshot: Snapshot) -> Deployment:
    body = DEPLOYMENT_OUTLINE.read(snapshot)
    spec = member_object(body, "spec")
    return Deployment(
        key=snapshot.key,
        metadata=snapshot.metadata,
        workload_uid=workload_uid_of(snapshot.metadata, spec),
        identity=Identity(member_text(spec, "placementName"), member_text(spec, "cityCode")),
        status=member_object(body, "status"),
    )


def workload_uid_of(metadata: Metadata, spec: JsonObject) -> str:
    """The Workload a deployment belongs to; "" where nothing says so (management.md 1.3)."""
    controller = metadata.controller
    if controller is not None and controller.kind == WORKLOAD.kind:
        return controller.uid
    referred = member_text(member_object(spec, "workloadRef"), "uid")
    return referred or metadata.labels.get(labels.WORKLOAD_UID, "")


def read_placements(spec: JsonObject) -> tuple[Placement, ...]:
    """Placements in spec order; of a repeated name the first counts, of a repeated city too."""
    placements: dict[str, Placement] = {}
    for entry in member_list(spec, "placements"):
        if isinstance(entry, dict) and (name := member_text(entry, "name")):
            settings = member_object(entry, "scaleSettings")
            cities = _collapsed(member_list(entry, "cityCodes"))
            placements.setdefault(name, Placement(name, cities, settings))
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


def _in_namespace(found: Iterable[Snapshot], namespace: str) -> tuple[Deployment, ...]:
    """A uid that was copied into another namespace makes nothing there ours."""
    return tuple(read_deployment(one) for one in found if one.key.namespace == namespace)


def _holders(
    workload: Metadata, placements: Iterable[Placement], beside: View
) -> Iterator[tuple[str, str]]:
    """Names we might use and somebody has: whose they are."""
    for name in possible_names(workload, placements):
        entry = beside.entry(workload.namespace, name)
        if entry is not None:
            yield name, next(iter(entry.values.get(DEPLOYMENTS_BY_WORKLOAD, ())), "")


def possible_names(workload: Metadata, placements: Iterable[Placement]) -> Iterator[str]:
    """Every name a deployment of this Workload may be given."""
    for placement in placements:
        for code in placement.city_codes:
            found = names.derive_deployment_names(
                workload=workload.name,
                workload_uid=workload.uid,
                placement=placement.name,
                city_code=code,
            )
            if found.plain is not None:
                yield found.plain
            yield found.hashed


def _present(
    caches: Caches, plane: PlaneName, consulting: Consulting, wanted: Iterable[NetworkName]
) -> frozenset[NetworkName] | Unreadable | Off:
    found = consult(caches, plane, NETWORK, consulting)
    if isinstance(found, Unreadable | Off):
        return found
    return frozenset(one for one in wanted if found.entry(one.namespace, one.name) is not None)


def _is_project_deleting(plane: PlaneName, caches: Caches) -> bool:
    """Whether the project behind the plane is on its way out; discovery's cache knows."""
    for root in caches.planes(Role.ROOT):
        project = caches.view(root, PROJECT).get("", plane)
        if isinstance(project, Snapshot) and project.metadata.is_deleting:
            return True
    return False


def counter(status: JsonObject, name: str) -> int:
    """A number of replicas as somebody else wrote it; never below zero."""
    found = status.get(name)
    # Asked five times per deployment; a boolean is no `int` here.
    return found if type(found) is int and found > 0 else 0
