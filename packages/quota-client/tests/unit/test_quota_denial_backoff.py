from datetime import UTC, datetime, timedelta

import pytest

from compute_quota_client import DenialBackoff, QuotaUsageError

DENIED_AT = datetime(2026, 1, 1, tzinfo=UTC)
NOMINAL = [30, 60, 120, 240, 480, 600, 600]


@pytest.mark.spec("Q-19")
@pytest.mark.parametrize(("attempt", "seconds"), [*enumerate(NOMINAL, start=1)])
def test_waits_double_from_30_seconds_to_10_minutes_give_or_take_a_fifth(
    attempt: int, seconds: int
) -> None:
    waits = [
        (DenialBackoff().next_attempt(attempt, DENIED_AT, f"uid-{n}") - DENIED_AT).total_seconds()
        for n in range(200)
    ]
    assert 0.8 * seconds <= min(waits) < 0.85 * seconds
    assert 1.15 * seconds < max(waits) <= 1.2 * seconds


@pytest.mark.spec("Q-19")
def test_the_same_seed_gives_the_same_time_and_another_seed_another() -> None:
    backoff = DenialBackoff()
    assert backoff.next_attempt(3, DENIED_AT, "a") == backoff.next_attempt(3, DENIED_AT, "a")
    assert backoff.next_attempt(3, DENIED_AT, "a") != backoff.next_attempt(3, DENIED_AT, "b")


@pytest.mark.spec("Q-19")
def test_the_spread_is_the_same_in_every_process() -> None:
    # A literal, because a hash that differs between processes agrees with itself in a test.
    wait = DenialBackoff().next_attempt(1, DENIED_AT, "uid-1") - DENIED_AT
    assert wait == timedelta(seconds=33, microseconds=222871)


@pytest.mark.spec("Q-19")
@pytest.mark.parametrize(
    ("age", "attempt"),
    [
        *((-5, 1), (0, 1), (29, 1), (30, 2), (89, 2), (90, 3), (210, 4), (450, 5), (930, 6)),
        *((1529, 6), (1530, 7), (2130, 8)),
    ],
)
def test_an_age_continues_the_schedule_it_has_run_through(age: int, attempt: int) -> None:
    assert DenialBackoff().attempt_from_age(timedelta(seconds=age)) == attempt


@pytest.mark.spec("Q-19")
def test_a_year_is_counted_without_walking_it() -> None:
    year = timedelta(days=365)
    attempt = DenialBackoff(first=timedelta(microseconds=1), cap=timedelta(microseconds=1))
    assert attempt.attempt_from_age(year) == year // timedelta(microseconds=1) + 1
    walked = 6 + (year - timedelta(seconds=930)) // timedelta(minutes=10)
    assert DenialBackoff().attempt_from_age(year) == walked


def test_an_absurd_number_of_attempts_still_waits_the_cap() -> None:
    wait = DenialBackoff(jitter=0).next_attempt(10**6, DENIED_AT, "x") - DENIED_AT
    assert wait == timedelta(minutes=10)


@pytest.mark.parametrize(
    ("argument", "backoff"),
    [
        ("first", lambda: DenialBackoff(first=timedelta(0))),
        ("first", lambda: DenialBackoff(cap=timedelta(seconds=1))),
        ("jitter", lambda: DenialBackoff(jitter=1)),
        ("attempt", lambda: DenialBackoff().next_attempt(0, DENIED_AT, "x")),
    ],
)
def test_what_makes_no_schedule_is_refused(argument: str, backoff: object) -> None:
    assert callable(backoff)
    with pytest.raises(QuotaUsageError) as refused:
        backoff()
    assert refused.value.argument == argument
