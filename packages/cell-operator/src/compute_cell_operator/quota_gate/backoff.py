"""When a denied or lost claim is asked for again. Pure (quota.md B6).

The schedule is the quota client's, seeded by the Instance, so that a thousand denied ones do not
return in the same second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_cell_operator.quota_gate.plan import Postpone, Postponed, Recreated
from compute_operator_kit.keys import Uid
from compute_quota_client import DenialBackoff

BACKOFF: Final = DenialBackoff()
STOOD: Final = timedelta(hours=1)
"""A claim that has stood this long ends the series of attempts."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often the claim of one Instance was refused or lost in a row."""

    uid: Uid
    count: int = 0


def postpone(
    step: Postpone, attempts: Attempts, requests: Mapping[str, int], now: datetime
) -> tuple[Postponed, Attempts]:
    """When to ask again, and the count after this refusal."""
    counted = Attempts(attempts.uid, attempts.count + 1)
    # The first loss has its own, shorter wait, and the schedule begins with the second: 10 s, then
    # 30 s, 60 s and so on. Denials are on the schedule from the first.
    is_lost = step.because is Recreated.LOST
    number = max(1, attempts.count) if is_lost else counted.count
    scheduled = BACKOFF.next_attempt(number, now, counted.uid)
    until = step.until if step.until is not None and attempts.count == 0 else scheduled
    return Postponed(until, step.because, requests), counted


def resume(
    uid: Uid, requests: Mapping[str, int], denied_since: datetime, now: datetime
) -> tuple[Postponed, Attempts]:
    """The wait of a restarted process, by the time since `QuotaGranted` turned False.

    When the last denial came is not stored, so a whole wait begins now: late, but never before its
    time.
    """
    age = max(timedelta(0), now - denied_since)
    attempts = Attempts(uid, BACKOFF.attempt_from_age(age))
    until = BACKOFF.next_attempt(attempts.count, now, uid)
    return Postponed(until, Recreated.DENIED, requests), attempts


def has_stood(granted_at: datetime, now: datetime) -> bool:
    """Whether a claim has stood so long that the next loss begins a new series."""
    return now - granted_at >= STOOD
