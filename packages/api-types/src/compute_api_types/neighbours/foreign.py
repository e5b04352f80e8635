"""What all neighbours have in common: conditions that keep to nobody's rules but their own.

Theirs may lack a reason, a time or a message, which ours never do; so they are read with less
demand than `conditions.Condition` makes, and never written.
"""

from __future__ import annotations

from compute_api_types.model import Model
from compute_api_types.scalars import Int64, PlainList


class ForeignCondition(Model):
    """A condition as somebody else writes it; an absent word is empty."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 | None = None


class ForeignStatus(Model):
    """A status of which only the conditions matter to us."""

    conditions: PlainList[ForeignCondition] | None = None
