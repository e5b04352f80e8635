"""When an undecided Instance is looked at again. Pure (quota.md B5).

A safety net: with a synced tracker a look costs no request.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_TIERS: Final = (
    (timedelta(seconds=60), timedelta(seconds=1)),
    (timedelta(minutes=5), timedelta(seconds=15)),
    (timedelta(minutes=10), timedelta(seconds=60)),
)
"""Younger than this → this delay; a boundary belongs to the slower tier."""
_SLOWEST: Final = timedelta(seconds=300)
HELD_BY_OTHERS: Final = timedelta(seconds=15)
"""Where the name is taken by a claim that no watch of ours shows, at any age."""


def next_look(
    granted: str | None, age: timedelta, *, is_held_by_others: bool = False
) -> timedelta | None:
    """The delay for a status of `QuotaGranted` and the age of the Instance; None for no look.

    No condition at all means that nobody has asked: whoever writes it will look.
    """
    if granted is None or granted == "True":
        return None
    if is_held_by_others:
        return HELD_BY_OTHERS
    return next((delay for bound, delay in _TIERS if age < bound), _SLOWEST)
