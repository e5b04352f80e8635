"""The surplus track: what is too much goes, one at a time, and waits for nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from compute_cell_operator.deployment.plan.steps import Purpose, Remove
from compute_cell_operator.deployment.slots import Candidate, Slots


def plan_surplus(slots: Slots, desired: int) -> Iterator[Remove]:
    """Strays, then the highest slots; the next one when the former is gone.

    Example: 3 wanted of 0…5 and a stray: the stray, then 5, then 4, then 3, whatever 0…2 are doing.
    """
    surplus = list(_in_order(slots, desired))
    if any(candidate.is_terminating for candidate in surplus):
        return
    yield from (Remove(candidate, Purpose.SURPLUS) for candidate in surplus[:1])


def plan_removal(slots: Slots) -> Iterator[Remove]:
    """The deployment goes: everything of it at once."""
    for candidate in slots.owned:
        if not candidate.is_terminating:
            yield Remove(candidate, Purpose.DELETING)


def _in_order(slots: Slots, desired: int) -> Iterator[Candidate]:
    yield from slots.strays
    for ordinal in sorted(slots.by_ordinal, reverse=True):
        if ordinal >= desired:
            yield slots.by_ordinal[ordinal]
