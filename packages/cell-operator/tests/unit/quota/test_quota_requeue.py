"""When the claim of an undecided Instance is checked again (quota.md B5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_cell_operator.quota.status import derive_requeue


@pytest.mark.spec("Q-30")
@pytest.mark.parametrize(
    ("seconds", "delay"),
    [(-5, 1), (0, 1), (59, 1), (60, 15), (180, 15), (300, 60), (480, 60), (600, 300), (3600, 300)],
)
@pytest.mark.parametrize("status", ["Unknown", "False"])
def test_the_older_an_instance_is_the_less_often_its_claim_is_checked(
    status: str, seconds: int, delay: int
) -> None:
    assert derive_requeue(status, timedelta(seconds=seconds)) == timedelta(seconds=delay)


@pytest.mark.spec("Q-30", "AT-04")
@pytest.mark.parametrize("seconds", [0, 90, 480, 3600])
def test_a_name_that_others_hold_is_checked_every_15_seconds(seconds: int) -> None:
    age = timedelta(seconds=seconds)
    assert derive_requeue("False", age, is_held_by_others=True) == timedelta(seconds=15)
    assert derive_requeue("True", age, is_held_by_others=True) is None


@pytest.mark.spec("Q-30")
@pytest.mark.parametrize("status", ["True", None])
def test_a_claim_that_is_granted_or_without_condition_is_not_checked(status: str | None) -> None:
    assert derive_requeue(status, timedelta(0)) is None
