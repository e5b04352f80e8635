"""What `QuotaGranted` says. Pure (quota.md B4).

The table gives each finding its words. Over it stand three rules that look at what is stored, the
only places where our own condition is input: a started Instance keeps True, an outage takes away
neither a True nor a denial, and a denial stays while its next attempt is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, assert_never

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_cell_operator.quota_gate.findings import (
    AdmissionRejected,
    BackendUnavailable,
    ClaimDenied,
    ClaimInvalid,
    Disabled,
    Granted,
    HeldByOtherCell,
    HeldByOtherService,
    NamespaceNotFound,
    ProjectNotFound,
    Said,
    SizeUnknown,
    Undecided,
    Unevaluated,
    Unresolvable,
)
from compute_cell_operator.told import Told

GRACE: Final = timedelta(seconds=30)
"""Pending is Milo's default; only after this it is worth a word."""

FAILURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        reasons.QUOTA_PROJECT_ID_UNRESOLVABLE: "project_id_unresolvable",
        reasons.QUOTA_BACKEND_UNAVAILABLE: "backend_unavailable",
        reasons.UNKNOWN_INSTANCE_TYPE: "misconfigured",
        reasons.QUOTA_NO_BUDGET: "no_budget",
        reasons.QUOTA_NAMESPACE_NOT_FOUND: "namespace_not_found",
        reasons.QUOTA_PROJECT_NOT_FOUND: "project_not_found",
        reasons.QUOTA_MISCONFIGURED: "misconfigured",
    }
)
"""The label of `compute_quota_eval_failures_total`, by reason; others are not counted."""

DENIALS: Final = frozenset({reasons.QUOTA_EXCEEDED, reasons.VALIDATION_FAILED})


@dataclass(frozen=True, slots=True)
class Standing:
    """What is stored of one Instance, as far as the rules over the table need it."""

    stored: Told | None
    generation: int
    is_started: bool


def report_quota(said: Said, standing: Standing, now: datetime) -> Statement:
    """`QuotaGranted` for the generation that was read."""
    kept = _kept(said, standing, now)
    status, reason, message = kept if kept is not None else _table(said, now)
    return Statement(conditions.QUOTA_GRANTED, status, reason, message, standing.generation)


def is_denial(stored: Told | None) -> bool:
    return stored is not None and stored.status == "False" and stored.reason in DENIALS


def needs_event(statement: Statement, stored: Told | None) -> bool:
    """A Warning and a count come when status or reason change, and never for the first wait."""
    if statement.status == "True" or statement.reason == reasons.PENDING_EVALUATION:
        return False
    before = (stored.status, stored.reason) if stored is not None else None
    return before != (statement.status, statement.reason)


_Words = tuple[ConditionStatus, str, str]


def _kept(said: Said, standing: Standing, now: datetime) -> _Words | None:
    """The stored words, where a rule says that they stay."""
    stored = standing.stored
    if stored is None:
        return None
    if standing.is_started:
        moves = isinstance(said, Granted) and stored.reason != reasons.QUOTA_AVAILABLE
        return None if moves else ("True", stored.reason, stored.message)
    if stored.is_true and _leaves_grant(said, stored, standing):
        return ("True", stored.reason, stored.message)
    if is_denial(stored) and _is_silent(said, now):
        return ("False", stored.reason, stored.message)
    return None


def _leaves_grant(said: Said, stored: Told, standing: Standing) -> bool:
    """Nobody says that it is not granted: the plane is away, or a process that has just started
    knows nothing yet of what was judged before. No gate opens on it.
    """
    is_judged = stored.observed_generation == standing.generation
    return isinstance(said, BackendUnavailable) or (isinstance(said, Undecided) and is_judged)


def _is_silent(said: Said, now: datetime) -> bool:
    """It says nothing that would be news to somebody who was denied."""
    if isinstance(said, Unevaluated):
        return not _is_overdue(said, now)
    return isinstance(said, Undecided | BackendUnavailable)


