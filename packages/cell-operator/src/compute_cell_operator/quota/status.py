"""The condition `QuotaGranted` of an Instance, by the state of its claim. Pure (quota.md B4, B5).

The table gives each state its status, reason and message. Three rules over it compare with the
stored condition, the only place where our own condition is input: a started Instance keeps True, an
outage or a suspension replaces neither a True nor a denial, and a denial is kept until its next
attempt. Without them a restart or an outage would flip conditions of Instances for which nothing
changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, assert_never

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.quota.project_ref import ProjectUnresolvable
from compute_cell_operator.quota.result import (
    AdmissionRejected,
    BackendUnavailable,
    ClaimAbsent,
    ClaimDenied,
    ClaimGranted,
    ClaimInvalid,
    ClaimMismatched,
    ClaimPending,
    ClaimReleasing,
    ClaimState,
    ClaimUnlabelled,
    Disabled,
    HeldByOtherCell,
    HeldByOtherService,
    NamespaceNotFound,
    NoResult,
    ProjectNotFound,
    ProjectSuspended,
    SizeUnknown,
    Undecided,
)

GRACE: Final = timedelta(seconds=30)
"""Pending is Milo's default; only a longer wait is reported."""

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
class StoredQuotaState:
    """What is stored of one Instance, as far as the rules over the table need it."""

    stored: ReportedCondition | None
    generation: int
    is_started: bool


def report_quota(state: ClaimState, stored: StoredQuotaState, now: datetime) -> Statement:
    """`QuotaGranted` for the generation that was read."""
    kept = _keep_stored(state, stored, now)
    status, reason, message = kept if kept is not None else _derive_words(state, now)
    return Statement(conditions.QUOTA_GRANTED, status, reason, message, stored.generation)


def is_denial(stored: ReportedCondition | None) -> bool:
    return stored is not None and stored.status == "False" and stored.reason in DENIALS


def needs_event(statement: Statement, stored: ReportedCondition | None) -> bool:
    """A Warning and a count come when status or reason change, and never for the first wait."""
    if statement.status == "True" or statement.reason == reasons.PENDING_EVALUATION:
        return False
    before = (stored.status, stored.reason) if stored is not None else None
    return before != (statement.status, statement.reason)


# --- over the table -------------------------------------------------------------------------------

_Words = tuple[ConditionStatus, str, str]


def _keep_stored(state: ClaimState, instance: StoredQuotaState, now: datetime) -> _Words | None:
    """The stored words, where a rule keeps them."""
    stored = instance.stored
    if stored is None:
        return None
    if instance.is_started:
        moves = isinstance(state, ClaimGranted) and stored.reason != reasons.QUOTA_AVAILABLE
        return None if moves else ("True", stored.reason, stored.message)
    if stored.is_true and _keeps_grant(state, stored, instance):
        return ("True", stored.reason, stored.message)
    if is_denial(stored) and _keeps_denial(state, now):
        return ("False", stored.reason, stored.message)
    return None


def _keeps_grant(state: ClaimState, stored: ReportedCondition, instance: StoredQuotaState) -> bool:
    """The grant was not revoked: the project does not answer, or a new process has no result yet
    for the generation that was granted. No gate opens on it.
    """
    is_current = stored.observed_generation == instance.generation
    is_kept = isinstance(state, BackendUnavailable | ProjectSuspended)
    return is_kept or (isinstance(state, Undecided) and is_current)


def _keeps_denial(state: ClaimState, now: datetime) -> bool:
    """The state is no news after a denial."""
    if isinstance(state, ClaimPending):
        return not _is_overdue(state, now)
    return isinstance(state, Undecided | BackendUnavailable | ProjectSuspended)


def _is_overdue(state: ClaimPending, now: datetime) -> bool:
    return now - state.since >= GRACE


# --- the table ------------------------------------------------------------------------------------


