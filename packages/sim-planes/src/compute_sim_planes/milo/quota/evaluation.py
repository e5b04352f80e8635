"""Evaluation of a claim: the steps from pending to a final result. Pure.

```
PendingEvaluation ─ "0 granted, 2 pending" ─ an allocation per request ─ folded into `Granted`
```

Requests are allocated one by one and the condition is updated after each, so a claim can be denied
while one of its requests is pending, and a request that fits keeps its allocation (neighbours.md
2.4).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final, NamedTuple

from compute_sim_planes.conditions import Condition, derive_conditions, find_condition
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.milo.kinds import BUCKETS, SYSTEM_NAMESPACE
from compute_sim_planes.time.sources import render_time

GRANTED: Final = "Granted"
DENIED: Final = "Denied"
PENDING: Final = "PendingEvaluation"
AVAILABLE: Final = "QuotaAvailable"
EXCEEDED: Final = "QuotaExceeded"
INSUFFICIENT: Final = (
    "Insufficient quota resources. Contact your account administrator to review quota limits and"
    " usage."
)


class BucketKey(NamedTuple):
    """The key of an AllowanceBucket: one resource type of one consumer."""

    resource_type: str
    api_group: str
    kind: str
    name: str

    @property
    def object_name(self) -> str:
        """The name that Milo gives it, as verified with the recording."""
        digest = hashlib.sha256(f"{self.resource_type}{self.kind}{self.name}".encode())
        return f"bucket-{digest.hexdigest()}"


def bucket_key_of(consumer: JsonObject, resource_type: str) -> BucketKey:
    parts = (string_at(consumer, field) for field in ("apiGroup", "kind", "name"))
    return BucketKey(resource_type, *parts)


def derive_bucket(bucket: BucketKey) -> JsonObject:
    """The AllowanceBucket to create."""
    return {
        "apiVersion": BUCKETS.api_version,
        "kind": BUCKETS.kind,
        "metadata": {
            "name": bucket.object_name,
            "namespace": SYSTEM_NAMESPACE,
            "labels": {
                "quota.miloapis.com/consumer-kind": bucket.kind,
                "quota.miloapis.com/consumer-name": bucket.name,
            },
        },
        "spec": {
            "consumerRef": {
                "apiGroup": bucket.api_group,
                "kind": bucket.kind,
                "name": bucket.name,
            },
            "resourceType": bucket.resource_type,
        },
    }


def is_pending(claim: JsonObject) -> bool:
    """Whether the claim has no result yet; a result is final."""
    condition = find_condition(claim, GRANTED)
    return condition is None or (
        condition.get("status") == "False" and condition.get("reason") == PENDING
    )


def is_granted(claim: JsonObject) -> bool:
    return string_at(find_condition(claim, GRANTED), "status") == "True"


def waiting_requests(claim: JsonObject) -> list[JsonObject]:
    """The requests without an allocation, in order."""
    decided = {string_at(one, "resourceType") for one in objects_at(claim, "status", "allocations")}
    return [
        one
        for one in objects_at(claim, "spec", "requests")
        if string_at(one, "resourceType") not in decided
    ]


def derive_allocation(
    request: JsonObject, bucket: BucketKey, available: int, now: datetime
) -> JsonObject:
    """The result of one request, by what is available in its bucket."""
    amount = integer_at(request, "amount") or 0
    decided: JsonObject = {
        "lastTransitionTime": render_time(now),
        "resourceType": bucket.resource_type,
    }
    if amount > available:
        message = f"Resource quota exceeded: requested {amount}, available {max(available, 0)}"
        return decided | {"message": message, "reason": EXCEEDED, "status": DENIED}
    return decided | {
        "allocatedAmount": amount,
        "allocatingBucket": bucket.object_name,
        "message": "Capacity reserved",
        "reason": AVAILABLE,
        "status": GRANTED,
    }


def derive_allocated(claim: JsonObject, allocation: JsonObject) -> JsonObject:
    """The claim's status with one more allocation."""
    status = object_at(claim, "status")
    allocations = objects_at(claim, "status", "allocations")
    return {**status, "allocations": [*allocations, allocation]}


def derive_folded(claim: JsonObject, now: datetime) -> JsonObject:
    """The claim's status with the condition derived from its allocations, unless it is final."""
    status = object_at(claim, "status")
    if not is_pending(claim):
        return status
    return {
        **status,
        "conditions": derive_conditions(claim, _fold(claim), now),
        "observedGeneration": integer_at(claim, "metadata", "generation"),
    }


def _fold(claim: JsonObject) -> Condition:
    requested = [string_at(one, "resourceType") for one in objects_at(claim, "spec", "requests")]
    verdicts = {
        string_at(one, "resourceType"): string_at(one, "status")
        for one in objects_at(claim, "status", "allocations")
    }
    granted = sum(verdicts.get(one) == GRANTED for one in requested)
    if DENIED in verdicts.values():
        # The status stays False, so the transition time stays too.
        return Condition(GRANTED, "False", EXCEEDED, INSUFFICIENT)
    if granted == len(requested):
        message = f"All {granted} resource requests have been granted"
        return Condition(GRANTED, "True", AVAILABLE, message)
    message = f"Awaiting capacity evaluation: {granted} granted, {len(requested) - granted} pending"
    return Condition(GRANTED, "False", PENDING, message)
