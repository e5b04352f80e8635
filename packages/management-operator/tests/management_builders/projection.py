"""Builders for the projection controller: a valid moment, of which a test changes one thing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypedDict

from typing_extensions import Unpack

from compute_api_types import labels
from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.projection.observe import (
    HubInstance,
    InstanceDeployment,
    ObservedInstance,
    ReportingCell,
)
from compute_management_operator.planes import HUB, INSTANCE
from compute_management_operator.stored_status import read_status
from compute_operator_kit.controller.mass_delete import Ruling
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, OwnerReference, Unreadable
from management_builders.federation import DELETED, OPERATOR

NOW: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
NAMESPACE_UID: Final = Uid("0b9f6a52-55a1-4c0e-8d0f-2f6f3a1c7e44")
HUB_NAMESPACE: Final = f"ns-{NAMESPACE_UID}"
PLACE: Final = ProjectNamespace(PlaneName("acme"), "default")
SOURCE: Final = ObjectKey(HUB, INSTANCE, HUB_NAMESPACE, "web-us-dfw-0")
PROJECTED: Final = ObjectKey(PLACE.plane, INSTANCE, "default", "web-us-dfw-0")
IDENTITY: Final[Mapping[str, str]] = {
    labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
    labels.UPSTREAM_NAMESPACE: "default",
}
LINKS: Final[Mapping[str, str]] = {
    **IDENTITY,
    labels.WORKLOAD_DEPLOYMENT_NAME: "web-us-dfw",
    labels.WORKLOAD_DEPLOYMENT_UID: "cell-wd",
    labels.CELL: "dfw-1",
}
OURS: Final = OwnerReference(
    "compute.datumapis.com/v1alpha", "WorkloadDeployment", "web-us-dfw", Uid("project-wd")
)


class InstanceChanges(TypedDict, total=False):
    """The changes of an Instance that a test may make."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owners: tuple[OwnerReference, ...]
    is_deleting: bool
    spec: JsonObject
    status: JsonObject
    size: int


class SeenChanges(TypedDict, total=False):
    """The changes of the moment that a test may make."""

    source: HubInstance | Absent
    hub_namespace: Metadata | Absent
    project: PlaneName | None
    namespace: str
    is_engaged: bool
    place: ProjectNamespace | None
    namespace_uid: Uid | Absent | None
    deployment: InstanceDeployment | Absent | Unreadable
    cell: ReportingCell | Absent
    projection: HubInstance | Absent | Unreadable
    other_owners: tuple[OwnerReference, ...]
    is_project_deleting: bool
    ruling: Ruling
    since: Mapping[str, datetime]
    needs_cell_label: bool
    operator: ObjectKey | None


def _instance(key: ObjectKey, changed: InstanceChanges) -> HubInstance:
    metadata = Metadata(
        name=key.name,
        namespace=key.namespace,
        uid=Uid(f"uid-on-{key.plane}"),
        resource_version="12",
        deletion_timestamp=DELETED if changed.get("is_deleting") else "",
        labels=changed.get("labels", LINKS),
        annotations=changed.get("annotations", {labels.INSTANCE_UID: "cell-1"}),
        owners=changed.get("owners", ()),
    )
    runtime: JsonObject = {"runtime": {}}
    spec, status = changed.get("spec", runtime), read_status(changed.get("status", {}))
    return HubInstance(key, metadata, spec, status, changed.get("size", 100))


def a_source(**changed: Unpack[InstanceChanges]) -> HubInstance:
    return _instance(SOURCE, changed)


def a_projection(**changed: Unpack[InstanceChanges]) -> HubInstance:
    return _instance(PROJECTED, {"owners": (OURS,), **changed})


def a_project_deployment(
    city: str = "DFW", *, is_deleting: bool = False, scale: int = 1
) -> InstanceDeployment:
    metadata = Metadata(
        name="web-us-dfw",
        namespace="default",
        uid=Uid("project-wd"),
        resource_version="5",
        deletion_timestamp=DELETED if is_deleting else "",
    )
    return InstanceDeployment(metadata, city, scale)


def a_hub_namespace(with_labels: Mapping[str, str] = IDENTITY) -> Metadata:
    return Metadata(
        name=HUB_NAMESPACE,
        namespace="",
        uid=Uid("hub-ns"),
        resource_version="9",
        labels=with_labels,
    )


def a_moment(**changed: Unpack[SeenChanges]) -> ObservedInstance:
    """A hub Instance that is in order and not projected yet."""
    return ObservedInstance(
        key=SOURCE,
        source=changed.get("source", a_source()),
        hub_namespace=changed.get("hub_namespace", a_hub_namespace()),
        project=changed.get("project", PLACE.plane),
        namespace=changed.get("namespace", "default"),
        is_engaged=changed.get("is_engaged", True),
        project_namespace=changed.get("place", PLACE),
        namespace_uid=changed.get("namespace_uid", NAMESPACE_UID),
        deployment=changed.get("deployment", a_project_deployment()),
        cell=changed.get("cell", ReportingCell("dfw-1", "DFW")),
        projection=changed.get("projection", Absent()),
        other_owners=changed.get("other_owners", ()),
        is_project_deleting=changed.get("is_project_deleting", False),
        **_around(changed),
    )


class _Around(TypedDict, total=False):
    ruling: Ruling
    since: Mapping[str, datetime]
    needs_cell_label: bool
    operator: ObjectKey | None


def _around(changed: SeenChanges) -> _Around:
    around: _Around = {"operator": changed.get("operator", OPERATOR)}
    if "ruling" in changed:
        around["ruling"] = changed["ruling"]
    if "since" in changed:
        around["since"] = changed["since"]
    if "needs_cell_label" in changed:
        around["needs_cell_label"] = changed["needs_cell_label"]
    return around


def a_status(*conditions: JsonObject) -> JsonObject:
    entries: list[Json] = [*conditions]
    return {"conditions": entries}
