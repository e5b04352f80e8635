"""Captured documents → typed snapshot; the one place that reads JSON of planes.

Any document gives a value: what is missing or malformed is empty, and an object without a usable
spec is marked `unreadable`. One bad object must not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from compute_api_types.wire import JsonObject
from compute_kubectl.snapshot import decode_compute as compute
from compute_kubectl.snapshot import decode_neighbours as neighbours
from compute_kubectl.snapshot.access import Listing
from compute_kubectl.snapshot.capture import Capture, CapturedPlane
from compute_kubectl.snapshot.decode_metadata import decode_event, decode_object
from compute_kubectl.snapshot.objects import SeenObject
from compute_kubectl.snapshot.planes import (
    CellPlane,
    HubPlane,
    PlaneFacts,
    ProjectPlane,
    Role,
    Snapshot,
)

T = TypeVar("T", bound=SeenObject)


def decode(capture: Capture) -> Snapshot:
    """The typed snapshot of what was read."""
    projects, hubs = capture.of(Role.PROJECT), capture.of(Role.HUB)
    return Snapshot(
        namespace=capture.namespace,
        at=capture.at,
        project=decode_project(projects[0]) if projects else ProjectPlane(),
        hub=decode_hub(hubs[0]) if hubs else HubPlane(),
        cells={plane.name: decode_cell(plane) for plane in capture.of(Role.CELL)},
    )


def decode_project(plane: CapturedPlane) -> ProjectPlane:
    return ProjectPlane(
        facts=_facts(plane),
        namespaces=_listing(plane, "namespaces", decode_object),
        workloads=_listing(plane, "workloads", compute.decode_workload),
        deployments=_listing(plane, "workloaddeployments", compute.decode_deployment),
        instances=_listing(plane, "instances", compute.decode_instance),
        claims=_listing(plane, "resourceclaims", neighbours.decode_claim),
        buckets=_listing(plane, "allowancebuckets", neighbours.decode_bucket),
        events=_listing(plane, "events", decode_event),
    )


def decode_hub(plane: CapturedPlane) -> HubPlane:
    return HubPlane(
        facts=_facts(plane),
        namespaces=_listing(plane, "namespaces", decode_object),
        deployments=_listing(plane, "workloaddeployments", compute.decode_deployment),
        instances=_listing(plane, "instances", compute.decode_instance),
        policies=_listing(plane, "propagationpolicies", neighbours.decode_policy),
        bindings=_listing(plane, "resourcebindings", neighbours.decode_binding),
        clusters=_listing(plane, "clusters", neighbours.decode_cluster),
        events=_listing(plane, "events", decode_event),
    )


def decode_cell(plane: CapturedPlane) -> CellPlane:
    return CellPlane(
        facts=_facts(plane),
        deployments=_listing(plane, "workloaddeployments", compute.decode_deployment),
        instances=_listing(plane, "instances", compute.decode_instance),
        network_bindings=_listing(plane, "networkbindings", neighbours.decode_network_object),
        network_contexts=_listing(plane, "networkcontexts", neighbours.decode_network_object),
        subnet_claims=_listing(plane, "subnetclaims", neighbours.decode_network_object),
        subnets=_listing(plane, "subnets", neighbours.decode_network_object),
        locations=_listing(plane, "locations", neighbours.decode_location),
        pods=_listing(plane, "pods", neighbours.decode_pod),
        events=_listing(plane, "events", decode_event),
    )


def _facts(plane: CapturedPlane) -> PlaneFacts:
    return PlaneFacts(plane.name, plane.role, plane.access, plane.detail, plane.at, plane.skew)


def _listing(plane: CapturedPlane, plural: str, read: Callable[[JsonObject], T]) -> Listing[T]:
    reading = plane.reading(plural)
    decoded = (read(item) for item in reading.items)
    # Sorted, so that the order in which a server lists objects never shows in an answer.
    items = sorted(decoded, key=lambda one: (one.meta.namespace, one.meta.name, one.meta.uid))
    return Listing(reading.access, tuple(items), reading.at, reading.detail, reading.is_partial)
