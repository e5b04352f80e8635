from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_operator_kit.core.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("15s", timedelta(seconds=15)),
        ("10m", timedelta(minutes=10)),
        ("200ms", timedelta(milliseconds=200)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5s", timedelta(milliseconds=1500)),
        ("0", timedelta()),
        ("0s", timedelta()),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "15", "s", "-1s", "1 s", "1d", "١s", "1s\n", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=30)))
def test_a_written_duration_is_read_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