def _derive_words(state: ClaimState, now: datetime) -> _Words:
    match state:
        case Disabled():
            message = "Quota enforcement is disabled by configuration"
            return "True", reasons.QUOTA_DISABLED, message
        case ClaimGranted(message=message):
            return "True", reasons.QUOTA_AVAILABLE, message
        case ClaimPending() if _is_overdue(state, now):
            message = "ResourceClaim is pending: the quota service has not evaluated it yet"
            return "Unknown", reasons.QUOTA_NO_BUDGET, message
        case NoResult() | ClaimAbsent() | ClaimReleasing() | ClaimUnlabelled():
            return _WAITING
        case ClaimMismatched() | ClaimPending():
            return _WAITING
        case ProjectSuspended():
            return _SUSPENDED
        case _:
            return "False", *_describe_refusal(state)


_WAITING: Final[_Words] = (
    "Unknown",
    reasons.PENDING_EVALUATION,
    "Waiting for quota evaluation",
)

_SUSPENDED: Final[_Words] = (
    "Unknown",
    reasons.PENDING_EVALUATION,
    "Project is suspended; quota is asked for when it resumes",
)

_Answer = (
    NamespaceNotFound | ProjectNotFound | AdmissionRejected | HeldByOtherCell | HeldByOtherService
)
_Refusal = (
    ProjectUnresolvable | BackendUnavailable | SizeUnknown | ClaimInvalid | ClaimDenied | _Answer
)


def _describe_refusal(state: _Refusal) -> tuple[str, str]:
    match state:
        case ClaimInvalid(message=message):
            return reasons.VALIDATION_FAILED, message
        case ClaimDenied():
            return reasons.QUOTA_EXCEEDED, _describe_shortages(state)
        case ProjectUnresolvable(what=what, detail=detail):
            message = f"Could not resolve project {what}: {detail}"
            return reasons.QUOTA_PROJECT_ID_UNRESOLVABLE, message
        case BackendUnavailable():
            return reasons.QUOTA_BACKEND_UNAVAILABLE, _describe_outage(state)
        case SizeUnknown(instance_type=name):
            message = f'Instance type "{name}" is unknown and no explicit size is given'
            return reasons.UNKNOWN_INSTANCE_TYPE, message
        case _:
            return _describe_answer(state)


def _describe_answer(state: _Answer) -> tuple[str, str]:
    """Refusals for which the project answered."""
    match state:
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
            assert_never(state)


def _describe_outage(state: BackendUnavailable) -> str:
    if state.step == "building":
        return f'Failed to build quota client for project "{state.project}": {state.detail}'
    return f"Quota backend unreachable {state.step} ResourceClaim: {state.detail}"


def _describe_shortages(state: ClaimDenied) -> str:
    """The claim's message, then each shortage and its amount."""
    short = (f" {one.resource_type.rpartition('/')[2]}: {one.message}" for one in state.shortages)
    return state.message + "".join(short)


# --- requeue --------------------------------------------------------------------------------------

_REQUEUE_BY_AGE: Final = (
    (timedelta(seconds=60), timedelta(seconds=1)),
    (timedelta(minutes=5), timedelta(seconds=15)),
    (timedelta(minutes=10), timedelta(seconds=60)),
)
"""Younger than this → this delay; a boundary belongs to the slower tier."""
_REQUEUE_OLD: Final = timedelta(seconds=300)
_REQUEUE_HELD_BY_OTHERS: Final = timedelta(seconds=15)
"""The claim that takes the name is outside the watch, so its end is seen only by a read."""


def derive_requeue(
    granted: str | None, age: timedelta, *, is_held_by_others: bool = False
) -> timedelta | None:
    """When the claim of an Instance is checked again, by the status of `QuotaGranted` and the age
    of the Instance; None for True and without a condition. A safety net for a lost event: with a
    synced watch the check costs no request (quota.md B5).
    """
    if granted is None or granted == "True":
        return None
    if is_held_by_others:
        return _REQUEUE_HELD_BY_OTHERS
    return next((delay for bound, delay in _REQUEUE_BY_AGE if age < bound), _REQUEUE_OLD)
