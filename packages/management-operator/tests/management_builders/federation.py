"""Builders for the federation controller: a valid moment, of which a test changes one thing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypedDict

from typing_extensions import Unpack

from compute_api_types import labels
from compute_management_operator.federation.observe import (
    Deployment,
    Fresh,
    Known,
    Policy,
    Seen,
)
from compute_management_operator.kinds import DEPLOYMENT, POLICY
from compute_management_operator.plane_names import HOME, HUB
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Absent, Metadata, Unreadable
from compute_operator_kit.wire import Json, JsonObject

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
    """What a test may say about a project deployment."""

    city: str
    is_deleting: bool
    has_finalizer: bool
    recorded: str
    annotations: Mapping[str, str]
    generation: int
    status: JsonObject
    min_replicas: Json


class CopyChanges(TypedDict, total=False):
    """What a test may say about a copy on the hub."""

    city: str
    routed_to: str
    is_deleting: bool
    labels: Mapping[str, str]
    stamped: str | None
    generation: int
    status: JsonObject
    created: str
    namespace: str


class SeenChanges(TypedDict, total=False):
    """What a test may say about the moment."""

    deployment: Deployment | Absent
    copy: Deployment | Absent
    hub_name: str
    hub_namespace: Metadata | Absent
    strays: tuple[Deployment, ...]
    policies: tuple[Policy, ...]
    needed_by_others: frozenset[str]
    serving_cells: tuple[str, ...] | Unreadable
    holds_ours: bool
    fresh: Fresh
    known: Known


def a_deployment(**changed: Unpack[DeploymentChanges]) -> Deployment:
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
    spec: JsonObject = {
        "cityCode": changed.get("city", "DFW"),
        "scaleSettings": {"minReplicas": changed.get("min_replicas", 2)},
    }
    return Deployment(KEY, metadata, spec, changed.get("status", {}), whole_spec=spec)


def a_copy(**changed: Unpack[CopyChanges]) -> Deployment:
    city = changed.get("city", "DFW")
    stamped = changed.get("stamped", "3")
    routing = {labels.TOPOLOGY_CITY_CODE: changed.get("routed_to", city)}
    namespace = changed.get("namespace", HUB_NAMESPACE)
    metadata = Metadata(
        name=KEY.name,
        namespace=namespace,
        uid=Uid("hub-wd"),
        resource_version="70",
        generation=changed.get("generation", 5),
        creation_timestamp=changed.get("created", "2026-06-20T08:00:00Z"),
        deletion_timestamp=DELETED if changed.get("is_deleting") else "",
        labels=routing | dict(changed.get("labels", IDENTITY)),
        annotations={} if stamped is None else {labels.PROJECT_GENERATION: stamped},
    )
    key = ObjectKey(COPY_KEY.plane, COPY_KEY.kind, namespace, COPY_KEY.name)
    spec: JsonObject = {"cityCode": city, "scaleSettings": {"minReplicas": 2}}
    return Deployment(key, metadata, spec, changed.get("status", {}))


def a_hub_namespace(found: Mapping[str, str] = IDENTITY, *, is_deleting: bool = False) -> Metadata:
    return Metadata(
        name=HUB_NAMESPACE,
        namespace="",
        uid=Uid("hub-ns"),
        resource_version="9",
        deletion_timestamp=DELETED if is_deleting else "",
        labels=found,
    )


def a_policy(code: str = "DFW", name: str = "") -> Policy:
    key = ObjectKey(HUB, POLICY, HUB_NAMESPACE, name or f"city-{code.lower()}")
    return Policy(key, code)


def a_moment(**changed: Unpack[SeenChanges]) -> Seen:
    """A deployment that is federated and settled."""
    return Seen(
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
        fresh=changed.get("fresh", Fresh(namespace=NAMESPACE_UID, hub_namespace=a_hub_namespace())),
        known=changed.get("known", Known(repairs_left=3, operator=OPERATOR)),
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
    told: list[Json] = [*conditions]
    if cells is not None:
        told.append(a_condition("CellsReporting", "True", "AllCellsReport", cells))
    return {
        "replicas": 2,
        "desiredReplicas": 2,
        "readyReplicas": ready,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "observedGeneration": observed,
        "observedTemplateGeneration": 5,
        "location": {"name": "us-dallas-1", "namespace": ""},
        "conditions": told,
    }
