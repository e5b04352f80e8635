"""Reads caches: one Workload and all it depends on in its project, at one moment.

What cannot be read is a value of its own here (`Unreadable`), never an empty list: a missing list
must not look like a missing city. Objects may have bypassed admission, so every field is read as if
it could be anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from compute_api_types import labels, names
from compute_management_operator.kinds import (
    DEPLOYMENT,
    LOCATION,
    NETWORK,
    PROJECT,
    WORKLOAD,
)
from compute_operator_kit.cache import Caches, Serving
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role, Uid
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.wire import (
    Json,
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)

DEPLOYMENTS_BY_WORKLOAD: Final = "workload"
"""Index of WorkloadDeployments: the uid of the Workload they belong to."""


class Networking(StrEnum):
    """Whether networking kinds are consulted (operations.md 1.4)."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Off:
    """Networking is off for a kind: every city counts as served, no network is looked for."""


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
    """One Workload at one moment."""

    key: ObjectKey
    metadata: Metadata
    template: JsonObject
    placements: tuple[Placement, ...]
    networks: tuple[NetworkName, ...]
    status: JsonObject
    deployments: tuple[Deployment, ...]  # of this Workload, by name
    holders: Mapping[str, str]  # names taken in the namespace → uid of the Workload that holds it
    served: frozenset[str] | Unreadable | Off  # city codes with a Location
    present_networks: frozenset[NetworkName] | Unreadable | Off
    is_project_deleting: bool = False


Found: TypeAlias = Snapshot | Absent | Unreadable


def observe(key: ObjectKey, caches: Caches, networking: Networking) -> Seen | None:
    """None where the Workload is absent, not ours to look at, or a cache cannot be believed."""
    if names.parse_hub_namespace(key.namespace) is not None:
        return None  # a hub copy, should planes share an API server
    workload = caches.view(key.plane, WORKLOAD).get(key.namespace, key.name)
    beside = caches.view(key.plane, DEPLOYMENT).snapshots(key.namespace)
    if isinstance(workload, Absent | Unreadable) or isinstance(beside, Unreadable):
        return None
    deployments = tuple(read_deployment(snapshot) for snapshot in beside)
    body = workload.decode()
    spec = member_object(body, "spec")
    template = member_object(spec, "template")
    return Seen(
        key=key,
        metadata=workload.metadata,
        template=template,
        placements=_placements(member_list(spec, "placements")),
        networks=_networks(template, key.namespace),
        status=member_object(body, "status"),
        deployments=_of_workload(deployments, workload.metadata.uid),
        holders={deployment.name: deployment.workload_uid for deployment in deployments},
        served=_served(key.plane, caches, networking),
        present_networks=_present_networks(key.plane, caches, networking),
        is_project_deleting=_is_project_deleting(key.plane, caches),
    )


def read_deployment(snapshot: Snapshot) -> Deployment:
    body = snapshot.decode()
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


def index_by_workload(metadata: Metadata, body: JsonObject) -> Iterable[str]:
    """For deployments: the uid of their Workload; one without a uid is in no index."""
    uid = workload_uid_of(metadata, member_object(body, "spec"))
    return (uid,) if uid else ()


def city_code_of(location: JsonObject) -> str:
    """The city a Location stands for, "" where it names none that could ever be routed to."""
    topology = member_object(member_object(location, "spec"), "topology")
    code = member_text(topology, labels.TOPOLOGY_CITY_CODE)
    return code if names.is_routable_city(code) else ""


def _of_workload(found: Iterable[Deployment], uid: Uid) -> tuple[Deployment, ...]:
    ours = (deployment for deployment in found if deployment.workload_uid == uid)
    return tuple(sorted(ours, key=lambda deployment: deployment.name))


def _placements(found: list[Json]) -> tuple[Placement, ...]:
    """Placements in spec order; of a repeated name the first counts, of a repeated city too."""
    placements: dict[str, Placement] = {}
    for entry in found:
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


def _networks(template: JsonObject, namespace: str) -> tuple[NetworkName, ...]:
    interfaces = member_list(member_object(template, "spec"), "networkInterfaces")
    references = [
        member_object(interface, "network")
        for interface in interfaces
        if isinstance(interface, dict)
    ]
    named = (
        NetworkName(
            member_text(reference, "namespace") or namespace, member_text(reference, "name")
        )
        for reference in references
    )
    return tuple(dict.fromkeys(network for network in named if network.name))


def _consulted(
    plane: PlaneName, kind: Kind, caches: Caches, networking: Networking
) -> tuple[Snapshot, ...] | Unreadable | Off:
    if networking is Networking.OFF:
        return Off()
    view = caches.view(plane, kind)
    if networking is Networking.AUTO and view.serving is Serving.NOT_SERVED:
        return Off()
    return view.snapshots()


def _served(
    plane: PlaneName, caches: Caches, networking: Networking
) -> frozenset[str] | Unreadable | Off:
    found = _consulted(plane, LOCATION, caches, networking)
    if isinstance(found, Unreadable | Off):
        return found
    return frozenset(city_code_of(location.decode()) for location in found) - {""}


def _present_networks(
    plane: PlaneName, caches: Caches, networking: Networking
) -> frozenset[NetworkName] | Unreadable | Off:
    found = _consulted(plane, NETWORK, caches, networking)
    if isinstance(found, Unreadable | Off):
        return found
    return frozenset(NetworkName(one.key.namespace, one.key.name) for one in found)


def _is_project_deleting(plane: PlaneName, caches: Caches) -> bool:
    """Whether the project behind the plane is on its way out; discovery's cache knows."""
    for root in caches.planes(Role.ROOT):
        project = caches.view(root, PROJECT).get("", plane)
        if isinstance(project, Snapshot) and project.metadata.is_deleting:
            return True
    return False


def counter(status: JsonObject, name: str) -> int:
    """A number of replicas as somebody else wrote it; never below zero."""
    return max(0, member_int(status, name))
