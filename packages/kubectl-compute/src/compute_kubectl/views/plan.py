"""`plan`: what a Workload would change, before it is written. Pure.

The rules are those of admission. Deployments are matched by placement and city as the management
operator matches them, and templates are compared by their hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from compute_api_types import names, sizes
from compute_api_types.referenced_data.references import references
from compute_api_types.validation import (
    NETWORKING_OFF,
    CannotDecide,
    Facts,
    derive_denial,
    review_workload,
    warnings,
)
from compute_api_types.wire import JsonObject
from compute_kubectl.explain.quota_facts import short_type
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.decode_compute import decode_workload
from compute_kubectl.snapshot.json_reads import text_at, value_at
from compute_kubectl.snapshot.objects import SeenDeployment, SeenWorkload
from compute_kubectl.snapshot.planes import Snapshot


class Change(StrEnum):
    """What happens to one WorkloadDeployment."""

    CREATE = "create"
    SCALE = "scale"
    ROLL = "roll"
    DELETE = "delete"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """The change of the deployment of one placement and city."""

    change: Change
    name: str
    placement: str
    city: str
    before: int
    after: int
    clusters: tuple[str, ...] | None = None
    """Clusters that carry the city code; None where the hub was not read."""


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """What the change needs of one resource type, and what is left."""

    resource_type: str
    needed: int
    available: int
    each: int = 0
    """What one Instance needs."""

    @property
    def first_to_wait(self) -> int:
        """Which of the added Instances is the first that finds too little, counted from 1."""
        return max(self.available, 0) // self.each + 1 if self.each else 1

    @property
    def is_short(self) -> bool:
        return self.needed > self.available

    @property
    def short_name(self) -> str:
        return short_type(self.resource_type)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """What would happen; advice, because others may take the quota first."""

    name: str
    refusals: tuple[str, ...] = ()
    message: str = ""
    warnings: tuple[str, ...] = ()
    changes: tuple[DeploymentChange, ...] = ()
    needs: tuple[QuotaNeed, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def waits(self) -> tuple[str, ...]:
        """What it would wait for."""
        short = [
            f"quota: {one.short_name}: {one.needed} needed, {one.available} left, "
            f"new Instance {one.first_to_wait} is the first to wait"
            for one in self.needs
            if one.is_short
        ]
        empty = {
            one.city
            for one in self.changes
            if one.clusters == () and one.after and one.change is not Change.DELETE
        }
        return (*short, *(f"city {city}: no Cluster carries its code" for city in sorted(empty)))


def review(wanted: JsonObject, found: JsonObject | None) -> WorkloadPlan:
    """The rules of admission that need no plane: cities and networks are taken as served."""
    name = text_at(wanted, "metadata", "name")
    errors = review_workload(wanted, found, Facts("", NETWORKING_OFF, NETWORKING_OFF))
    if isinstance(errors, CannotDecide):
        return WorkloadPlan(name, notes=(errors.message,))
    if not errors:
        return WorkloadPlan(name, warnings=warnings(wanted))
    denial = derive_denial(wanted, errors)
    refusals = tuple(f"{one.field}: {one.message}" for one in denial.causes)
    return WorkloadPlan(name, refusals, denial.message)


def derive_changes(snapshot: Snapshot, wanted: JsonObject) -> tuple[DeploymentChange, ...]:
    """The deployments that are created, scaled, rolled, kept and deleted, in the spec's order."""
    workload = decode_workload(wanted)
    found = _find(snapshot, workload.meta.name)
    uid = found.meta.uid if found else ""
    own = {
        (one.placement, one.city): one
        for one in snapshot.project.deployments
        if uid and one.workload_uid == uid
    }
    taken = {one.meta.name for one in snapshot.project.deployments}
    changes = list(_kept_and_new(snapshot, workload, uid, own, taken))
    wanted_ones = {(one.placement, one.city) for one in changes}
    changes += [
        DeploymentChange(Change.DELETE, one.meta.name, *identity, one.min_replicas, 0)
        for identity, one in own.items()
        if identity not in wanted_ones
    ]
    return tuple(changes)


def _find(snapshot: Snapshot, name: str) -> SeenWorkload | None:
    return next((one for one in snapshot.project.workloads if one.meta.name == name), None)


def _kept_and_new(
    snapshot: Snapshot,
    workload: SeenWorkload,
    uid: str,
    own: Mapping[tuple[str, str], SeenDeployment],
    taken: set[str],
) -> Iterator[DeploymentChange]:
    for placement in workload.placements:
        for city in placement.cities:
            clusters = _clusters(snapshot, city)
            there = own.get((placement.name, city))
            if there is None:
                name = _name(workload.meta.name, uid, placement.name, city, taken)
                taken.add(name)
                yield DeploymentChange(
                    Change.CREATE, name, placement.name, city, 0, placement.min_replicas, clusters
                )
                continue
            yield DeploymentChange(
                _kind(there, workload, placement.min_replicas),
                there.meta.name,
                placement.name,
                city,
                there.min_replicas,
                placement.min_replicas,
                clusters,
            )


def _kind(there: SeenDeployment, workload: SeenWorkload, replicas: int) -> Change:
    if there.template_hash != workload.template_hash:
        return Change.ROLL
    return Change.SCALE if there.min_replicas != replicas else Change.KEEP


def _name(workload: str, uid: str, placement: str, city: str, taken: set[str]) -> str:
    """The plain name where it is free, else the hashed one, which needs the UID."""
    try:
        both = names.derive_deployment_names(
            workload=workload, workload_uid=uid or "new", placement=placement, city_code=city
        )
    except names.NamingError:
        return ""
    if both.plain is not None and both.plain not in taken:
        return both.plain
    return both.hashed if uid else ""


def _clusters(snapshot: Snapshot, city: str) -> tuple[str, ...] | None:
    listing = snapshot.hub.clusters
    if not listing.proves_absence:
        return None
    return tuple(one.meta.name for one in listing if one.city == city)


def derive_needs(
    snapshot: Snapshot, wanted: JsonObject, changes: tuple[DeploymentChange, ...]
) -> tuple[QuotaNeed, ...]:
    """What the added Instances need against what the buckets have left.

    A rolled Instance keeps its claim, so it needs nothing.
    """
    resources = ("spec", "template", "spec", "runtime", "resources", "instanceType")
    size = sizes.CATALOGUE.get(text_at(wanted, *resources))
    added = sum(max(one.after - one.before, 0) for one in changes)
    if size is None or not added or snapshot.project.buckets.access is not Access.READ:
        return ()
    return tuple(
        QuotaNeed(
            one.resource_type,
            size.requests[one.resource_type] * added,
            one.available,
            size.requests[one.resource_type],
        )
        for one in snapshot.project.buckets
        if one.resource_type in size.requests
    )


def describe_references(wanted: JsonObject) -> tuple[str, ...]:
    """What the template refers to and no read shows: contents of these kinds are never read."""
    template = value_at(wanted, "spec", "template")
    named = [f"{one.kind} {one.name}" for one in references(template) if not one.is_optional]
    if not named:
        return ()
    return (f"must exist in the project, which is not looked up: {', '.join(named)}",)
