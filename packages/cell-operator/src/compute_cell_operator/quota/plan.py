"""The steps for the claim of one slot. Pure (quota.md B3, B6).

```
absent               create, when its time has come        ours, of a gone one   adopt
a tenant's           replace                               ours, no UID          adopt
another cell's       never touched                         ours, other size      replace
another service's    never touched                         ours, of a live one   wait
as desired           none; denied or invalid: release at once, request again later
```

One denied claim is not released at once: that of an Instance which another operator made and which
has not started. It is kept until its next attempt is due; otherwise a change of operators would
delete a claim and give back what it reserves in part.

A started Instance runs at the size it was granted: a claim of another size is ignored, and a lost
claim is requested again later. Before each create and adopt the applier reads the Instance live, so
that a deleted Instance never takes the claim of its successor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from compute_cell_operator.quota.project_ref import ProjectUnresolvable
from compute_cell_operator.quota.result import (
    AdmissionRejected,
    BackendUnavailable,
    ClaimAbsent,
    ClaimDenied,
    ClaimGranted,
    ClaimHolder,
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
)
from compute_operator_kit.core.keys import Uid

AFTER_LOSS: Final = timedelta(seconds=10)
"""A purge of the project deletes claims first: no claim may be put back into it."""


class Recreated(StrEnum):
    """Why a claim is made again: `reason` of `compute_quota_claims_recreated_total`."""

    DENIED = "denied"
    SIZE_CHANGED = "size_changed"
    FOREIGN = "foreign"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Postponed:
    """The claim is not requested again before `until`."""

    until: datetime
    because: Recreated
    requests: Mapping[str, int] = field(default_factory=dict[str, int])  # the size it was denied at
    kept: str = ""  # the UID of the denied claim that is kept until then


@dataclass(frozen=True, slots=True)
class QuotaSlot:
    """One slot, the Instance in it, and the UID of the claim that was observed."""

    uid: Uid
    requests: Mapping[str, int]
    claim_uid: str = ""  # "": no claim exists
    is_started: bool = False
    is_terminating: bool = False
    had_claim: bool = False  # a grant is stored for it, so an absent claim is a lost one
    postponed: Postponed | None = None
    is_taken_over: bool = False  # another operator made it, and this process requested no claim yet


@dataclass(frozen=True, slots=True)
class RequestClaim:
    """Create the desired claim."""

    recreated: Recreated | None = None


@dataclass(frozen=True, slots=True)
class AdoptClaim:
    """Hand the claim on to the Instance that is in the slot now."""

    claim_uid: str


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """Delete the claim with this UID."""

    claim_uid: str


@dataclass(frozen=True, slots=True)
class Postpone:
    """Request again later: at `until`, or, where that is None, by the schedule of denials."""

    because: Recreated
    until: datetime | None = None
    kept: str = ""  # the UID of a denied claim that is kept until then


ClaimStep: TypeAlias = RequestClaim | AdoptClaim | ReleaseClaim | Postpone


def plan_claim(state: ClaimState, slot: QuotaSlot, now: datetime) -> tuple[ClaimStep, ...]:
    """Steps in their order, each to be carried out only if the former succeeded."""
    # Terminating: no claim is created, adopted or replaced; the slot keeps or releases its own.
    # Only what a refused claim reserves in part is given back now.
    if slot.is_terminating:
        is_refused = isinstance(state, ClaimDenied | ClaimInvalid)
        return (ReleaseClaim(slot.claim_uid),) if is_refused else ()
    match state:
        case ClaimAbsent():
            return _plan_absent(slot, now)
        case ClaimUnlabelled():
            return _replace(slot, Recreated.FOREIGN)
        case ClaimMismatched():
            return _plan_mismatched(state, slot, now)
        case ClaimDenied() | ClaimInvalid():
            return _plan_refused(slot, now)
        case ClaimReleasing() | ClaimPending() | ClaimGranted():
            return ()
        case HeldByOtherCell() | HeldByOtherService() | ProjectSuspended():
            return ()
        case Disabled() | SizeUnknown() | ProjectUnresolvable() | NoResult():
            return ()
        case BackendUnavailable() | NamespaceNotFound() | ProjectNotFound() | AdmissionRejected():
            return ()
        case _:
            assert_never(state)


def _plan_absent(slot: QuotaSlot, now: datetime) -> tuple[ClaimStep, ...]:
    postponed = _find_wait(slot)
    if postponed is not None:
        return (RequestClaim(postponed.because),) if now >= postponed.until else ()
    if slot.is_started and slot.had_claim:
        return (Postpone(Recreated.LOST, now + AFTER_LOSS),)
    return (RequestClaim(),)


def _find_wait(slot: QuotaSlot) -> Postponed | None:
    """The wait that still counts: a denial is about one size and not about another."""
    postponed = slot.postponed
    if postponed is None or postponed.because is not Recreated.DENIED:
        return postponed
    return postponed if postponed.requests == slot.requests else None


def _plan_refused(slot: QuotaSlot, now: datetime) -> tuple[ClaimStep, ...]:
    if slot.is_taken_over and not slot.is_started:
        return _plan_taken_over(slot, now)
    # At once, started or not: the service does not give back by itself what is reserved in part.
    because = Recreated.LOST if slot.is_started else Recreated.DENIED
    return (ReleaseClaim(slot.claim_uid), Postpone(because))


def _plan_taken_over(slot: QuotaSlot, now: datetime) -> tuple[ClaimStep, ...]:
    """The denied claim of another operator is kept until its next attempt is due. The wait of a
    stored denial, or for another claim, does not count: it may be shorter.
    """
    postponed = slot.postponed
    if postponed is None or postponed.kept != slot.claim_uid:
        return (Postpone(Recreated.DENIED, kept=slot.claim_uid),)
    return _replace(slot, Recreated.DENIED) if now >= postponed.until else ()


def _plan_mismatched(
    state: ClaimMismatched, slot: QuotaSlot, now: datetime
) -> tuple[ClaimStep, ...]:
    # An Instance uses the claim, or that could not be read: the claim is left alone.
    if state.holder in {ClaimHolder.LIVE, ClaimHolder.UNKNOWN}:
        return ()
    if not state.is_same_size:
        return () if slot.is_started else _replace(slot, Recreated.SIZE_CHANGED)
    if state.holder is ClaimHolder.NONE:
        return _plan_unrecorded(slot, now)
    return (AdoptClaim(slot.claim_uid),)


def _plan_unrecorded(slot: QuotaSlot, now: datetime) -> tuple[ClaimStep, ...]:
    """A claim that records neither UID nor namespace proves nothing and cannot be adopted."""
    release = ReleaseClaim(slot.claim_uid)
    if slot.is_started:
        return (release, Postpone(Recreated.LOST, now + AFTER_LOSS))
    return (release, RequestClaim())


def _replace(slot: QuotaSlot, recreated: Recreated) -> tuple[ClaimStep, ...]:
    return (ReleaseClaim(slot.claim_uid), RequestClaim(recreated))


# --- release --------------------------------------------------------------------------------------


def is_slot_wanted(ordinal: int | None, desired: int | None) -> bool:
    """Whether the claim of a slot is kept (cell.md 12).

    `ordinal` is None for a name that is no slot's, `desired` for a deployment that is gone.
    """
    return ordinal is not None and desired is not None and ordinal < desired
