"""When an undecided Instance is looked at again (quota.md B5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_cell_operator.quota_gate.schedule import next_look


@pytest.mark.spec("Q-30")
@pytest.mark.parametrize(
    ("seconds", "delay"),
    [(-5, 1), (0, 1), (59, 1), (60, 15), (180, 15), (300, 60), (480, 60), (600, 300), (3600, 300)],
)
@pytest.mark.parametrize("status", ["Unknown", "False"])
def test_the_older_it_is_the_less_often_it_is_looked_at(
    status: str, seconds: int, delay: int
) -> None:
    assert next_look(status, timedelta(seconds=seconds)) == timedelta(seconds=delay)


@pytest.mark.spec("Q-30", "AT-04")
@pytest.mark.parametrize("seconds", [0, 90, 480, 3600])
def test_a_name_that_others_hold_is_looked_at_every_15_seconds(seconds: int) -> None:
    age = timedelta(seconds=seconds)
    assert next_look("False", age, is_held_by_others=True) == timedelta(seconds=15)
    assert next_look("True", age, is_held_by_others=True) is None


@pytest.mark.spec("Q-30")
@pytest.mark.parametrize("status", ["True", None])
def test_what_is_granted_or_not_asked_for_is_not_looked_at(status: str | None) -> None:
    assert next_look(status, timedelta(0)) is None
