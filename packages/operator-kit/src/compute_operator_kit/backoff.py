"""How long to wait before trying again: exponential, jittered, capped. Pure.

```
attempt   1      2      3      4    …   n
nominal   0.5 s  1 s    2 s    4 s  …   60 s          each is drawn from [0.75 × nominal, nominal]
```

A quarter of jitter spreads a herd and still keeps every delay at least as long as the one before,
until the cap. Randomness comes in as a number in [0, 1), so that equal input gives an equal delay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.errors import (
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

# 2 ** 40 times any base is past every cap; larger exponents only overflow.
_HIGHEST_EXPONENT: Final = 40


@dataclass(frozen=True, slots=True)
class Backoff:
    """A growing delay; `jitter` is the share of it that chance may take away."""

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
    """What each class of error costs; operators choose the numbers, the classes choose
    the behaviour.
    """

    transient: Backoff = KEY_BACKOFF
    # Conflicts first come back at once: the fresh read is what helps, not the wait.
    quick_conflicts: int = 3
    conflict_jitter: tuple[timedelta, timedelta] = (
        timedelta(milliseconds=10),
        timedelta(milliseconds=50),
    )
    conflicts: Backoff = KEY_BACKOFF
    # Nothing we do changes a refusal, but what it depends on may change without an event.
    rejected: timedelta = timedelta(minutes=5)
    forbidden: timedelta = timedelta(seconds=60)
    broken: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failures in a row of one key; a success forgets both."""

    transient: int = 0
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """When to look again, None being never by a timer, and the count to remember until then."""

    delay: timedelta | None
    attempts: Attempts


def plan_retry(
    errors: Iterable[ReconcileError], before: Attempts, policy: RetryPolicy, chance: float
) -> Retry:
    """The retry that serves all errors of one pass.

    What can heal by itself decides before what cannot: a refused write beside one that timed out
    must not keep the second from being tried again. `Throttled` puts a floor under the delay.
    """
    found = tuple(errors)
    floor = max(
        (e.retry_after for e in found if isinstance(e, ThrottledError)), default=timedelta()
    )
    away = [error for error in found if isinstance(error, UnavailableError)]
    if away and all(isinstance(error, BreakerOpenError) for error in away):
        # Nothing was sent: a key that is woken while its plane is away has not failed once more.
        delay = policy.transient.delay(max(1, before.transient), chance)
        return Retry(max(floor, delay), before)
    if away:
        return _transient(before, policy.transient, floor, chance)
    if floor:
        # Waiting as told is not failure: the plane named the time, and backing off further only
        # adds to it.
        return Retry(floor + policy.conflict_jitter[1] * chance, before)
    if any(isinstance(error, ConflictError) for error in found):
        return _conflict(before, policy, chance)
    if any(isinstance(error, TransientError) for error in found):
        return _transient(before, policy.transient, floor, chance)
    return Retry(_slow(found, policy, chance), Attempts())


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
    from_us = isinstance(error, InvariantError)
    if from_us or not isinstance(error, RejectedError):
        return policy.broken
    return policy.forbidden if isinstance(error, ForbiddenError) else policy.rejected
