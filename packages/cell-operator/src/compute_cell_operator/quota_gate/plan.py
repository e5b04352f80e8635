"""What to do about the claim of one slot. Pure (quota.md B3, B6).

```
nothing there        create, when its time has come        ours, of a gone one   adopt
a tenant's           replace                               ours, no UID          adopt
another cell's       never touched                         ours, other size      replace
another service's    never touched                         ours, of a live one   wait
as wanted            read its verdict; denied or invalid: release at once, ask again later
```

A started Instance runs at the size it was granted: a claim of another size under it is ignored, and
one that is lost is made again later. Who carries out a step reads the Instance live before each
create and adopt, so that a dead one never takes the claim from the living.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from compute_cell_operator.quota_gate.findings import (
    ClaimDenied,
    ClaimInvalid,
    Granted,
    HeldByOtherCell,
    HeldByOtherService,
    Said,
    Undecided,
    Unevaluated,
)
from compute_cell_operator.quota_gate.found import (
    Different,
    Found,
    Holder,
    Holding,
    Leaving,
    Nothing,
    OtherService,
    Refused,
    Strange,
    Waiting,
)
from compute_operator_kit.keys import Uid

AFTER_LOSS: Final = timedelta(seconds=10)
"""A purge of the project takes claims first: what goes with it must not be claimed again."""


class Recreated(StrEnum):
    """Why a claim is made again: `reason` of `compute_quota_claims_recreated_total`."""

    DENIED = "denied"
    SIZE_CHANGED = "size_changed"
    FOREIGN = "foreign"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Postponed:
    """The claim is asked for again not before `until`."""

    until: datetime
    because: Recreated
    requests: Mapping[str, int] = field(default_factory=dict[str, int])  # the size it was denied at


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot and the Instance in it."""

    uid: Uid
    requests: Mapping[str, int]
    is_started: bool = False
    is_terminating: bool = False
    had_claim: bool = False  # a grant was recorded for it, so an absent claim is a lost one
    postponed: Postponed | None = None


@dataclass(frozen=True, slots=True)
class RequestClaim:
    """Make the wanted claim."""

    recreated: Recreated | None = None


@dataclass(frozen=True, slots=True)
class AdoptClaim:
    """Hand the claim on to the Instance that is in the slot now."""

    claim_uid: str


@dataclass(frozen=True, slots=True)
class ReleaseClaim:
    """Delete this very claim."""

    claim_uid: str


@dataclass(frozen=True, slots=True)
class Postpone:
    """Ask again later: at `until`, or where that is None when the denials' schedule says so."""

    because: Recreated
    until: datetime | None = None


ClaimStep: TypeAlias = RequestClaim | AdoptClaim | ReleaseClaim | Postpone


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """Steps in their order; each only if the former succeeded. And what is known meanwhile."""

    said: Said
    steps: tuple[ClaimStep, ...] = ()


def plan_claim(found: Found, slot: Slot, now: datetime) -> ClaimPlan:
    # Going: nothing is made, adopted or replaced for it; its claim goes with the slot. Only what a
    # refused claim holds in part is given back now, as always.
    if slot.is_terminating:
        given = (ReleaseClaim(found.uid),) if isinstance(found, Refused) else ()
        return ClaimPlan(_read(found), given)
    match found:
        case Nothing():
            return _plan_absent(slot, now)
        case Strange():
            return _plan_strange(found)
        case OtherService(namespace=namespace, name=name, resource_type=other):
            return ClaimPlan(HeldByOtherService(namespace, name, other))
        case Different():
            return _plan_different(found, slot, now)
        case Refused(uid=uid):
            # At once, started or not: what was reserved in part is not given back by itself.
            steps = (ReleaseClaim(uid), Postpone(_cause(slot)))
            return ClaimPlan(_read(found), steps)
        case Leaving() | Waiting() | Holding():
            return ClaimPlan(_read(found))
        case _:
            assert_never(found)


def _plan_absent(slot: Slot, now: datetime) -> ClaimPlan:
    postponed = _counting(slot)
    if postponed is not None:
        is_due = now >= postponed.until
        steps: tuple[ClaimStep, ...] = (RequestClaim(postponed.because),) if is_due else ()
        return ClaimPlan(Undecided(), steps)
    if slot.is_started and slot.had_claim:
        return ClaimPlan(Undecided(), (Postpone(Recreated.LOST, now + AFTER_LOSS),))
    return ClaimPlan(Undecided(), (RequestClaim(),))


def _counting(slot: Slot) -> Postponed | None:
    """The wait that still counts: a denial is about a size, and says nothing about another."""
    postponed = slot.postponed
    if postponed is None or postponed.because is not Recreated.DENIED:
        return postponed
    return postponed if postponed.requests == slot.requests else None


def _plan_strange(found: Strange) -> ClaimPlan:
    if found.cell:
        return ClaimPlan(HeldByOtherCell(found.namespace, found.name, found.cell))
    return ClaimPlan(Undecided(), _replace(found.uid, Recreated.FOREIGN))


def _plan_different(found: Different, slot: Slot, now: datetime) -> ClaimPlan:
    # Somebody lives on it, or nobody could say: not ours to take.
    if found.holder in {Holder.LIVE, Holder.UNKNOWN}:
        return ClaimPlan(Undecided())
    if not found.is_same_size:
        steps = () if slot.is_started else _replace(found.uid, Recreated.SIZE_CHANGED)
        return ClaimPlan(Undecided(), steps)
    if found.holder is Holder.NOBODY:
        return ClaimPlan(Undecided(), _restore(found, slot, now))
    return ClaimPlan(Undecided(), (AdoptClaim(found.uid),))


def _restore(found: Different, slot: Slot, now: datetime) -> tuple[ClaimStep, ...]:
    """A claim that names neither UID nor namespace proves nothing, and cannot be handed on."""
    if slot.is_started:
        return (ReleaseClaim(found.uid), Postpone(Recreated.LOST, now + AFTER_LOSS))
    return (ReleaseClaim(found.uid), RequestClaim())


def _replace(uid: str, recreated: Recreated) -> tuple[ClaimStep, ...]:
    return (ReleaseClaim(uid), RequestClaim(recreated))


def _cause(slot: Slot) -> Recreated:
    return Recreated.LOST if slot.is_started else Recreated.DENIED


def _read(found: Found) -> Said:
    """What a claim that is left as it is says."""
    match found:
        case Holding(message=message):
            return Granted(message)
        case Waiting(since=since):
            return Unevaluated(since)
        case Refused(is_invalid=True, message=message):
            return ClaimInvalid(message)
        case Refused(message=message, shortages=shortages):
            return ClaimDenied(message, shortages)
        case _:
            return Undecided()


# --- release --------------------------------------------------------------------------------------


def is_slot_wanted(ordinal: int | None, desired: int | None) -> bool:
    """Whether the claim of a slot stays (cell.md 12).

    `ordinal` is None for a name that is no slot's, `desired` for a deployment that is gone.
    """
    return ordinal is not None and desired is not None and ordinal < desired
