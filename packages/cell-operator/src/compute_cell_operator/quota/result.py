"""The state of an Instance's claim, and the result that the instance controller reads. Pure.

`observe` fills one `ClaimState`; `plan`, the result and `status` use the same value. A result holds
for one Instance UID and one size: the grant of a predecessor must not open the gate of its
successor (quota.md B3, B4).

```
quota controller  ── QuotaResult(uid, requests, ClaimState) ──►  QuotaResults.result(key)
instance controller: `derive_claim_state` ─► `status.report_quota` ─► `QuotaGranted`, Quota gate
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from compute_api_types.sizes import Size
from compute_cell_operator.quota.project_ref import BillingProject, ProjectUnresolvable
from compute_cell_operator.quota.size import UnknownSize
from compute_operator_kit.core.keys import ObjectKey, Uid

FailedStep: TypeAlias = Literal["building", "getting", "creating", "adopting"]

# --- without a request ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Disabled:
    """Row 1: quota is switched off."""


@dataclass(frozen=True, slots=True)
class SizeUnknown:
    """Row 4."""

    instance_type: str


@dataclass(frozen=True, slots=True)
class NoResult:
    """Row 5: no result for this Instance UID and size yet."""


# --- the claim, as read ---------------------------------------------------------------------------


class ClaimHolder(StrEnum):
    """The Instance that a claim records by its UID, seen from the Instance in the slot."""

    NONE = "none"  # neither a UID nor this slot's namespace is recorded
    UNRECORDED = "unrecorded"  # this slot's namespace without a UID: a claim of the Go operators
    SELF = "self"
    GONE = "gone"  # proven: no Instance has that UID any more
    LIVE = "live"
    UNKNOWN = "unknown"  # the cell could not be read


@dataclass(frozen=True, slots=True)
class ClaimAbsent:
    """Row 5: no claim has the name."""


@dataclass(frozen=True, slots=True)
class ClaimReleasing:
    """Row 5: the claim is being deleted."""


@dataclass(frozen=True, slots=True)
class ClaimUnlabelled:
    """Row 5: a claim of the name without a cell's label, as a tenant makes it."""


@dataclass(frozen=True, slots=True)
class ClaimMismatched:
    """Row 5: a claim of this cell with another subject or size than the desired one."""

    holder: ClaimHolder
    is_same_size: bool  # False: requests, consumer, resource or allocations differ


@dataclass(frozen=True, slots=True)
class ClaimPending:
    """Rows 5 and 6: the claim is not evaluated yet."""

    since: datetime


@dataclass(frozen=True, slots=True)
class HeldByOtherCell:
    """Row 10: the name is taken by another cell's claim, which is never touched."""

    namespace: str
    claim: str
    cell: str


@dataclass(frozen=True, slots=True)
class HeldByOtherService:
    """Row 10: the name is taken by a claim on other than compute's resources; never touched."""

    namespace: str
    claim: str
    resource_type: str


@dataclass(frozen=True, slots=True)
class ClaimGranted:
    """Row 11; with `Disabled` the only state that opens a gate."""

    message: str
    is_held: bool = False  # by the last verdict, while the project does not answer (quota.md B6)


@dataclass(frozen=True, slots=True)
class ClaimInvalid:
    """Row 12: the quota service calls the claim invalid."""

    message: str


@dataclass(frozen=True, slots=True)
class Shortage:
    """One request of a claim that was denied."""

    resource_type: str
    message: str


@dataclass(frozen=True, slots=True)
class ClaimDenied:
    """Row 12: the claim does not fit; parts of it may be reserved."""

    message: str
    shortages: tuple[Shortage, ...] = ()


# --- failed requests ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BackendUnavailable:
    """Row 3: the project does not answer, and no held grant covers the Instance."""

    project: str
    step: FailedStep
    detail: str


@dataclass(frozen=True, slots=True)
class NamespaceNotFound:
    """Row 7."""

    project: str
    namespace: str


@dataclass(frozen=True, slots=True)
class ProjectNotFound:
    """Row 8."""

    project: str


@dataclass(frozen=True, slots=True)
class AdmissionRejected:
    """Row 9."""

    project: str
    detail: str


@dataclass(frozen=True, slots=True)
class ProjectSuspended:
    """Row 9a: the project is suspended and accepts no claim until it resumes."""


# --- the union ------------------------------------------------------------------------------------

Undecided: TypeAlias = NoResult | ClaimAbsent | ClaimReleasing | ClaimUnlabelled | ClaimMismatched
"""Row 5: no claim that could be granted exists for the Instance."""

ClaimState: TypeAlias = (
    Disabled
    | ProjectUnresolvable
    | BackendUnavailable
    | SizeUnknown
    | NoResult
    | ClaimAbsent
    | ClaimReleasing
    | ClaimUnlabelled
    | ClaimMismatched
    | ClaimPending
    | NamespaceNotFound
    | ProjectNotFound
    | AdmissionRejected
    | ProjectSuspended
    | HeldByOtherCell
    | HeldByOtherService
    | ClaimGranted
    | ClaimInvalid
    | ClaimDenied
)


def opens_gate(state: ClaimState) -> bool:
    """Whether the Instance may start. A failed request never opens a gate."""
    return isinstance(state, ClaimGranted | Disabled)


def is_held_by_others(state: ClaimState) -> bool:
    """Whether the claim of the name is outside the watch, so that only a read shows its end."""
    return isinstance(state, HeldByOtherCell | HeldByOtherService)


# --- the result -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuotaResult:
    """The state of a claim, with the Instance and size that it holds for."""

    uid: Uid
    requests: Mapping[str, int]
    state: ClaimState

    def holds_for(self, uid: Uid, requests: Mapping[str, int]) -> bool:
        return self.uid == uid and self.requests == requests

    def is_equivalent(self, other: QuotaResult | None) -> bool:
        """Whether the instance controller reports the same for both."""
        if other is None or not other.holds_for(self.uid, self.requests):
            return False
        are_undecided = isinstance(self.state, Undecided) and isinstance(other.state, Undecided)
        return are_undecided or self.state == other.state


class QuotaResults(Protocol):
    """The quota controller, as the instance controller uses it. Neither method waits."""

    def result(self, instance: ObjectKey) -> QuotaResult | None:
        """The last result for an Instance of this name; it names the UID it holds for."""
        ...

    def enqueue(self, instance: ObjectKey) -> None:
        """Has the claim checked again: its time has come (quota.md B5)."""
        ...


class NoQuotaResults:
    """Quota is switched off."""

    def result(self, instance: ObjectKey) -> QuotaResult | None:  # noqa: ARG002
        return None

    def enqueue(self, instance: ObjectKey) -> None:
        pass


@dataclass(frozen=True, slots=True)
class QuotaFacts:
    """Inputs of one Instance's claim state."""

    is_enforced: bool
    size: Size | UnknownSize
    # None: the Namespace is not in the cache yet.
    billing_project: BillingProject | ProjectUnresolvable | None
    result: QuotaResult | None


def derive_claim_state(uid: Uid, facts: QuotaFacts) -> ClaimState:
    """Rows 1, 4 and 2 of B4, then the result if it holds for this UID and size."""
    if not facts.is_enforced:
        return Disabled()
    if isinstance(facts.size, UnknownSize):
        return SizeUnknown(facts.size.instance_type)
    if isinstance(facts.billing_project, ProjectUnresolvable):
        return facts.billing_project
    result = facts.result
    if result is None or not result.holds_for(uid, facts.size.requests):
        return NoResult()
    return result.state
