"""Reads a quota claim and what is known about it: whose slot its name is, and which cell it names.

Prevents a decision on what a claim states alone: labels and names can be written by a cell or by a
tenant, the deployment and its city come from the project's cache, the city of a cell from the hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_api_types import conditions, labels, names, reasons
from compute_management_operator import hub_indexes
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT
from compute_management_operator.outlines import DEPLOYMENT_OUTLINE
from compute_management_operator.plane_names import HUB
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.objects import Absent, Metadata, Snapshot
from compute_operator_kit.wire import (
    JsonObject,
    member_int,
    member_list,
    member_object,
    member_text,
)

OUR_RESOURCES: Final = "compute.datumapis.com/"


class Backing(StrEnum):
    """What stands behind a claim that names a cell."""

    BACKED = "backed"  # the slot of a deployment in the city of that cell
    MISPLACED = "misplaced"  # the slot of a deployment in another city
    UNBACKED = "unbacked"  # of no deployment, or beyond its replicas


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim, as far as its owner matters."""

    key: ObjectKey
    uid: Uid
    resource_version: str
    cell: str  # as its label names it; "" where it names none
    slot: tuple[str, int] | None  # deployment and ordinal; None: not a name of ours
    is_compute: bool  # asks for compute resources alone

    @property
    def place(self) -> str:
        return f"{self.key.namespace}/{self.key.name}"


@dataclass(frozen=True, slots=True)
class Placed:
    """A deployment of a project: its city and how many replicas it asks for."""

    city_code: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Holder:
    """The Cluster that a claim names."""

    key: ObjectKey
    uid: Uid
    city_code: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An Instance that is held by another cell's claim, and that claim, at one moment."""

    key: ObjectKey  # of the hub Instance
    project: PlaneName
    claim: Claim | Absent
    placed: Placed
    holder: Holder | Absent
    is_served: bool  # a Cluster carries the city of the deployment
    operator: ObjectKey
    idle_looks: int = 0  # looks in a row that found nothing to remove


def read_claim(snapshot: Snapshot) -> Claim:
    metadata = snapshot.metadata
    instance = names.parse_claim_name(metadata.name)
    requests = member_list(member_object(snapshot.decode(), "spec"), "requests")
    asked = [member_text(one, "resourceType") for one in requests if isinstance(one, dict)]
    return Claim(
        key=snapshot.key,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        cell=metadata.labels.get(labels.SOURCE_CLUSTER, ""),
        slot=None if instance is None else names.parse_instance_name(instance),
        is_compute=bool(asked) and all(one.startswith(OUR_RESOURCES) for one in asked),
    )


def find_placed(caches: Caches, plane: PlaneName, namespace: str, name: str) -> Placed | Absent:
    """The deployment of that name, by the cache; read it only where the cache is complete."""
    entry = caches.view(plane, DEPLOYMENT).entry(namespace, name)
    if entry is None:
        return Absent()
    spec = member_object(DEPLOYMENT_OUTLINE.read(entry.snapshot), "spec")
    replicas = member_int(member_object(spec, "scaleSettings"), "minReplicas")
    return Placed(hub_indexes.find_value(entry, hub_indexes.CITY), replicas)


def read_holder(key: ObjectKey, metadata: Metadata) -> Holder:
    return Holder(key, metadata.uid, hub_indexes.read_routing(metadata))


def find_holder(caches: Caches, cell: str) -> Holder | Absent:
    entry = caches.view(HUB, CLUSTER).entry("", cell)
    return Absent() if entry is None else read_holder(entry.key, entry.metadata)


def judge_backing(claim: Claim, placed: Placed | Absent, holder: Holder | Absent) -> Backing:
    """By the deployment that its name leads to and the city of the cell it names. Pure."""
    if claim.slot is None or isinstance(placed, Absent):
        return Backing.UNBACKED
    city = "" if isinstance(holder, Absent) else holder.city_code
    if not city or city != placed.city_code:
        return Backing.MISPLACED
    return Backing.BACKED if claim.slot[1] < placed.replicas else Backing.UNBACKED


def is_held_back(status: JsonObject) -> bool:
    """Whether an Instance reports that its claim cannot be made or belongs to another cell."""
    for entry in member_list(status, "conditions"):
        if isinstance(entry, dict) and member_text(entry, "type") == conditions.QUOTA_GRANTED:
            return member_text(entry, "reason") == reasons.QUOTA_MISCONFIGURED
    return False