def _is_overdue(said: Unevaluated, now: datetime) -> bool:
    return now - said.since >= GRACE


def _table(said: Said, now: datetime) -> _Words:
    match said:
        case Disabled():
            message = "Quota enforcement is disabled by configuration"
            return "True", reasons.QUOTA_DISABLED, message
        case Granted(message=message):
            return "True", reasons.QUOTA_AVAILABLE, message
        case Undecided() | Unevaluated():
            return _waiting(said, now)
        case _:
            return "False", *_refusal(said)


def _waiting(said: Undecided | Unevaluated, now: datetime) -> _Words:
    if isinstance(said, Unevaluated) and _is_overdue(said, now):
        message = "ResourceClaim is pending: the quota service has not evaluated it yet"
        return "Unknown", reasons.QUOTA_NO_BUDGET, message
    return "Unknown", reasons.PENDING_EVALUATION, "Waiting for quota evaluation"


_Refusal = (
    Unresolvable
    | BackendUnavailable
    | SizeUnknown
    | NamespaceNotFound
    | ProjectNotFound
    | AdmissionRejected
    | HeldByOtherCell
    | HeldByOtherService
    | ClaimInvalid
    | ClaimDenied
)


def _refusal(said: _Refusal) -> tuple[str, str]:
    match said:
        case ClaimInvalid(message=message):
            return reasons.VALIDATION_FAILED, message
        case ClaimDenied():
            return reasons.QUOTA_EXCEEDED, _shortages(said)
        case Unresolvable(what=what, detail=detail):
            message = f"Could not resolve project {what}: {detail}"
            return reasons.QUOTA_PROJECT_ID_UNRESOLVABLE, message
        case BackendUnavailable():
            return reasons.QUOTA_BACKEND_UNAVAILABLE, _outage(said)
        case SizeUnknown(instance_type=name):
            message = f'Instance type "{name}" is unknown and no explicit size is given'
            return reasons.UNKNOWN_INSTANCE_TYPE, message
        case _:
            return _answered(said)


def _answered(
    said: NamespaceNotFound
    | ProjectNotFound
    | AdmissionRejected
    | HeldByOtherCell
    | HeldByOtherService,
) -> tuple[str, str]:
    """The plane answered, and will not have it."""
    match said:
        case NamespaceNotFound(project=project, namespace=namespace):
            message = (
                f'Quota claim namespace "{namespace}" not found on project "{project}" '
                "control plane"
            )
            return reasons.QUOTA_NAMESPACE_NOT_FOUND, message
        case ProjectNotFound(project=project):
            return reasons.QUOTA_PROJECT_NOT_FOUND, f'Milo project "{project}" not found'
        case AdmissionRejected(project=project, detail=detail):
            message = f'Quota admission rejected ResourceClaim for project "{project}": {detail}'
            return reasons.QUOTA_MISCONFIGURED, message
        case HeldByOtherCell(namespace=namespace, claim=claim, cell=cell):
            message = f'ResourceClaim "{namespace}/{claim}" belongs to cell "{cell}"'
            return reasons.QUOTA_MISCONFIGURED, message
        case HeldByOtherService(namespace=namespace, claim=claim, resource_type=other):
            message = (
                f'ResourceClaim "{namespace}/{claim}" belongs to another service: it asks for '
                f'"{other}"; delete it or give the Workload another name'
            )
            return reasons.QUOTA_MISCONFIGURED, message
        case _:
            assert_never(said)


def _outage(said: BackendUnavailable) -> str:
    if said.step == "building":
        return f'Failed to build quota client for project "{said.project}": {said.detail}'
    return f"Quota backend unreachable {said.step} ResourceClaim: {said.detail}"


def _shortages(said: ClaimDenied) -> str:
    """The claim's words, then what is short and by how much."""
    short = (f" {one.resource_type.rpartition('/')[2]}: {one.message}" for one in said.shortages)
    return said.message + "".join(short)
