"""When a denied or lost claim is requested again. Pure (quota.md B6).

The schedule is the quota client's, seeded by the Instance UID: without the seed, a thousand denied
Instances would request in the same second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_cell_operator.quota.plan import Postpone, Postponed, Recreated
from compute_operator_kit.core.keys import Uid
from compute_quota_client import DenialBackoff

BACKOFF: Final = DenialBackoff()
STOOD: Final = timedelta(hours=1)
"""A claim that has existed this long ends the series of attempts."""
AFTER_TAKEOVER: Final = timedelta(minutes=15)
"""Longer than the ten minutes for which a cell is observed after a change of operators: no claim is
deleted and no bucket changes in that time, so that a changed number shows a fault.
"""
RETRY_REFUSED: Final = timedelta(minutes=5)
"""A request that the project refused for good (cell.md 13)."""
CONFIRM_AFTER: Final = timedelta(seconds=60)
"""A watch that lost an event does not report it: a claim that it has repeated unchanged for this
long is read again.
"""


@dataclass(frozen=True, slots=True)
class ClaimAttempts:
    """Denials or losses in a row of the claim of one Instance."""

    uid: Uid
    count: int = 0


def postpone(
    step: Postpone, attempts: ClaimAttempts, requests: Mapping[str, int], now: datetime
) -> tuple[Postponed, ClaimAttempts]:
    """The time of the next request, and the count with this denial or loss."""
    if step.kept:
        return _keep(step, attempts, requests, now)
    counted = ClaimAttempts(attempts.uid, attempts.count + 1)
    # The first loss has its own, shorter wait, and the schedule begins with the second: 10 s, then
    # 30 s, 60 s and so on. Denials are on the schedule from the first.
    is_lost = step.because is Recreated.LOST
    number = max(1, attempts.count) if is_lost else counted.count
    scheduled = BACKOFF.next_attempt(number, now, counted.uid)
    until = step.until if step.until is not None and attempts.count == 0 else scheduled
    return Postponed(until, step.because, requests), counted


def _keep(
    step: Postpone, attempts: ClaimAttempts, requests: Mapping[str, int], now: datetime
) -> tuple[Postponed, ClaimAttempts]:
    """The wait of a denied claim that was taken over: the ordinary one, after the takeover.

    `resume` has counted the denial by its age where one is stored; otherwise it is the first.
    """
    counted = ClaimAttempts(attempts.uid, max(1, attempts.count))
    until = BACKOFF.next_attempt(counted.count, now + AFTER_TAKEOVER, counted.uid)
    return Postponed(until, step.because, requests, kept=step.kept), counted


def resume(
    uid: Uid, requests: Mapping[str, int], denied_since: datetime, now: datetime
) -> tuple[Postponed, ClaimAttempts]:
    """The wait of a restarted process, by the time since `QuotaGranted` turned False.

    The time of the last denial is not stored, so a whole wait begins now: late, but never early.
    """
    age = max(timedelta(0), now - denied_since)
    attempts = ClaimAttempts(uid, BACKOFF.attempt_from_age(age))
    until = BACKOFF.next_attempt(attempts.count, now, uid)
    return Postponed(until, Recreated.DENIED, requests), attempts


def has_stood(granted_at: datetime, now: datetime) -> bool:
    """Whether a claim has existed so long that the next loss begins a new series."""
    return now - granted_at >= STOOD
