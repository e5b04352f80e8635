"""Retry delays: exponential back-off with jitter and cap, by class of error. Pure.

```
attempt   1      2      3      4    …   n
nominal   0.5 s  1 s    2 s    4 s  …   60 s          each is drawn from [0.75 × nominal, nominal]
```

The jitter of a quarter spreads keys that failed together; each delay is still at least as long as
the one before, until the cap. Randomness is an argument in [0, 1): equal input, equal delay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.core.errors import (
    BreakerOpenError,
    ConflictError,
    ForbiddenError,
    InvariantError,
    PlaneGoneError,
    ReconcileError,
    RejectedError,
    ThrottledError,
    TransientError,
    UnavailableError,
)

# 2 ** 40 times any base exceeds every cap; larger exponents overflow.
_HIGHEST_EXPONENT: Final = 40


@dataclass(frozen=True, slots=True)
class Backoff:
    """A growing delay; `jitter` is the fraction that chance may subtract."""

    base: timedelta
    cap: timedelta
    factor: float = 2.0
    jitter: float = 0.25

    def delay(self, attempt: int, chance: float) -> timedelta:
        """The wait after the `attempt`-th failure in a row, counted from 1."""
        exponent = min(max(attempt, 1) - 1, _HIGHEST_EXPONENT)
        nominal = min(self.cap, self.base * self.factor**exponent)
        return nominal * (1.0 - self.jitter * chance)


# management.md 14 and faults.md C4: 60 s for a key, 30 s for a plane.
KEY_BACKOFF: Final = Backoff(timedelta(seconds=0.5), timedelta(seconds=60))
PLANE_BACKOFF: Final = Backoff(timedelta(seconds=0.5), timedelta(seconds=30))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The delays of each class of error."""

    transient: Backoff = KEY_BACKOFF
    # The first conflicts are retried at once: a newer cache resolves them, not a wait.
    quick_conflicts: int = 3
    conflict_jitter: tuple[timedelta, timedelta] = (
        timedelta(milliseconds=10),
        timedelta(milliseconds=50),
    )
    conflicts: Backoff = KEY_BACKOFF
    # A retry does not resolve a refusal, but what it depends on may change without an event.
    rejected: timedelta = timedelta(minutes=5)
    forbidden: timedelta = timedelta(seconds=60)
    broken: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failures in a row of one key; a success resets both."""

    transient: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """The delay of the next retry (None: no retry by time), and the failures counted so far."""

    delay: timedelta | None
    attempts: Attempts


def plan_retry(
    errors: Iterable[ReconcileError], before: Attempts, policy: RetryPolicy, chance: float
) -> Retry:
    """The retry for all errors of one reconcile.

    Transient errors decide before others: a write that timed out must be retried although another
    one was refused. `ThrottledError` sets a minimum delay.
    """
    all_errors = tuple(errors)
    floor = max(
        (e.retry_after for e in all_errors if isinstance(e, ThrottledError)), default=timedelta()
    )
    unavailable = [error for error in all_errors if isinstance(error, UnavailableError)]
    if unavailable and all(isinstance(error, BreakerOpenError) for error in unavailable):
        # Nothing was sent: the back-off of a key does not grow while its plane is away.
        delay = policy.transient.delay(max(1, before.transient), chance)
        return Retry(max(floor, delay), before)
    if unavailable:
        return _transient(before, policy.transient, floor, chance)
    if floor:
        # The plane named the time; a growing back-off would only add to it.
        return Retry(floor + policy.conflict_jitter[1] * chance, before)
    if any(isinstance(error, ConflictError) for error in all_errors):
        return _conflict(before, policy, chance)
    if any(isinstance(error, TransientError) for error in all_errors):
        return _transient(before, policy.transient, floor, chance)
    return Retry(_slow(all_errors, policy, chance), Attempts())


def _transient(before: Attempts, backoff: Backoff, floor: timedelta, chance: float) -> Retry:
    attempts = Attempts(before.transient + 1, before.conflicts)
    return Retry(max(floor, backoff.delay(attempts.transient, chance)), attempts)


def _conflict(before: Attempts, policy: RetryPolicy, chance: float) -> Retry:
    attempts = Attempts(before.transient, before.conflicts + 1)
    if attempts.conflicts <= policy.quick_conflicts:
        shortest, longest = policy.conflict_jitter
        return Retry(shortest + (longest - shortest) * chance, attempts)
    return Retry(
        policy.conflicts.delay(attempts.conflicts - policy.quick_conflicts, chance), attempts
    )


def _slow(
    errors: tuple[ReconcileError, ...], policy: RetryPolicy, chance: float
) -> timedelta | None:
    if errors and all(isinstance(error, PlaneGoneError) for error in errors):
        return None
    waits = [_slow_wait(error, policy) for error in errors if not isinstance(error, PlaneGoneError)]
    return min(waits, default=policy.broken) * (1.0 + 0.2 * chance)


def _slow_wait(error: ReconcileError, policy: RetryPolicy) -> timedelta:
    is_bug = isinstance(error, InvariantError)
    if is_bug or not isinstance(error, RejectedError):
        return policy.broken
    return policy.forbidden if isinstance(error, ForbiddenError) else policy.rejected
