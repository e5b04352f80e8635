"""The slot track: creates missing desired slots in order and replaces stale ones. Pure (cell.md
5.4).

Each track has at most one create or delete per reconcile, and neither waits for the other (`scale`
is the surplus track). A roll of healthy Instances descends from the highest ordinal, by delete →
wait until gone → create in the same slot, and only while every slot is filled and ready. A broken
Instance of an old template is replaced before any healthy one, but after a slot in flight on the
current template: a bad template must not spread over more than one slot.

```
 D=3   0 ready  1 fresh-unready  2 missing        wait for 1, hold the create of 2
 D=3   0 stale-ready  1 stale-unready  2 ok       delete 1 at once, then roll 0
 D=2   0 missing  1 terminating                   create 0: it is below what is in flight
```

Cost grows with the existing Instances, not with `desired`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compute_cell_operator.deployment.plan.scale import plan_removal, plan_surplus
from compute_cell_operator.deployment.plan.steps import (
    AWAITING_DATA,
    CreateStep,
    HoldStep,
    Purpose,
    RemoveStep,
    Step,
    WaitStep,
)
from compute_cell_operator.deployment.slots import DeploymentSlotState, Slots


@dataclass(frozen=True, slots=True)
class InstanceDemand:
    """Inputs of the two tracks besides the Instances themselves."""

    desired: int
    is_deleting: bool = False
    is_wrong_city: bool = False  # delivered to a cell of another city: nothing starts here
    is_suspended: bool = False  # the slots wait for the resume (suspension.md 4)
    # A healthy Instance is not given up for a successor that could not start (referenced-data.md 6)
    is_data_awaited: bool = False


def plan_instances(slots: Slots, demand: InstanceDemand) -> tuple[Step, ...]:
    """The steps of both tracks in one reconcile, those held back included."""
    if demand.is_deleting:
        return tuple(plan_removal(slots))
    surplus = plan_surplus(slots, demand.desired)
    if demand.is_wrong_city:
        # Running Instances keep running and surplus is removed; nothing is created or rolled.
        return tuple(surplus)
    if demand.is_suspended:
        return tuple(surplus)
    return (
        *surplus,
        *plan_slots(slots, demand.desired, is_data_awaited=demand.is_data_awaited),
    )


def plan_slots(slots: Slots, desired: int, *, is_data_awaited: bool = False) -> Iterator[Step]:
    """At most one create or delete, by the first rule that applies; `_next_hold` shows the rest."""
    states = _occupied(slots, desired)
    missing = _lowest_missing(states, desired)
    in_flight = min((o for o, state in states.items() if state.is_in_flight), default=None)
    if in_flight is not None:
        yield from _beside_flight(states, missing, in_flight, desired)
        return
    broken = min(
        (o for o, s in states.items() if s is DeploymentSlotState.STALE_UNREADY), default=None
    )
    if broken is not None and (missing is None or broken < missing):
        yield RemoveStep(slots.by_ordinal[broken], Purpose.RECREATE)
        return
    if missing is not None:
        yield CreateStep(missing)
        yield from _next_hold(states, missing, desired)
        return
    stale = max(
        (o for o, s in states.items() if s is DeploymentSlotState.STALE_READY), default=None
    )
    if stale is not None and is_data_awaited:
        yield WaitStep(stale, AWAITING_DATA)
    elif stale is not None:
        yield RemoveStep(slots.by_ordinal[stale], Purpose.RECREATE)


def _beside_flight(
    states: dict[int, DeploymentSlotState], missing: int | None, in_flight: int, desired: int
) -> Iterator[Step]:
    """A gap below the slot in flight is filled all the same, if all slots below it are ready."""
    if missing is not None and missing < in_flight and _all_ready(states, missing):
        yield CreateStep(missing)
        yield from _next_hold(states, missing, desired)
        return
    yield WaitStep(in_flight, states[in_flight].value)
    if missing is not None:
        yield HoldStep(missing)


def _occupied(slots: Slots, desired: int) -> dict[int, DeploymentSlotState]:
    """States of the desired slots with an Instance; every other desired slot is missing."""
    occupied = {*slots.by_ordinal, *slots.foreign}
    return {ordinal: slots.state(ordinal) for ordinal in sorted(occupied) if ordinal < desired}


def _lowest_missing(
    states: dict[int, DeploymentSlotState], desired: int, above: int = -1
) -> int | None:
    ordinal = above + 1
    while ordinal in states:
        ordinal += 1
    return ordinal if ordinal < desired else None


def _all_ready(states: dict[int, DeploymentSlotState], below: int) -> bool:
    # `below` is the lowest missing slot, so all of 0…below-1 have a state.
    return all(state.is_ready for ordinal, state in states.items() if ordinal < below)


def _next_hold(
    states: dict[int, DeploymentSlotState], created: int, desired: int
) -> Iterator[HoldStep]:
    following = _lowest_missing(states, desired, above=created)
    if following is not None:
        yield HoldStep(following)
