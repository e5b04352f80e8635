"""Valid values for tests, which override what they need (`dataclasses.replace`)."""

from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from compute_quota_client._models import (
    Allocation,
    Claim,
    FoundClaim,
    GrantedCondition,
    ResourceRequest,
    project_ref,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

GIB: Final = "storage.example.com/gib"
OBJECTS: Final = "storage.example.com/objects"
REGION: Final = "storage.example.com/region"
BUCKET_UID: Final = "storage.example.com/bucket-uid"
CREATED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)

State: TypeAlias = Literal["granted", "denied", "pending", "invalid", "new"]
_CONDITIONS: Final[dict[State, GrantedCondition | None]] = {
    "granted": GrantedCondition("True", "QuotaAvailable", "All 2 requests have been granted"),
    "denied": GrantedCondition("False", "QuotaExceeded", "Insufficient quota resources."),
    "pending": GrantedCondition("False", "PendingEvaluation", "Awaiting capacity evaluation"),
    "invalid": GrantedCondition("False", "ValidationFailed", "Not a claim"),
    "new": None,
}


def a_claim() -> Claim:
    """A storage service's claim for a bucket, of project `acme`."""
    return Claim(
        namespace="default",
        name="bucket-logs",
        requests={GIB: 50, OBJECTS: 1000},
        consumer=project_ref("acme"),
        owner={REGION: "lhr"},
        subject={BUCKET_UID: "uid-1"},
    )


def a_found_claim(wanted: Claim | None = None, state: State = "granted") -> FoundClaim:
    """`wanted`, or `a_claim()`, as a server has it in this state."""
    claim = wanted or a_claim()
    requests = tuple(ResourceRequest(kind, amount) for kind, amount in claim.requests.items())
    return FoundClaim(
        namespace=claim.namespace,
        name=claim.name,
        uid="0d1f6e1a-0000-4000-8000-000000000001",
        resource_version="7",
        created_at=CREATED_AT,
        deleting_since=None,
        labels=MappingProxyType(claim.written_labels()),
        annotations=MappingProxyType(claim.written_annotations()),
        requests=requests,
        consumer=claim.consumer,
        resource=claim.claiming_resource,
        granted=_CONDITIONS[state],
        allocations=tuple(_allocations(requests, state)),
    )


def _allocations(requests: tuple[ResourceRequest, ...], state: State) -> Iterable[Allocation]:
    for position, request in enumerate(requests):
        # Of a denied claim the first request fitted, and stays reserved until the release.
        if state == "granted" or (state == "denied" and position == 0):
            result = ("Granted", request.amount, "QuotaAvailable", "Capacity reserved")
        elif state == "denied":
            result = ("Denied", 0, "QuotaExceeded", "Resource quota exceeded")
        else:
            return
        yield Allocation(request.resource_type, *result)
