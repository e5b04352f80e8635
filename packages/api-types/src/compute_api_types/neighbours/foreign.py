"""Conditions of neighbours' objects, which follow none of the rules of ours.

They may lack a reason, a time or a message. Reading them as `conditions.Condition` would refuse
such an object; they are never written.
"""

from __future__ import annotations

from compute_api_types.model import Model
from compute_api_types.scalars import Int64, PlainList


class ForeignCondition(Model):
    """A condition of another component; an absent reason or message is empty."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: Int64 | None = None


class ForeignStatus(Model):
    """A status of which only the conditions matter to us."""

    conditions: PlainList[ForeignCondition] | None = None
