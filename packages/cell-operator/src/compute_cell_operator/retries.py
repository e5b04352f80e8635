"""The retry policy of all controllers of the cell (cell.md 13)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compute_operator_kit.core.backoff import Backoff, RetryPolicy

RETRY: Final = RetryPolicy(
    transient=Backoff(timedelta(seconds=1), timedelta(seconds=60)),
    quick_conflicts=5,
    # Under many conflicts each attempt has the same chance and a long delay makes the status late:
    # the delay grows far less than after other failures.
    conflicts=Backoff(timedelta(seconds=1), timedelta(seconds=8)),
    rejected=timedelta(minutes=5),
    forbidden=timedelta(minutes=5),
)
