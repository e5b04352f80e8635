"""Builders for the projection controller: a valid moment, of which a test changes one thing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypedDict

from typing_extensions import Unpack

from compute_api_types import labels
from compute_management_operator.identities import Place
from compute_management_operator.kinds import INSTANCE
from compute_management_operator.plane_names import HUB
from compute_management_operator.projection.observe import Cell, Deployment, Instance, Seen
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.mass_delete import Ruling
from compute_operator_kit.objects import Absent, Metadata, OwnerReference, Unreadable
from compute_operator_kit.wire import Json, JsonObject
from management_builders.federation import DELETED, OPERATOR

NOW: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
NAMESPACE_UID: Final = Uid("0b9f6a52-55a1-4c0e-8d0f-2f6f3a1c7e44")
HUB_NAMESPACE: Final = f"ns-{NAMESPACE_UID}"
PLACE: Final = Place(PlaneName("acme"), "default")
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
    """What a test may say about an Instance."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owners: tuple[OwnerReference, ...]
    is_deleting: bool
    spec: JsonObject
    status: JsonObject
    size: int


class SeenChanges(TypedDict, total=False):
    """What a test may say about the moment."""

    source: Instance | Absent
    hub_namespace: Metadata | Absent
    project: PlaneName | None
    namespace: str
    is_engaged: bool
    place: Place | None
    namespace_uid: Uid | Absent | None
    deployment: Deployment | Absent | Unreadable
    cell: Cell | Absent
    found: Instance | Absent | Unreadable
    other_owners: tuple[OwnerReference, ...]
    is_project_deleting: bool
    ruling: Ruling
    since: Mapping[str, datetime]
    needs_cell_label: bool
    operator: ObjectKey | None


def _instance(key: ObjectKey, changed: InstanceChanges) -> Instance:
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
    spec = changed.get("spec", runtime)
    return Instance(key, metadata, spec, changed.get("status", {}), changed.get("size", 100))


def a_source(**changed: Unpack[InstanceChanges]) -> Instance:
    return _instance(SOURCE, changed)


def a_projection(**changed: Unpack[InstanceChanges]) -> Instance:
    return _instance(PROJECTED, {"owners": (OURS,), **changed})


def a_project_deployment(
    city: str = "DFW", *, is_deleting: bool = False, scale: int = 1
) -> Deployment:
    metadata = Metadata(
        name="web-us-dfw",
        namespace="default",
        uid=Uid("project-wd"),
        resource_version="5",
        deletion_timestamp=DELETED if is_deleting else "",
    )
    return Deployment(metadata, city, scale)


def a_hub_namespace(found: Mapping[str, str] = IDENTITY) -> Metadata:
    return Metadata(
        name=HUB_NAMESPACE, namespace="", uid=Uid("hub-ns"), resource_version="9", labels=found
    )


def a_moment(**changed: Unpack[SeenChanges]) -> Seen:
    """A hub Instance that is in order and not projected yet."""
    return Seen(
        key=SOURCE,
        source=changed.get("source", a_source()),
        hub_namespace=changed.get("hub_namespace", a_hub_namespace()),
        project=changed.get("project", PLACE.plane),
        namespace=changed.get("namespace", "default"),
        is_engaged=changed.get("is_engaged", True),
        place=changed.get("place", PLACE),
        namespace_uid=changed.get("namespace_uid", NAMESPACE_UID),
        deployment=changed.get("deployment", a_project_deployment()),
        cell=changed.get("cell", Cell("dfw-1", "DFW")),
        found=changed.get("found", Absent()),
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
    told: list[Json] = [*conditions]
    return {"conditions": told}
