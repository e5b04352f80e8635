"""What a sweep makes of the claims it found. Pure (cell.md 12, quota.md B6).

```
 claim at the place of a slot of ours     its Instance lives, and is recorded   nothing to do
                                          its Instance lives, another recorded  look: to hand it on
                                          none lives, the slot is wanted        nothing to do
                                          otherwise                             left behind
 claim elsewhere, or of another name      named Instance lives, slot wanted     nothing to do
                                          otherwise                             left behind
 started Instance without a claim                                               look: lost, or never
                                                                                made
```

A sweep only says where to look. Whoever looks asks the cell itself before anything is released.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from compute_cell_operator.quota_gate.found import Recorded
from compute_cell_operator.quota_gate.place import Place
from compute_operator_kit.keys import ObjectKey, Uid


@dataclass(frozen=True, slots=True)
class SlotSeen:
    """A slot of this cell, as its caches show it."""

    key: ObjectKey
    uid: Uid | None  # of the Instance in it
    is_wanted: bool

    @property
    def is_kept(self) -> bool:
        return self.uid is not None or self.is_wanted


@dataclass(frozen=True, slots=True)
class Listed:
    """A claim of this cell, with the slots it may be for."""

    place: Place
    uid: str
    recorded: Recorded
    here: SlotSeen | None  # the slot whose claim belongs at this place
    named: SlotSeen | None  # the slot that the claim itself names


@dataclass(frozen=True, slots=True)
class Leftover:
    """A claim that nobody here seems to need; `key` is None where no slot is named."""

    place: Place
    uid: str
    key: ObjectKey | None


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Where to look."""

    looked_at: int = 0
    suspects: tuple[ObjectKey, ...] = ()
    leftovers: tuple[Leftover, ...] = ()

    def join(self, other: SweepPlan) -> SweepPlan:
        return SweepPlan(
            self.looked_at + other.looked_at,
            self.suspects + other.suspects,
            self.leftovers + other.leftovers,
        )


@dataclass(frozen=True, slots=True)
class Swept:
    """One project: its claims of this cell, and the started Instances that should have one."""

    claims: tuple[Listed, ...]
    started: Mapping[Place, ObjectKey] = field(default_factory=dict[Place, ObjectKey])


def plan_sweep(seen: Swept) -> SweepPlan:
    claimed = {claim.place for claim in seen.claims}
    missing = (key for place, key in sorted(seen.started.items()) if place not in claimed)
    return SweepPlan(
        looked_at=len(seen.claims),
        suspects=tuple(dict.fromkeys((*_handed_on(seen.claims), *missing))),
        leftovers=tuple(_left_behind(seen.claims)),
    )


def _handed_on(claims: Iterable[Listed]) -> Iterator[ObjectKey]:
    for claim in claims:
        slot = claim.here
        if slot is None or slot.uid is None:
            continue
        recorded = claim.recorded
        if recorded.uid != slot.uid or recorded.namespace != slot.key.namespace:
            yield slot.key


def _left_behind(claims: Iterable[Listed]) -> Iterator[Leftover]:
    for claim in claims:
        slots = [slot for slot in (claim.here, claim.named) if slot is not None]
        if any(slot.is_kept for slot in slots):
            continue
        yield Leftover(claim.place, claim.uid, slots[0].key if slots else None)
