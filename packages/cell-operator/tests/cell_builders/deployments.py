"""One moment of a deployment, as `observe` would give it; a test changes one thing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cell_builders.candidates import DEPLOYMENT as NAME
from cell_builders.candidates import OTHER, UID, an_owner
from compute_api_types.template_hash import HashVerdict, derive_template_hash
from compute_cell_operator.deployment.observe import FoundInstance, LocationsSeen, Seen
from compute_cell_operator.deployment.slots import Candidate, derive_slots
from compute_cell_operator.kinds import DEPLOYMENT, INSTANCE
from compute_cell_operator.network.observe import NetworkSeen
from compute_cell_operator.network.state import State
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.told import Told
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.objects import Metadata, Unreadable
from compute_operator_kit.wire import Json, JsonObject, member_object

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
    """What `QuotaGranted` says of an Instance."""

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
    echo: HashVerdict | None = HashVerdict.CURRENT,
    programmed: bool = True,
    quota: Quota | None = GRANTED,
    gates: tuple[str, ...] = (),
    location: str = "dfw",
    interfaces: int = 1,
    terminating: bool = False,
    owner: Uid | None = UID,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> FoundInstance:
    name = f"{NAME}-{ordinal}"
    links = {**LINKS, "compute.datumapis.com/instance-index": str(ordinal), **(labels or {})}
    said = [Told("Ready", "True" if ready else "False", reason or "Available", message)]
    said.append(Told("Programmed", "True" if programmed else "Unknown", "Programmed", ""))
    if quota is not None:
        said.append(Told("QuotaGranted", quota.status, quota.reason, f"quota of {name}"))
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
    return FoundInstance(
        key=ObjectKey(CELL, INSTANCE, NAMESPACE, name),
        metadata=metadata,
        revision=revision,
        echo=echo,
        gates=gates,
        location=location,
        interfaces=interfaces,
        conditions=tuple(said),
    )


def a_foreign_instance(ordinal: int) -> FoundInstance:
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
    *instances: FoundInstance,
    desired: int = 1,
    spec: JsonObject | None = None,
    status: JsonObject | None = None,
    networking: State = State.OFF,
    locations: Sequence[str] | Unreadable = ("dfw",),
    network: NetworkSeen | Unreadable | None = None,
    cell_city: str = "",
    deleting: bool = False,
    namespace_deleting: bool = False,
    annotations: dict[str, str] | None = None,
    generation: int = 1,
) -> Seen:
    by_name = {found.metadata.name: found for found in instances}
    candidates = [
        Candidate(found.metadata, found.revision, is_ready=found.is_ready)
        for found in by_name.values()
    ]
    slots = derive_slots(NAME, UID, candidates)
    metadata = Metadata(
        name=NAME,
        namespace=NAMESPACE,
        uid=UID,
        resource_version="7",
        generation=generation,
        deletion_timestamp="2026-06-20T08:00:00Z" if deleting else "",
        annotations=annotations or {},
    )
    spec = a_spec(desired) if spec is None else spec
    return Seen(
        key=KEY,
        metadata=metadata,
        spec=spec,
        status=status or {},
        slots=slots,
        instances=by_name,
        template_hash=derive_template_hash(member_object(spec, "template")),
        networking=networking,
        locations=locations
        if isinstance(locations, Unreadable)
        else LocationsSeen(tuple(sorted(locations))),
        network=NetworkSeen(()) if network is None else network,
        is_namespace_deleting=namespace_deleting,
        cell_city=cell_city,
        owned=tuple(by_name[one.name] for one in slots.owned),
    )


def a_status(reason: str, *, message: str = "", **counters: int) -> JsonObject:
    """A stored status whose three conditions carry this reason."""
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
