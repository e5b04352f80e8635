"""A quota claim, the deployment of its slot and the cell that it names, as typed values.

Labels and names can be written by a cell or by a tenant, so a claim alone decides nothing: the
deployment and its city come from the project's cache, the city of a cell from the hub.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_api_types import conditions, labels, names, reasons
from compute_management_operator.hub import indexes
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB
from compute_management_operator.stored_status import StoredCondition
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import member_list, member_object, member_text
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot

OUR_RESOURCES: Final = "compute.datumapis.com/"


class Backing(StrEnum):
    """The deployment that backs a claim, compared with the cell that the claim names."""

    BACKED = "backed"  # the slot of a deployment in the city of that cell
    MISPLACED = "misplaced"  # the slot of a deployment in another city
    UNBACKED = "unbacked"  # of no deployment, or beyond its replicas


@dataclass(frozen=True, slots=True)
class ProjectClaim:
    """A ResourceClaim: the slot of its name, the cell of its label."""

    key: ObjectKey
    uid: Uid
    resource_version: str
    cell: str  # as its label names it; "" where it names none
    slot: tuple[str, int] | None  # deployment and ordinal; None: not a name of ours
    is_compute: bool  # requests compute resources and no others

    @property
    def claim_key(self) -> str:
        return f"{self.key.namespace}/{self.key.name}"


@dataclass(frozen=True, slots=True)
class PlacedSlot:
    """A deployment of a project: its city and the replicas it asks for."""

    city_code: str
    replicas: int


@dataclass(frozen=True, slots=True)
class SlotHolder:
    """The Cluster that a claim names."""

    key: ObjectKey
    uid: Uid
    city_code: str


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """An Instance that is held back by another cell's claim, and that claim, at one moment."""

    key: ObjectKey  # of the hub Instance
    project: PlaneName
    claim: ProjectClaim | Absent
    placed: PlacedSlot
    holder: SlotHolder | Absent
    is_served: bool  # a Cluster carries the city of the deployment
    operator: ObjectKey
    idle_reads: int = 0  # reads in a row that showed nothing to remove


def read_claim(snapshot: Snapshot) -> ProjectClaim:
    metadata = snapshot.metadata
    instance = names.parse_claim_name(metadata.name)
    requests = member_list(member_object(snapshot.decode(), "spec"), "requests")
    asked = [member_text(one, "resourceType") for one in requests if isinstance(one, dict)]
    return ProjectClaim(
        key=snapshot.key,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        cell=metadata.labels.get(labels.SOURCE_CLUSTER, ""),
        slot=None if instance is None else names.parse_instance_name(instance),
        is_compute=bool(asked) and all(one.startswith(OUR_RESOURCES) for one in asked),
    )


def find_placed(caches: Caches, plane: PlaneName, namespace: str, name: str) -> PlacedSlot | Absent:
    """The deployment of that name in the cache, which must be complete."""
    entry = caches.lister(plane, DEPLOYMENT).entry(namespace, name)
    if entry is None:
        return Absent()
    replicas = indexes.read_most(DEPLOYMENT_DECODER.read(entry.snapshot))
    return PlacedSlot(indexes.find_value(entry, indexes.CITY), replicas)


def read_holder(key: ObjectKey, metadata: Metadata) -> SlotHolder:
    return SlotHolder(key, metadata.uid, indexes.read_routing(metadata))


def find_holder(caches: Caches, cell: str) -> SlotHolder | Absent:
    entry = caches.lister(HUB, CLUSTER).entry("", cell)
    return Absent() if entry is None else read_holder(entry.key, entry.metadata)


def derive_backing(
    claim: ProjectClaim, placed: PlacedSlot | Absent, holder: SlotHolder | Absent
) -> Backing:
    """By the deployment of its slot and the city of the cell that it names. Pure."""
    if claim.slot is None or isinstance(placed, Absent):
        return Backing.UNBACKED
    city = "" if isinstance(holder, Absent) else holder.city_code
    if not city or city != placed.city_code:
        return Backing.MISPLACED
    return Backing.BACKED if claim.slot[1] < placed.replicas else Backing.UNBACKED


def is_held_back(stored: Iterable[StoredCondition]) -> bool:
    """Whether an Instance reports that its claim cannot be created or belongs to another cell."""
    granted = conditions.find(stored, conditions.QUOTA_GRANTED)
    return granted is not None and granted.reason == reasons.QUOTA_MISCONFIGURED
