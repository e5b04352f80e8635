from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.core.backoff import (
    KEY_BACKOFF,
    PLANE_BACKOFF,
    Attempts,
    Backoff,
    RetryPolicy,
    plan_retry,
)
from compute_operator_kit.core.errors import (
    BreakerOpenError,
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    InvariantError,
    PlaneGoneError,
    ReconcileError,
    ThrottledError,
    TransientError,
    UnavailableError,
)

CONFLICT = ConflictError("Conflict", "x")
AWAY = UnavailableError("Unreachable", "x")
NOT_SENT = BreakerOpenError("BreakerOpen", "x")
INVALID = InvalidSpecError("Invalid", "x")
FORBIDDEN = ForbiddenError("Forbidden", "x")
GONE = PlaneGoneError("PlaneGone", "x")
BUG = InvariantError("x")
POLICY = RetryPolicy()


def a_pause(seconds: float) -> ThrottledError:
    return ThrottledError("TooManyRequests", "x", retry_after=timedelta(seconds=seconds))


def test_delays_double_until_the_cap() -> None:
    nominal = [KEY_BACKOFF.delay(attempt, 0.0).total_seconds() for attempt in range(1, 10)]
    assert nominal == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert PLANE_BACKOFF.delay(99, 0.0) == timedelta(seconds=30)


def test_a_million_failures_do_not_overflow() -> None:
    assert KEY_BACKOFF.delay(1_000_000, 0.0) == timedelta(seconds=60)


def test_jitter_takes_away_and_never_adds() -> None:
    assert KEY_BACKOFF.delay(1, 1.0) == timedelta(seconds=0.375)


def test_a_plane_that_is_away_is_tried_ever_more_seldom() -> None:
    first = plan_retry([AWAY], Attempts(), POLICY, 0.0)
    second = plan_retry([AWAY], first.attempts, POLICY, 0.0)
    assert (first.delay, second.delay) == (timedelta(seconds=0.5), timedelta(seconds=1))


def test_what_was_not_sent_is_no_failure_of_the_key() -> None:
    twice = Attempts(transient=2)
    kept = plan_retry([NOT_SENT, NOT_SENT], twice, POLICY, 0.0)
    assert (kept.attempts, kept.delay) == (twice, timedelta(seconds=1))
    assert plan_retry([NOT_SENT, AWAY], twice, POLICY, 0.0).attempts.transient == 3


def test_the_first_conflicts_come_back_at_once() -> None:
    retry = plan_retry([CONFLICT], Attempts(), POLICY, 0.5)
    assert retry.delay == timedelta(milliseconds=30)


def test_a_storm_of_conflicts_backs_off() -> None:
    attempts = Attempts()
    delays: list[timedelta | None] = []
    for _ in range(6):
        retry = plan_retry([CONFLICT], attempts, POLICY, 0.0)
        attempts = retry.attempts
        delays.append(retry.delay)
    assert delays[3:] == [timedelta(seconds=s) for s in (0.5, 1, 2)]


def test_a_cell_never_waits_longer_than_a_second_for_a_conflict() -> None:
    second = timedelta(seconds=1)
    cell = RetryPolicy(quick_conflicts=5, conflicts=Backoff(second, second))
    attempts = Attempts()
    for _ in range(100):
        retry = plan_retry([CONFLICT], attempts, cell, 0.0)
        attempts = retry.attempts
        assert retry.delay is not None
        assert retry.delay <= second


def test_a_pause_is_waited_out_and_is_no_failure() -> None:
    retry = plan_retry([a_pause(7)], Attempts(3, 2), POLICY, 0.0)
    assert retry.delay == timedelta(seconds=7)
    assert retry.attempts == Attempts(3, 2)


def test_a_pause_is_a_floor_under_the_backoff_of_an_outage() -> None:
    retry = plan_retry([a_pause(7), AWAY], Attempts(), POLICY, 0.0)
    assert retry.delay == timedelta(seconds=7)


def test_a_refusal_beside_an_outage_does_not_stop_the_retry() -> None:
    retry = plan_retry([INVALID, AWAY], Attempts(), POLICY, 0.0)
    assert retry.delay == timedelta(seconds=0.5)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(INVALID, 300), (FORBIDDEN, 60), (BUG, 60), (ReconcileError("x", "x"), 60)],
)
def test_errors_that_do_not_pass_by_themselves_are_retried_slowly(
    error: ReconcileError, seconds: int
) -> None:
    retry = plan_retry([error], Attempts(5, 5), POLICY, 0.0)
    assert retry.delay == timedelta(seconds=seconds)
    assert retry.attempts == Attempts()


def test_slow_retries_are_spread() -> None:
    retry = plan_retry([INVALID], Attempts(), POLICY, 1.0)
    assert retry.delay == timedelta(seconds=360)


def test_a_key_of_a_plane_that_is_gone_is_dropped() -> None:
    assert plan_retry([GONE], Attempts(), POLICY, 0.0).delay is None


def test_a_gone_plane_beside_a_refusal_leaves_the_refusal_to_decide() -> None:
    assert plan_retry([GONE, INVALID], Attempts(), POLICY, 0.0).delay == timedelta(minutes=5)


def test_an_unnamed_transient_error_backs_off() -> None:
    retry = plan_retry([TransientError("NotLeading", "x")], Attempts(), POLICY, 0.0)
    assert retry.delay == timedelta(seconds=0.5)
    assert retry.attempts == Attempts(1, 0)
