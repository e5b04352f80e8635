"""What becomes of a claim: the steps from pending to a verdict that is never looked at again. Pure.

```
PendingEvaluation ─ "0 granted, 2 pending" ─ an allocation per request ─ folded into `Granted`
```

Parts are reserved one by one and the condition is folded after each, so a claim can be denied while
a part of it still waits, and a part that fits keeps its reservation (neighbours.md 2.4).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final, NamedTuple

from compute_sim_planes.api_server.sources import render_time
from compute_sim_planes.json_types import (
    JsonObject,
    integer_at,
    object_at,
    objects_at,
    string_at,
)
from compute_sim_planes.milo.conditions import Finding, derive_conditions, find_condition
from compute_sim_planes.milo.kinds import BUCKETS, SYSTEM_NAMESPACE

GRANTED: Final = "Granted"
DENIED: Final = "Denied"
PENDING: Final = "PendingEvaluation"
AVAILABLE: Final = "QuotaAvailable"
EXCEEDED: Final = "QuotaExceeded"
INSUFFICIENT: Final = (
    "Insufficient quota resources. Contact your account administrator to review quota limits and"
    " usage."
)


class Bucket(NamedTuple):
    """What one AllowanceBucket counts: one type of resource for one consumer."""

    resource_type: str
    api_group: str
    kind: str
    name: str

    @property
    def object_name(self) -> str:
        """The name Milo gives it; the recording's names come out of the same three words."""
        digest = hashlib.sha256(f"{self.resource_type}{self.kind}{self.name}".encode())
        return f"bucket-{digest.hexdigest()}"


def bucket_of(consumer: JsonObject, resource_type: str) -> Bucket:
    parts = (string_at(consumer, field) for field in ("apiGroup", "kind", "name"))
    return Bucket(resource_type, *parts)


def derive_bucket(bucket: Bucket) -> JsonObject:
    """The object that counts, as it is created."""
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
    """Whether nobody has come to a verdict; it is never come to twice."""
    condition = find_condition(claim, GRANTED)
    return condition is None or (
        condition.get("status") == "False" and condition.get("reason") == PENDING
    )


def is_granted(claim: JsonObject) -> bool:
    return string_at(find_condition(claim, GRANTED), "status") == "True"


def waiting_requests(claim: JsonObject) -> list[JsonObject]:
    """The requests without an allocation, in their order."""
    decided = {string_at(one, "resourceType") for one in objects_at(claim, "status", "allocations")}
    return [
        one
        for one in objects_at(claim, "spec", "requests")
        if string_at(one, "resourceType") not in decided
    ]


def derive_allocation(
    request: JsonObject, bucket: Bucket, available: int, now: datetime
) -> JsonObject:
    """The verdict on one request, with what is left in its bucket."""
    amount = integer_at(request, "amount") or 0
    decided: JsonObject = {
        "lastTransitionTime": render_time(now),
        "resourceType": bucket.resource_type,
    }
    if amount > available:
        told = f"Resource quota exceeded: requested {amount}, available {max(available, 0)}"
        return decided | {"message": told, "reason": EXCEEDED, "status": DENIED}
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
    """The claim's status with its allocations folded into the condition, unless that is final."""
    status = object_at(claim, "status")
    if not is_pending(claim):
        return status
    return {
        **status,
        "conditions": derive_conditions(claim, _fold(claim), now),
        "observedGeneration": integer_at(claim, "metadata", "generation"),
    }


def _fold(claim: JsonObject) -> Finding:
    wanted = [string_at(one, "resourceType") for one in objects_at(claim, "spec", "requests")]
    verdicts = {
        string_at(one, "resourceType"): string_at(one, "status")
        for one in objects_at(claim, "status", "allocations")
    }
    granted = sum(verdicts.get(one) == GRANTED for one in wanted)
    if DENIED in verdicts.values():
        # The status does not change, and with it neither does the time of its last change.
        return Finding(GRANTED, "False", EXCEEDED, INSUFFICIENT)
    if granted == len(wanted):
        told = f"All {granted} resource requests have been granted"
        return Finding(GRANTED, "True", AVAILABLE, told)
    told = f"Awaiting capacity evaluation: {granted} granted, {len(wanted) - granted} pending"
    return Finding(GRANTED, "False", PENDING, told)
