"""One moment of a deployment, as `observe` would give it; a test changes one field of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cell_builders.candidates import DEPLOYMENT as NAME
from cell_builders.candidates import OTHER, UID, an_owner
from compute_api_types.template_hash import HashVerdict, derive_template_hash
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.deployment.observe import (
    ObservedDeployment,
    ObservedLocations,
    read_spec,
    read_status,
)
from compute_cell_operator.deployment.slots import SlotInstance, SlotSuspension, derive_slots
from compute_cell_operator.deployment.template import render
from compute_cell_operator.network.observe import ObservedNetwork
from compute_cell_operator.network.state import NetworkingState
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE
from compute_operator_kit.core.json import Json, JsonObject, member_object
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Metadata, Unreadable

NAMESPACE = "ns-1"
KEY = ObjectKey(CELL, DEPLOYMENT, NAMESPACE, NAME)
LINKS = {
    "compute.datumapis.com/workload-uid": "w-1",
    "compute.datumapis.com/workload-name": "shop",
    "compute.datumapis.com/workload-deployment-uid": str(UID),
    "compute.datumapis.com/workload-deployment-name": NAME,
    "compute.datumapis.com/placement-name": "us",
    "compute.datumapis.com/city-code": "DFW",
}


@dataclass(frozen=True, slots=True)
class Quota:
    """`QuotaGranted` of an Instance."""

    status: str = "True"
    reason: str = "QuotaAvailable"


GRANTED = Quota()


def an_instance(
    ordinal: int | str,
    *,
    ready: bool = True,
    reason: str = "",
    message: str = "",
    revision: HashVerdict = HashVerdict.CURRENT,
    reported: HashVerdict | None = HashVerdict.CURRENT,
    programmed: bool = True,
    quota: Quota | None = GRANTED,
    gates: tuple[str, ...] = (),
    location: str = "dfw",
    interfaces: int = 1,
    terminating: bool = False,
    owner: Uid | None = UID,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    suspension: SlotSuspension = SlotSuspension.NONE,
) -> SlotInstance:
    name = f"{NAME}-{ordinal}"
    links = {**LINKS, "compute.datumapis.com/instance-index": str(ordinal), **(labels or {})}
    conditions = [
        ReportedCondition("Ready", "True" if ready else "False", reason or "Available", message),
        ReportedCondition("Programmed", "True" if programmed else "Unknown", "Programmed", ""),
    ]
    if quota is not None:
        conditions.append(
            ReportedCondition("QuotaGranted", quota.status, quota.reason, f"quota of {name}")
        )
    metadata = Metadata(
        name=name,
        namespace=NAMESPACE,
        uid=Uid(f"uid-of-{name}"),
        resource_version="1",
        deletion_timestamp="2026-06-20T08:00:00Z" if terminating else "",
        labels=links,
        annotations=annotations or {},
        owners=(an_owner(owner),) if owner is not None else (),
    )
    return SlotInstance(
        key=ObjectKey(CELL, INSTANCE, NAMESPACE, name),
        metadata=metadata,
        revision=revision,
        reported_revision=reported,
        gates=gates,
        location=location,
        interfaces=interfaces,
        conditions=tuple(conditions),
        suspension=suspension,
    )


def a_foreign_instance(ordinal: int) -> SlotInstance:
    return an_instance(
        ordinal,
        owner=OTHER,
        labels={"compute.datumapis.com/workload-deployment-uid": str(OTHER)},
    )


def a_spec(
    desired: int = 1, *, template: JsonObject | None = None, policy: str = "OrderedReady"
) -> JsonObject:
    network: Json = [{"network": {"name": "default"}}]
    return {
        "workloadRef": {"name": "shop", "uid": "w-1"},
        "placementName": "us",
        "cityCode": "DFW",
        "template": template or {"spec": {"networkInterfaces": network}},
        "scaleSettings": {"minReplicas": desired, "instanceManagementPolicy": policy},
    }


def a_seen(
    *instances: SlotInstance,
    desired: int = 1,
    spec: JsonObject | None = None,
    status: JsonObject | None = None,
    networking: NetworkingState = NetworkingState.OFF,
    locations: Sequence[str] | Unreadable = ("dfw",),
    network: ObservedNetwork | Unreadable | None = None,
    cell_city: str = "",
    deleting: bool = False,
    namespace_deleting: bool = False,
    finalizers: tuple[str, ...] = (),
    annotations: dict[str, str] | None = None,
    generation: int = 1,
) -> ObservedDeployment:
    slots = derive_slots(NAME, UID, instances)
    metadata = Metadata(
        name=NAME,
        namespace=NAMESPACE,
        uid=UID,
        resource_version="7",
        generation=generation,
        deletion_timestamp="2026-06-20T08:00:00Z" if deleting else "",
        annotations=annotations or {},
        finalizers=finalizers,
    )
    spec = a_spec(desired) if spec is None else spec
    template = member_object(spec, "template")
    return ObservedDeployment(
        key=KEY,
        metadata=metadata,
        spec=read_spec(spec),
        status=read_status(status or {}),
        template=render(template),
        template_hash=derive_template_hash(template),
        slots=slots,
        networking=networking,
        locations=locations
        if isinstance(locations, Unreadable)
        else ObservedLocations(tuple(sorted(locations))),
        network=ObservedNetwork(()) if network is None else network,
        is_namespace_deleting=namespace_deleting,
        cell_city=cell_city,
        owned=slots.owned,
    )


def a_status(reason: str, *, message: str = "", **counters: int) -> JsonObject:
    """A stored status with this reason in its three conditions."""
    return {
        "conditions": [
            {
                "type": kind,
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": "2026-06-20T08:00:00Z",
                "observedGeneration": 1,
            }
            for kind in ("Available", "ReplicasReady", "Ready")
        ],
        "observedGeneration": 1,
        **counters,
    }
