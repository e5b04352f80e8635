"""Translates what the quota client says into our values. Pure: no request is made here."""

from __future__ import annotations

from typing import Final, assert_never

from compute_api_types import labels
from compute_cell_operator.quota_gate.claim import find_other_resource
from compute_cell_operator.quota_gate.findings import (
    AdmissionRejected,
    BackendUnavailable,
    NamespaceNotFound,
    ProjectNotFound,
    Said,
    Shortage,
    Step,
)
from compute_cell_operator.quota_gate.found import (
    Different,
    Found,
    Holder,
    Holding,
    Leaving,
    Nothing,
    OtherService,
    Recorded,
    Refused,
    Strange,
    Waiting,
)
from compute_quota_client import (
    Absent,
    Allocation,
    Denied,
    Foreign,
    FoundClaim,
    Granted,
    Invalid,
    Mismatch,
    Pending,
    QuotaError,
    QuotaNamespaceNotFoundError,
    QuotaProjectNotFoundError,
    QuotaRejectedError,
    Releasing,
    Verdict,
)

DENIED: Final = "Denied"


def read_recorded(found: FoundClaim) -> Recorded:
    """Whom a claim says it is for."""
    return Recorded(
        namespace=found.value_of(labels.INSTANCE_NAMESPACE) or "",
        uid=found.value_of(labels.INSTANCE_UID) or "",
    )


def observe_claim(verdict: Verdict | Absent, holder: Holder) -> Found:
    """What was found, where `holder` is who the claim's recorded UID is."""
    match verdict:
        case Absent():
            return Nothing()
        case Foreign(found=found, owner=owner):
            cell = owner.get(labels.SOURCE_CLUSTER) or ""
            strange = Strange(found.uid, found.namespace, found.name, cell)
            return strange if cell else _observe_service(found) or strange
        case Releasing():
            return Leaving()
        case Mismatch(found=found, fields=fields):
            is_same_size = set(fields) == {"subject"}
            return _observe_service(found) or Different(found.uid, holder, is_same_size)
        case _:
            return _observe_verdict(verdict)


def _observe_service(found: FoundClaim) -> OtherService | None:
    other = find_other_resource(found)
    return OtherService(found.namespace, found.name, other) if other is not None else None


def _observe_verdict(verdict: Granted | Pending | Invalid | Denied) -> Found:
    match verdict:
        case Granted(message=message):
            return Holding(message)
        case Pending(since=since):
            return Waiting(since)
        case Invalid(found=found, message=message):
            return Refused(found.uid, message, is_invalid=True)
        case Denied(found=found, message=message, allocations=allocations):
            return Refused(found.uid, message, shortages=_shortages(allocations))
        case _:
            assert_never(verdict)


def _shortages(allocations: tuple[Allocation, ...]) -> tuple[Shortage, ...]:
    return tuple(
        Shortage(one.resource_type, one.message) for one in allocations if one.status == DENIED
    )


def observe_failure(error: QuotaError, step: Step, project: str, namespace: str) -> Said:
    """What an error means for the Instance it was met for; never a grant (quota.md B4)."""
    match error:
        case QuotaNamespaceNotFoundError():
            return NamespaceNotFound(project, namespace)
        case QuotaProjectNotFoundError():
            return ProjectNotFound(project)
        # A read that is refused says nothing about the claim: only writes meet admission.
        case QuotaRejectedError() if step in {"creating", "adopting"}:
            return AdmissionRejected(project, str(error))
        case _:
            return BackendUnavailable(project, step, str(error))
