from datetime import UTC, datetime, timedelta

import pytest

from compute_quota_client._retry import parse_retry_after, retry_delay, spread_delay

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.spec("AT-11")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("1", 1),
        (" 30 ", 30),
        ("0", 0),
        ("Mon, 16 Nov 2026 12:00:20 GMT", 20),
        ("Mon, 16 Nov 2026 12:00:20 -0000", 20),
        ("Mon, 16 Nov 2026 11:00:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("1" + "0" * 7, 300),
        ("9" * 40, 300),
        ("9" * 5000, 300),
        ("Mon, 16 Nov 2126 12:00:00 GMT", 300),
        ("Mon, 16 Nov 2026 12:00:20 +99999999999999", None),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_nothing(
    header: str | None, seconds: int | None
) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert parse_retry_after(header, NOW) == expected


@pytest.mark.spec("Q-10")
def test_retries_wait_anything_up_to_a_ceiling_that_doubles_from_a_fifth_of_a_second() -> None:
    assert retry_delay(1, lambda: 0.0) == timedelta(0)
    assert retry_delay(1, lambda: 1.0) == timedelta(seconds=0.2)
    assert retry_delay(2, lambda: 1.0) == timedelta(seconds=0.4)
    assert retry_delay(2, lambda: 0.5) == timedelta(seconds=0.2)


def test_reopening_waits_at_most_36_seconds_however_often_it_failed() -> None:
    assert spread_delay(0, lambda: 0.0) == timedelta(seconds=0.8)
    assert spread_delay(1000, lambda: 1.0) == timedelta(seconds=36)
