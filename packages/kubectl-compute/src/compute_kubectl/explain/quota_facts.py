"""Numbers of quota beside a finding: what is asked for, what is left, and which Workloads use it.

Claims name their slot, and a slot its Workload; what the listed claims do not account for belongs
to other services of the project and is shown as `other`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from compute_api_types import names
from compute_kubectl.explain.diagnosis import Finding
from compute_kubectl.explain.stage_result import seen
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.objects import SeenBucket, SeenClaim, SeenInstance
from compute_kubectl.snapshot.planes import Snapshot

OTHER = "other"
GRANTED = "Granted"


def short_type(resource_type: str) -> str:
    """`compute.datumapis.com/vcpus` as `vcpus`."""
    return resource_type.rpartition("/")[2] or resource_type


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of one bucket each Workload uses; the sum is the bucket's `allocated`."""

    bucket: SeenBucket
    by_workload: Mapping[str, int]


def derive_usage(snapshot: Snapshot, bucket: SeenBucket) -> Usage:
    """Allocations of the bucket by Workload; what no listed claim accounts for is `other`."""
    used: Counter[str] = Counter()
    workloads = _workloads_by_deployment(snapshot)
    for claim in snapshot.project.claims:
        amount = sum(
            one.amount
            for one in claim.allocations
            if one.resource_type == bucket.resource_type and one.status == GRANTED
        )
        if amount:
            used[_workload_of(claim, workloads)] += amount
    rest = bucket.allocated - sum(used.values())
    if rest:
        used[OTHER] += rest
    return Usage(bucket, {name: used[name] for name in sorted(used) if used[name]})


def _workloads_by_deployment(snapshot: Snapshot) -> dict[str, str]:
    listed = snapshot.project.deployments
    return {one.meta.name: one.workload_name for one in listed if one.workload_name}


def _workload_of(claim: SeenClaim, workloads: Mapping[str, str]) -> str:
    parsed = names.parse_instance_name(claim.instance)
    if parsed is None:
        return OTHER
    return workloads.get(parsed[0], parsed[0])


def describe_quota(snapshot: Snapshot, instance: SeenInstance, finding: Finding) -> Finding:
    """The finding with a line for each resource type that is short, and the claim as evidence."""
    project = snapshot.project
    claim = next((one for one in project.claims if one.instance == instance.meta.name), None)
    evidence = list(finding.evidence)
    if claim is not None:
        granted = claim.condition(GRANTED)
        value = f"{granted.status} {granted.reason}" if granted else "absent"
        evidence.append(seen(project.facts.name, claim, GRANTED, value, "ResourceClaim"))
    if project.buckets.access is not Access.READ:
        return replace(finding, evidence=tuple(evidence))
    needs = _needs(snapshot, instance, claim)
    lines = tuple(
        _line(snapshot, bucket, needs[bucket.resource_type])
        for bucket in project.buckets
        if needs.get(bucket.resource_type, 0) > bucket.available
    )
    return replace(finding, evidence=tuple(evidence), details=(*finding.details, *lines))


def _needs(snapshot: Snapshot, instance: SeenInstance, claim: SeenClaim | None) -> dict[str, int]:
    """What the Instance asks for: by its claim, or as its siblings do while it has none.

    A denied claim is deleted and made again, so that it may be missing at any moment.
    """
    source = claim
    if source is None:
        slot = names.parse_instance_name(instance.meta.name)
        source = next(
            (
                one
                for one in snapshot.project.claims
                if slot and (names.parse_instance_name(one.instance) or ("", 0))[0] == slot[0]
            ),
            None,
        )
    return {one.resource_type: one.amount for one in source.requests} if source else {}


def _line(snapshot: Snapshot, bucket: SeenBucket, asked: int) -> str:
    usage = derive_usage(snapshot, bucket)
    users = ", ".join(f"{name} {amount}" for name, amount in usage.by_workload.items())
    used = f"; used by {users}" if users else ""
    return (
        f"{short_type(bucket.resource_type)}: {asked} asked, {bucket.available} of {bucket.limit} "
        f"left in project {bucket.project!r} ({bucket.meta.name[:9]}…{used})"
    )
