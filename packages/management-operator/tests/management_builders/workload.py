"""Builders for the Workload controller: a valid moment, of which a test changes one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypedDict

from typing_extensions import Unpack

from compute_api_types import labels
from compute_management_operator.planes import DEPLOYMENT, WORKLOAD
from compute_management_operator.stored_status import read_status
from compute_management_operator.workload.observe import (
    DeploymentIdentity,
    NetworkName,
    ObservedWorkload,
    WorkloadChild,
    WorkloadPlacement,
    read_child_status,
    read_stored_placements,
)
from compute_operator_kit.cache.optional_kinds import Off
from compute_operator_kit.core.json import Json, JsonObject, member_list
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Metadata, Unreadable

PLANE = PlaneName("acme")
NOW = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
UID = Uid("6d0f6c0e-6f5e-4c3b-9a0a-1f2d3c4b5a69")


class DeploymentChanges(TypedDict, total=False):
    """What a test may say about a deployment."""

    workload_uid: str
    status: JsonObject
    is_deleting: bool


class SeenChanges(TypedDict, total=False):
    """What a test may say about the moment."""

    name: str
    placements: Mapping[str, tuple[str, ...]]
    deployments: tuple[WorkloadChild, ...]
    others: tuple[WorkloadChild, ...]
    served: frozenset[str] | Unreadable | Off
    networks: tuple[str, ...]
    present: frozenset[NetworkName] | Unreadable | Off
    is_deleting: bool
    is_project_deleting: bool
    has_finalizer: bool
    status: JsonObject


@dataclass(frozen=True, slots=True)
class Builders:
    """`a_deployment("web", "DFW")`, `a_moment(placements={…})`, `a_status(…)`."""

    now: datetime = NOW
    uid: Uid = UID
    template: JsonObject = field(default_factory=lambda: {"spec": {"runtime": {}}})

    def a_deployment(
        self, placement: str, city: str, name: str = "", **changed: Unpack[DeploymentChanges]
    ) -> WorkloadChild:
        chosen = name or f"web-{placement}-{city.lower()}"
        metadata = Metadata(
            name=chosen,
            namespace="default",
            uid=Uid(f"uid-of-{chosen}"),
            resource_version="7",
            generation=2,
            deletion_timestamp="2026-06-20T08:00:00Z" if changed.get("is_deleting") else "",
        )
        return WorkloadChild(
            key=ObjectKey(PLANE, DEPLOYMENT, "default", chosen),
            metadata=metadata,
            workload_uid=changed.get("workload_uid", UID),
            identity=DeploymentIdentity(placement, city),
            status=read_child_status(changed.get("status", {})),
        )

    def a_status(
        self,
        available: tuple[str, str, str] | None = None,
        ready: tuple[str, str, str] | None = None,
        *,
        observed: int = 2,
        replicas: int = 1,
    ) -> JsonObject:
        reported: list[Json] = [
            {"type": kind, "status": stated[0], "reason": stated[1], "message": stated[2]}
            for kind, stated in (("Available", available), ("Ready", ready))
            if stated is not None
        ]
        return {
            "replicas": replicas,
            "desiredReplicas": replicas,
            "readyReplicas": replicas,
            "currentReplicas": replicas,
            "updatedReplicas": replicas,
            "observedGeneration": observed,
            "conditions": reported,
        }

    def ready(self, **changed: int) -> JsonObject:
        return self.a_status(
            ("True", "StableInstanceFound", "1/1 instances are ready"),
            ("True", "ReplicasAvailable", "1/1 replicas available"),
            observed=changed.get("observed", 2),
            replicas=changed.get("replicas", 1),
        )

    def a_moment(self, **changed: Unpack[SeenChanges]) -> ObservedWorkload:
        placements = changed.get("placements", {"texas": ("DFW",)})
        deployments = changed.get("deployments", ())
        beside = (*deployments, *changed.get("others", ()))
        name = changed.get("name", "web")
        metadata = Metadata(
            name=name,
            namespace="default",
            uid=UID,
            resource_version="40",
            generation=3,
            deletion_timestamp="2026-06-20T08:00:00Z" if changed.get("is_deleting") else "",
            finalizers=(labels.WORKLOAD_FINALIZER,) if changed.get("has_finalizer", True) else (),
        )
        networks, status = changed.get("networks", ("default",)), changed.get("status", {})
        return ObservedWorkload(
            key=ObjectKey(PLANE, WORKLOAD, "default", name),
            metadata=metadata,
            template=self.template,
            placements=tuple(
                WorkloadPlacement(one, cities, {"minReplicas": 1})
                for one, cities in placements.items()
            ),
            networks=tuple(NetworkName("default", network) for network in networks),
            status=read_status(status),
            stored_placements=read_stored_placements(status),
            is_reported=bool(member_list(status, "placements")),
            deployments=deployments,
            holders={one.name: one.workload_uid for one in beside},
            served=changed.get("served", frozenset({"DFW", "LHR", "ORD"})),
            present_networks=changed.get("present", frozenset({NetworkName("default", "default")})),
            is_project_deleting=changed.get("is_project_deleting", False),
        )
