"""Limits, reservations and the evaluation of claims; docs/spec/neighbours.md 2.3 and 2.4.

Claims match grants of their own plane only. Requests of a claim are reserved one by one: one that
fits stays reserved although another does not, until the claim is deleted. A final result is never
evaluated again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from compute_quota_client._fake.objects import (
    AllocationStatus,
    ClaimObject,
    Condition,
    GrantObject,
    Ref,
    RegistrationObject,
    Status,
)
from compute_quota_client._fake.store import Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pydantic import JsonValue

    from compute_quota_client._fake.store import Store

DENIED: Final = (
    "Insufficient quota resources. Contact your account administrator to review quota limits and"
    " usage."
)
ROOT: Final = ""


def bucket_name(resource_type: str, consumer: Ref) -> str:
    """The name Milo gives the bucket of a consumer and a resource type."""
    digest = hashlib.sha256(f"{resource_type}{consumer.kind}{consumer.name}".encode())
    return f"bucket-{digest.hexdigest()}"


def _is_same(one: Ref, other: Ref) -> bool:
    return (one.api_group, one.kind, one.name) == (other.api_group, other.kind, other.name)


class Ledger:
    """Reads and writes the quota side of a store."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._buckets: dict[str, dict[str, tuple[str, Ref]]] = {}

    def registration(self, resource_type: str) -> RegistrationObject | None:
        """The registration of a resource type, at the root for all projects."""
        for registration in self._store.all(ROOT, RegistrationObject):
            if registration.spec.resource_type == resource_type:
                return registration
        return None

    def limit(self, plane: str, resource_type: str, consumer: Ref) -> int:
        """The sum of all grants."""
        return sum(amount for _, amount in self._contributions(plane, resource_type, consumer))

    def reserved(self, plane: str, resource_type: str, consumer: Ref) -> list[int]:
        """The amount each claim reserves; none for a request that was removed from the spec."""
        held: list[int] = []
        for claim in self._store.all(plane, ClaimObject):
            asked = {request.resource_type for request in claim.spec.requests}
            allocations = (claim.status.allocations if claim.status else None) or []
            held += [
                allocation.allocated_amount or 0
                for allocation in allocations
                if allocation.resource_type == resource_type
                and allocation.status == "Granted"
                and resource_type in asked
                and _is_same(claim.spec.consumer_ref, consumer)
            ]
        return held

    def evaluate(self, where: Where) -> ClaimObject | None:
        """Evaluates a pending claim, leaves any other unchanged, and returns the claim."""
        claim = self._store.find(where, ClaimObject)
        if claim is None or claim.granted is None or claim.granted.reason != "PendingEvaluation":
            return claim
        claim.status = claim.status or Status()
        claim.status.observed_generation = claim.metadata.generation
        claim = self._fold(where, claim)
        for request in claim.spec.requests:
            allocation = self._reserve(
                where.plane, request.resource_type, request.amount, claim.spec.consumer_ref
            )
            status = claim.status or Status()
            status.allocations = [*(status.allocations or []), allocation]
            claim.status = status
            claim = self._fold(where, self._store.update(where, claim))
        return claim

    def bucket_list(self, plane: str) -> list[JsonValue]:
        """The AllowanceBuckets of a plane, with the fields that tests read."""
        buckets = self._buckets.get(plane, {})
        return [self._bucket(plane, name, *buckets[name]) for name in sorted(buckets)]

    def _reserve(
        self, plane: str, resource_type: str, amount: int, consumer: Ref
    ) -> AllocationStatus:
        name = bucket_name(resource_type, consumer)
        self._buckets.setdefault(plane, {})[name] = (resource_type, consumer)
        left = self.limit(plane, resource_type, consumer) - sum(
            self.reserved(plane, resource_type, consumer)
        )
        decided = AllocationStatus(
            resource_type=resource_type,
            status="Denied",
            reason="QuotaExceeded",
            message=f"Resource quota exceeded: requested {amount}, available {max(left, 0)}",
            last_transition_time=self._now().replace(microsecond=0),
        )
        if amount <= left:
            decided.status, decided.reason = "Granted", "QuotaAvailable"
            decided.message = "Capacity reserved"
            decided.allocated_amount, decided.allocating_bucket = amount, name
        return decided

    def _fold(self, where: Where, claim: ClaimObject) -> ClaimObject:
        """Folds the allocations into the condition, after each of them, until that is final."""
        condition = claim.granted
        if condition is None or condition.reason != "PendingEvaluation":
            return claim
        verdicts = [
            allocation.status for allocation in (claim.status and claim.status.allocations) or []
        ]
        granted, waiting = verdicts.count("Granted"), len(claim.spec.requests)
        if "Denied" in verdicts:
            # The status does not change, and with it neither does the time of its last change.
            condition.reason, condition.message = "QuotaExceeded", DENIED
        elif granted == waiting:
            condition.status, condition.reason = "True", "QuotaAvailable"
            condition.message = f"All {granted} resource requests have been granted"
            condition.last_transition_time = self._now().replace(microsecond=0)
        else:
            counts = f"{granted} granted, {waiting - granted} pending"
            condition.message = f"Awaiting capacity evaluation: {counts}"
        return self._store.update(where, claim)

    def _contributions(
        self, plane: str, resource_type: str, consumer: Ref
    ) -> Iterator[tuple[GrantObject, int]]:
        for grant in self._store.all(plane, GrantObject):
            if not _is_same(grant.spec.consumer_ref, consumer) or not _is_active(grant.status):
                continue
            for allowance in grant.spec.allowances:
                if allowance.resource_type == resource_type:
                    yield grant, sum(part.amount for part in allowance.buckets)

    def _bucket(
        self, plane: str, name: str, resource_type: str, consumer: Ref
    ) -> dict[str, JsonValue]:
        held = self.reserved(plane, resource_type, consumer)
        limit = self.limit(plane, resource_type, consumer)
        given = list(self._contributions(plane, resource_type, consumer))
        consumer_ref: dict[str, JsonValue] = consumer.model_dump(by_alias=True, exclude_none=True)
        labels: dict[str, JsonValue] = {
            "quota.miloapis.com/consumer-kind": consumer.kind,
            "quota.miloapis.com/consumer-name": consumer.name,
        }
        refs: list[JsonValue] = [
            {
                "name": grant.metadata.name,
                "amount": amount,
                "lastObservedGeneration": grant.metadata.generation or 0,
            }
            for grant, amount in given
        ]
        return {
            "apiVersion": "quota.miloapis.com/v1alpha1",
            "kind": "AllowanceBucket",
            "metadata": {"name": name, "namespace": "milo-system", "labels": labels},
            "spec": {"consumerRef": consumer_ref, "resourceType": resource_type},
            "status": {
                "limit": limit,
                "allocated": sum(held),
                "available": max(limit - sum(held), 0),
                "claimCount": len(held),
                "grantCount": len(given),
                "contributingGrantRefs": refs,
            },
        }


def _is_active(status: Status | None) -> bool:
    conditions = (status.conditions if status else None) or []
    return any(
        condition.type == "Active" and condition.status == "True" for condition in conditions
    )


def active(message: str, reason: str, now: datetime) -> Status:
    """The status of a registration or a grant that is in force."""
    condition = Condition(
        type="Active",
        status="True",
        reason=reason,
        message=message,
        last_transition_time=now.replace(microsecond=0),
        observed_generation=1,
    )
    return Status(conditions=[condition], observed_generation=1)
