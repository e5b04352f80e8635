"""The schedule of new claims after a denial; pure.

A denied claim is deleted at once and created again later (docs/spec/quota.md A7). The times depend
on a seed, so that a restarted process keeps the schedule and a thousand denied claims do not return
in the same second.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from compute_quota_client._exceptions import QuotaUsageError

if TYPE_CHECKING:
    from datetime import datetime

_NONE = timedelta(0)


@dataclass(frozen=True, slots=True)
class DenialBackoff:
    """Waits of `first`, doubling up to `cap`, each spread by ±`jitter`.

    Attempts count from 1, the wait after the first denial: 30, 60, 120, 240, 480, 600, 600 s … by
    default.
    """

    first: timedelta = timedelta(seconds=30)
    cap: timedelta = timedelta(minutes=10)
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if not _NONE < self.first <= self.cap:
            raise QuotaUsageError("must be positive and at most the cap", argument="first")
        if not 0 <= self.jitter < 1:
            raise QuotaUsageError("must be from 0 to below 1", argument="jitter")

    def next_attempt(self, attempt: int, denied_at: datetime, seed: str) -> datetime:
        """When to claim again after the denial number `attempt`, which came at `denied_at`."""
        if attempt < 1:
            raise QuotaUsageError("attempts count from 1", argument="attempt")
        return denied_at + self._wait(attempt) * (1 + self.jitter * _spread(seed, attempt))

    def attempt_from_age(self, age: timedelta) -> int:
        """The attempt a schedule has reached that began `age` ago, jitter aside.

        For a restarted process, which knows since when it is denied but not how often: 30 s after
        the first denial the second claim was due, so from then on the next denial is number 2.
        """
        attempt, ends = 1, self._wait(1)
        while ends <= age:
            if self._wait(attempt) == self.cap:
                # All later waits are equal: count them instead of walking a year in steps of ten
                # minutes.
                return attempt + 1 + (age - ends) // self.cap
            attempt += 1
            ends += self._wait(attempt)
        return attempt

    def _wait(self, attempt: int) -> timedelta:
        # 2**63 times the smallest timedelta is beyond any cap, and a larger power would overflow.
        doublings = min(attempt - 1, 63)
        return self.cap if self.cap / 2**doublings <= self.first else self.first * 2**doublings


def _spread(seed: str, attempt: int) -> float:
    """A number from -1 to 1, the same in every process (Python's own hash differs between them)."""
    digest = hashlib.sha256(f"{seed}:{attempt}".encode()).digest()
    return int.from_bytes(digest[:8]) / (2**63 - 0.5) - 1
