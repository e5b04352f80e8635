"""Builders for the federation controller: a valid moment, of which a test changes one thing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypedDict

from typing_extensions import Unpack

from compute_api_types import labels
from compute_management_operator.hub.federation.observe import (
    CopyPolicy,
    FederationLiveFacts,
    FederationMemory,
    ObservedDeployment,
    ProjectDeployment,
    read_deployment_status,
)
from compute_management_operator.hub.indexes import read_scale
from compute_management_operator.planes import DEPLOYMENT, HOME, HUB, POLICY
from compute_operator_kit.core.json import Json, JsonObject
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Unreadable

PROJECT: Final = PlaneName("acme")
NOW: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
NAMESPACE_UID: Final = Uid("0b9f6a52-55a1-4c0e-8d0f-2f6f3a1c7e44")
HUB_NAMESPACE: Final = f"ns-{NAMESPACE_UID}"
KEY: Final = ObjectKey(PROJECT, DEPLOYMENT, "default", "web-us-dfw")
COPY_KEY: Final = ObjectKey(HUB, DEPLOYMENT, HUB_NAMESPACE, "web-us-dfw")
OPERATOR: Final = ObjectKey(
    HOME, Kind("apps", "v1", "deployments", "Deployment"), "compute-system", "management"
)
DELETED: Final = "2026-06-20T08:00:00Z"
IDENTITY: Final[Mapping[str, str]] = {
    labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
    labels.UPSTREAM_NAMESPACE: "default",
}


class DeploymentChanges(TypedDict, total=False):
    """The changes of a project deployment that a test may make."""

    city: str
    is_deleting: bool
    has_finalizer: bool
    recorded: str
    annotations: Mapping[str, str]
    generation: int
    status: JsonObject
    min_replicas: Json


class CopyChanges(TypedDict, total=False):
    """The changes of a copy on the hub that a test may make."""

    city: str
    routed_to: str
    is_deleting: bool
    labels: Mapping[str, str]
    stamped: str | None
    generation: int
    status: JsonObject
    created: str
    namespace: str
    suspended: str


class SeenChanges(TypedDict, total=False):
    """The changes of the moment that a test may make."""

    deployment: ProjectDeployment | Absent
    copy: ProjectDeployment | Absent
    hub_name: str
    hub_namespace: Metadata | Absent
    strays: tuple[ObjectKey, ...]
    policies: tuple[CopyPolicy, ...]
    needed_by_others: frozenset[str]
    serving_cells: tuple[str, ...] | Unreadable
    holds_ours: bool
    is_project_suspended: bool | None
    live: FederationLiveFacts
    known: FederationMemory


def a_deployment(**changed: Unpack[DeploymentChanges]) -> ProjectDeployment:
    annotations = {
        labels.FEDERATION_NAMESPACE: changed.get("recorded", HUB_NAMESPACE),
        **changed.get("annotations", {}),
    }
    metadata = Metadata(
        name=KEY.name,
        namespace=KEY.namespace,
        uid=Uid("project-wd"),
        resource_version="40",
        generation=changed.get("generation", 3),
        deletion_timestamp=DELETED if changed.get("is_deleting") else "",
        annotations={key: text for key, text in annotations.items() if text},
        finalizers=(labels.FEDERATION_FINALIZER,) if changed.get("has_finalizer", True) else (),
    )
    city = changed.get("city", "DFW")
    spec: JsonObject = {
        "cityCode": city,
        "scaleSettings": {"minReplicas": changed.get("min_replicas", 2)},
    }
    return ProjectDeployment(
        KEY,
        metadata,
        city,
        read_scale({"spec": spec}),
        read_deployment_status(changed.get("status", {})),
        whole_spec=spec,
    )


def a_copy(**changed: Unpack[CopyChanges]) -> ProjectDeployment:
    city = changed.get("city", "DFW")
    stamped = changed.get("stamped", "3")
    routing = {labels.TOPOLOGY_CITY_CODE: changed.get("routed_to", city)}
    namespace = changed.get("namespace", HUB_NAMESPACE)
    annotations = {} if stamped is None else {labels.PROJECT_GENERATION: stamped}
    if "suspended" in changed:
        annotations[labels.SUSPENDED] = changed["suspended"]
    metadata = Metadata(
        name=KEY.name,
        namespace=namespace,
        uid=Uid("hub-wd"),
        resource_version="70",
        generation=changed.get("generation", 5),
        creation_timestamp=changed.get("created", "2026-06-20T08:00:00Z"),
        deletion_timestamp=DELETED if changed.get("is_deleting") else "",
        labels=routing | dict(changed.get("labels", IDENTITY)),
        annotations=annotations,
    )
    key = ObjectKey(COPY_KEY.plane, COPY_KEY.kind, namespace, COPY_KEY.name)
    status = read_deployment_status(changed.get("status", {}))
    return ProjectDeployment(key, metadata, city, 2, status)


def a_hub_namespace(
    with_labels: Mapping[str, str] = IDENTITY, *, is_deleting: bool = False
) -> Metadata:
    return Metadata(
        name=HUB_NAMESPACE,
        namespace="",
        uid=Uid("hub-ns"),
        resource_version="9",
        deletion_timestamp=DELETED if is_deleting else "",
        labels=with_labels,
    )


def a_policy(code: str = "DFW", name: str = "") -> CopyPolicy:
    key = ObjectKey(HUB, POLICY, HUB_NAMESPACE, name or f"city-{code.lower()}")
    return CopyPolicy(key, code)


def a_moment(**changed: Unpack[SeenChanges]) -> ObservedDeployment:
    """A deployment that is federated and settled."""
    return ObservedDeployment(
        key=KEY,
        deployment=changed.get("deployment", a_deployment()),
        hub_name=changed.get("hub_name", HUB_NAMESPACE),
        hub_namespace=changed.get("hub_namespace", a_hub_namespace()),
        copy=changed.get("copy", a_copy()),
        strays=changed.get("strays", ()),
        policies=changed.get("policies", (a_policy(),)),
        needed_by_others=changed.get("needed_by_others", frozenset()),
        serving_cells=changed.get("serving_cells", ("dfw-1",)),
        holds_ours=changed.get("holds_ours", False),
        is_project_suspended=changed.get("is_project_suspended", False),
        live=changed.get(
            "live", FederationLiveFacts(namespace=NAMESPACE_UID, hub_namespace=a_hub_namespace())
        ),
        known=changed.get("known", FederationMemory(repairs_left=3, operator=OPERATOR)),
    )


def a_condition(
    kind: str, status: str, reason: str, message: str = "", *, since: str = "2026-06-20T08:30:00Z"
) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def a_report(
    *conditions: JsonObject, cells: str | None = "dfw-1", observed: int = 5, ready: int = 1
) -> JsonObject:
    """A hub status as the interpreter writes it; no cells: the condition alone, None: not even."""
    reported: list[Json] = [*conditions]
    if cells is not None:
        reported.append(a_condition("CellsReporting", "True", "AllCellsReport", cells))
    return {
        "replicas": 2,
        "desiredReplicas": 2,
        "readyReplicas": ready,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "observedGeneration": observed,
        "observedTemplateGeneration": 5,
        "location": {"name": "us-dallas-1", "namespace": ""},
        "conditions": reported,
    }
