"""How often the cell tries again (cell.md 13), for every controller alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_operator_kit.backoff import Backoff, RetryPolicy

RETRY: Final = RetryPolicy(
    transient=Backoff(timedelta(seconds=1), timedelta(seconds=60)),
    quick_conflicts=5,
    # Never exponential: under a storm of conflicts every try has the same chance, and a wait that
    # grows only makes the truth late.
    conflicts=Backoff(timedelta(seconds=1), timedelta(seconds=1), factor=1.0),
    rejected=timedelta(minutes=5),
    forbidden=timedelta(minutes=5),
)
