"""What is done next about the Instances of one deployment. Pure (cell.md 5.4).

Two tracks, each of which lets at most one create or delete through per pass: `scale` removes what
is too much, `rollout` fills and renews the wanted slots. Neither waits for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from compute_cell_operator.deployment.plan import rollout, scale
from compute_cell_operator.deployment.plan.steps import Create, Hold, Remove, Wait
from compute_cell_operator.deployment.slots import Slots

Step: TypeAlias = Create | Remove | Hold | Wait


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of the planner besides the Instances themselves."""

    desired: int
    is_deleting: bool = False
    is_wrong_city: bool = False  # delivered to a cell of another city: nothing starts here


def plan_instances(slots: Slots, demand: Demand) -> tuple[Step, ...]:
    """The steps of this pass; held ones are in it too, so that they can be shown."""
    if demand.is_deleting:
        return tuple(scale.plan_removal(slots))
    surplus = scale.plan_surplus(slots, demand.desired)
    if demand.is_wrong_city:
        # What runs here runs on, what is too much goes; nothing is created or rolled.
        return tuple(surplus)
    return (*surplus, *rollout.plan_slots(slots, demand.desired))
