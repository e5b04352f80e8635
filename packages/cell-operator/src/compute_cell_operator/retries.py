"""How often the cell tries again (cell.md 13), for every controller alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_operator_kit.backoff import Backoff, RetryPolicy

RETRY: Final = RetryPolicy(
    transient=Backoff(timedelta(seconds=1), timedelta(seconds=60)),
    quick_conflicts=5,
    # Under a storm of conflicts every try has the same chance, and a long wait makes the truth
    # late: it grows, but far less than after other failures.
    conflicts=Backoff(timedelta(seconds=1), timedelta(seconds=8)),
    rejected=timedelta(minutes=5),
    forbidden=timedelta(minutes=5),
)
