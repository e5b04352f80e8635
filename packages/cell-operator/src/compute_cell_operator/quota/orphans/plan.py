"""Which listed claims are orphans, and which slots need a check. Pure (cell.md 12, quota.md B6).

```
claim of a slot of this cell      its Instance exists and is recorded       nothing
                                  its Instance exists, another is recorded  check: adopt
                                  no Instance, the slot is wanted           nothing
                                  otherwise                                 orphan
claim elsewhere, or other name    recorded Instance exists or slot wanted   nothing
                                  otherwise                                 orphan
started Instance without a claim                                            check: make it again
```

A list is compared with caches, and either may be stale: nothing is released on a plan. The slot's
reconcile reads the cell live before it releases a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from compute_cell_operator.quota.project_ref import ClaimRef, ClaimSubject
from compute_operator_kit.core.keys import ObjectKey, Uid


@dataclass(frozen=True, slots=True)
class ObservedSlot:
    """A slot of this cell, as its caches have it."""

    key: ObjectKey
    uid: Uid | None  # of the Instance in it
    is_wanted: bool

    @property
    def is_kept(self) -> bool:
        return self.uid is not None or self.is_wanted


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A claim of this cell, with the slots it may belong to."""

    ref: ClaimRef
    uid: str
    subject: ClaimSubject
    here: ObservedSlot | None  # the slot that a claim with this reference belongs to
    recorded: ObservedSlot | None  # the slot that the subject names


@dataclass(frozen=True, slots=True)
class OrphanedClaim:
    """A claim without Instance and wanted slot; `key` is None where it belongs to no slot."""

    ref: ClaimRef
    uid: str
    key: ObjectKey | None


@dataclass(frozen=True, slots=True)
class OrphanPlan:
    """Slots to check and claims to release."""

    listed: int = 0
    checks: tuple[ObjectKey, ...] = ()
    orphans: tuple[OrphanedClaim, ...] = ()

    def join(self, other: OrphanPlan) -> OrphanPlan:
        return OrphanPlan(
            self.listed + other.listed,
            self.checks + other.checks,
            self.orphans + other.orphans,
        )


@dataclass(frozen=True, slots=True)
class ListedProject:
    """One project: its claims of this cell, and the started Instances that should have one."""

    claims: tuple[ListedClaim, ...]
    started: Mapping[ClaimRef, ObjectKey] = field(default_factory=dict[ClaimRef, ObjectKey])


def plan_orphans(observed: ListedProject) -> OrphanPlan:
    existing = {claim.ref for claim in observed.claims}
    missing = (key for ref, key in sorted(observed.started.items()) if ref not in existing)
    return OrphanPlan(
        listed=len(observed.claims),
        checks=tuple(dict.fromkeys((*_adoptions(observed.claims), *missing))),
        orphans=tuple(_orphans(observed.claims)),
    )


def _adoptions(claims: Iterable[ListedClaim]) -> Iterator[ObjectKey]:
    for claim in claims:
        slot = claim.here
        if slot is None or slot.uid is None:
            continue
        if claim.subject != ClaimSubject(slot.key.namespace, slot.uid):
            yield slot.key


def _orphans(claims: Iterable[ListedClaim]) -> Iterator[OrphanedClaim]:
    for claim in claims:
        slots = [slot for slot in (claim.here, claim.recorded) if slot is not None]
        if any(slot.is_kept for slot in slots):
            continue
        yield OrphanedClaim(claim.ref, claim.uid, slots[0].key if slots else None)
