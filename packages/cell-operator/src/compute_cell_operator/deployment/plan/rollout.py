"""The slot track: fills wanted slots in order and renews stale ones. Pure (cell.md 5.4).

A roll of healthy Instances goes from the highest ordinal down, by delete → wait until gone → create
in the same slot, and only while every slot is filled and ready. A broken Instance of an old
template is replaced before any healthy one; only a slot already in flight on the current template
goes first, so that a bad template never spreads over more than one slot.

```
 D=3   0 ready  1 fresh-unready  2 missing        wait for 1, hold the create of 2
 D=3   0 stale-ready  1 stale-unready  2 ok       delete 1 at once, then roll 0
 D=2   0 missing  1 terminating                   create 0: it is below what is in flight
```

Cost grows with the Instances there are, not with `desired`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from compute_cell_operator.deployment.plan.steps import Create, Hold, Purpose, Remove, Wait
from compute_cell_operator.deployment.slots import Slots, SlotState

SlotStep: TypeAlias = Create | Remove | Hold | Wait


def plan_slots(slots: Slots, desired: int) -> Iterator[SlotStep]:
    """At most one create or delete, by the first rung that applies; `_next_hold` shows the rest."""
    states = _occupied(slots, desired)
    missing = _lowest_missing(states, desired)
    in_flight = min((o for o, state in states.items() if state.is_in_flight), default=None)
    if in_flight is not None:
        yield from _beside_flight(states, missing, in_flight, desired)
        return
    broken = min((o for o, s in states.items() if s is SlotState.STALE_UNREADY), default=None)
    if broken is not None and (missing is None or broken < missing):
        yield Remove(slots.by_ordinal[broken], Purpose.RECREATE)
        return
    if missing is not None:
        yield Create(missing)
        yield from _next_hold(states, missing, desired)
        return
    stale = max((o for o, s in states.items() if s is SlotState.STALE_READY), default=None)
    if stale is not None:
        yield Remove(slots.by_ordinal[stale], Purpose.RECREATE)


def _beside_flight(
    states: dict[int, SlotState], missing: int | None, in_flight: int, desired: int
) -> Iterator[SlotStep]:
    """A gap below what is in flight is filled all the same, if everything below it is ready."""
    if missing is not None and missing < in_flight and _all_ready(states, missing):
        yield Create(missing)
        yield from _next_hold(states, missing, desired)
        return
    yield Wait(in_flight, states[in_flight].value)
    if missing is not None:
        yield Hold(missing)


def _occupied(slots: Slots, desired: int) -> dict[int, SlotState]:
    """States of the wanted slots that hold something; every other wanted slot is missing."""
    held = {*slots.by_ordinal, *slots.foreign}
    return {ordinal: slots.state(ordinal) for ordinal in sorted(held) if ordinal < desired}


def _lowest_missing(states: dict[int, SlotState], desired: int, above: int = -1) -> int | None:
    ordinal = above + 1
    while ordinal in states:
        ordinal += 1
    return ordinal if ordinal < desired else None


def _all_ready(states: dict[int, SlotState], below: int) -> bool:
    # All of 0…below-1 are occupied here, `below` being the lowest that is not.
    return all(state.is_ready for ordinal, state in states.items() if ordinal < below)


def _next_hold(states: dict[int, SlotState], created: int, desired: int) -> Iterator[Hold]:
    following = _lowest_missing(states, desired, above=created)
    if following is not None:
        yield Hold(following)
