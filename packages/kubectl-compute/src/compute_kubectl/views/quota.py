"""`quota`: limits of the project, which Workloads use them, which wait. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from compute_api_types import names, sizes
from compute_kubectl.explain.quota_facts import GRANTED, derive_usage, short_type
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenBucket, SeenClaim
from compute_kubectl.snapshot.planes import PlaneFacts, Snapshot, Unread


@dataclass(frozen=True, slots=True)
class WaitingClaim:
    """A claim that is not granted: of which slot, how much, and why."""

    instance: str
    amount: int
    reason: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """One resource type: limit, use by Workload, waiting claims, and need of the next replica."""

    resource_type: str
    bucket: str
    project: str
    limit: int
    allocated: int
    available: int
    used_by: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: tuple[WaitingClaim, ...] = ()
    next_replica: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def short_name(self) -> str:
        return short_type(self.resource_type)


@dataclass(frozen=True, slots=True)
class QuotaView:
    """The quota of the project as far as it could be read."""

    namespace: str
    at: datetime
    access: Access
    detail: str = ""
    resources: tuple[ResourceQuota, ...] = ()
    planes: tuple[PlaneFacts, ...] = ()
    unread: tuple[Unread, ...] = ()


def derive_quota(snapshot: Snapshot, now: datetime) -> QuotaView:
    """Every bucket of the project with its users and what waits for it."""
    buckets = snapshot.project.buckets
    return QuotaView(
        snapshot.namespace,
        now,
        buckets.access,
        buckets.detail,
        tuple(_resource(snapshot, one) for one in buckets),
        snapshot.planes,
        snapshot.unread,
    )


def _resource(snapshot: Snapshot, bucket: SeenBucket) -> ResourceQuota:
    claims = snapshot.project.claims
    return ResourceQuota(
        resource_type=bucket.resource_type,
        bucket=bucket.meta.name,
        project=bucket.project,
        limit=bucket.limit,
        allocated=bucket.allocated,
        available=bucket.available,
        used_by=derive_usage(snapshot, bucket).by_workload,
        waiting=tuple(_waiting(claims, bucket.resource_type)),
        next_replica=_next_replica(snapshot, bucket.resource_type),
    )


def _waiting(claims: Iterable[SeenClaim], resource_type: str) -> Iterable[WaitingClaim]:
    for claim in claims:
        amount = sum(one.amount for one in claim.requests if one.resource_type == resource_type)
        granted = claim.condition(GRANTED)
        if not amount or (granted is not None and granted.is_true):
            continue
        reason = granted.reason if granted else "not evaluated"
        since = granted.since if granted else claim.meta.created
        yield WaitingClaim(claim.instance or claim.meta.name, amount, reason, since)


def _next_replica(snapshot: Snapshot, resource_type: str) -> dict[str, int]:
    """What one more Instance of each Workload needs, by its catalogue size."""
    owners = {one.meta.name: one.workload_name for one in snapshot.project.deployments}
    needs: dict[str, int] = {}
    for instance in snapshot.project.instances:
        parsed = names.parse_instance_name(instance.meta.name)
        deployment = instance.deployment_name or (parsed[0] if parsed else "")
        size = sizes.CATALOGUE.get(instance.instance_type)
        workload = owners.get(deployment, "")
        if size is None or not workload:
            continue
        amount = size.requests.get(resource_type, 0)
        if amount:
            needs[workload] = amount
    return {name: needs[name] for name in sorted(needs)}
