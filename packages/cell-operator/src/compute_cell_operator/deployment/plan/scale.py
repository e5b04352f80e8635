"""The surplus track: removes Instances above the desired number, one at a time. Pure.

It waits for no desired slot: an unready Instance must not keep a deployment from scaling down.
"""

from __future__ import annotations

from collections.abc import Iterator

from compute_cell_operator.deployment.plan.steps import Purpose, RemoveStep
from compute_cell_operator.deployment.slots import SlotInstance, Slots


def plan_surplus(slots: Slots, desired: int) -> Iterator[RemoveStep]:
    """Strays, then the highest slots; the next one when the former is gone.

    Example: 3 desired of 0…5 and a stray: the stray, then 5, then 4, then 3, whatever the states
    of 0…2.
    """
    surplus = list(_in_order(slots, desired))
    if any(instance.is_terminating for instance in surplus):
        return
    yield from (RemoveStep(instance, Purpose.SURPLUS) for instance in surplus[:1])


def plan_removal(slots: Slots) -> Iterator[RemoveStep]:
    """Of a deleted deployment: all its Instances at once."""
    for instance in slots.owned:
        if not instance.is_terminating:
            yield RemoveStep(instance, Purpose.DELETING)


def _in_order(slots: Slots, desired: int) -> Iterator[SlotInstance]:
    yield from slots.strays
    for ordinal in sorted(slots.by_ordinal, reverse=True):
        if ordinal >= desired:
            yield slots.by_ordinal[ordinal]
