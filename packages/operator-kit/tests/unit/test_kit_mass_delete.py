"""The guard against removing everything because a list was empty."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.controller.mass_delete import (
    APART,
    FRESH_FOR,
    SOON,
    MassDeleteGuard,
    RemovalAllowed,
    RemovalHeld,
    Ruling,
)
from compute_operator_kit.core.keys import PlaneName

PROJECT = PlaneName("acme")
ZERO = timedelta()
pytestmark = [pytest.mark.spec("M-94"), pytest.mark.fault("D9")]


def names(number: int) -> frozenset[object]:
    return frozenset(f"w{index}" for index in range(number))


def a_guard(missing: int, total: int, at: timedelta = ZERO) -> MassDeleteGuard:
    guard = MassDeleteGuard()
    guard.record(PROJECT, names(missing), total, at)
    return guard


def is_held(ruling: Ruling) -> bool:
    return isinstance(ruling, RemovalHeld)


@pytest.mark.parametrize(
    ("missing", "total", "held"),
    [(9, 9, False), (10, 50, False), (10, 49, True), (200, 1000, False), (201, 1000, True)],
)
def test_ten_and_more_than_a_fifth_are_too_many(
    missing: int,
    total: int,
    held: bool,
) -> None:
    assert is_held(a_guard(missing, total).judge(PROJECT, "w0", ZERO)) is held


def test_without_a_finding_nothing_goes() -> None:
    guard = MassDeleteGuard()
    assert guard.needs_look(PROJECT, "w0", ZERO)
    assert guard.judge(PROJECT, "w0", ZERO) == RemovalHeld(0, 0, SOON)


def test_refusal_is_news_once_and_lasts_a_minute() -> None:
    guard = a_guard(40, 50)
    assert guard.judge(PROJECT, "w0", ZERO) == RemovalHeld(40, 50, APART, is_news=True)
    assert guard.judge(PROJECT, "w1", SOON) == RemovalHeld(40, 50, APART - SOON)
    assert not guard.needs_look(PROJECT, "w1", APART - SOON)
    assert guard.needs_look(PROJECT, "w1", APART)


def test_second_count_that_agrees_allows_both() -> None:
    guard = a_guard(40, 50)
    guard.judge(PROJECT, "w0", ZERO)
    guard.record(PROJECT, names(30) | {"new"}, 50, APART)
    assert guard.judge(PROJECT, "w0", APART) == RemovalAllowed()
    assert is_held(guard.judge(PROJECT, "new", APART))
    assert is_held(guard.judge(PROJECT, "w39", APART))


def test_second_count_with_few_missing_allows_those() -> None:
    guard = a_guard(40, 50)
    guard.record(PROJECT, names(2), 50, APART)
    assert guard.judge(PROJECT, "w1", APART) == RemovalAllowed()
    assert guard.judge(PROJECT, "w39", APART) == RemovalHeld(2, 50, SOON)


def test_later_crowd_is_news_again() -> None:
    guard = a_guard(40, 50)
    guard.judge(PROJECT, "w0", ZERO)
    guard.record(PROJECT, names(0), 50, APART)
    guard.record(PROJECT, names(40), 50, APART * 2)
    ruling = guard.judge(PROJECT, "w0", APART * 2)
    assert isinstance(ruling, RemovalHeld)
    assert ruling.is_news


def test_many_others_are_news_although_no_list_was_in_between() -> None:
    guard = a_guard(40, 50)
    guard.judge(PROJECT, "w0", ZERO)
    others = frozenset(f"other-{number}" for number in range(40))
    guard.record(PROJECT, others, 50, APART * 2)
    assert guard.judge(PROJECT, "other-0", APART * 2) == RemovalHeld(40, 50, APART, is_news=True)


def test_small_finding_serves_those_it_names_for_a_moment() -> None:
    guard = a_guard(3, 50)
    assert not guard.needs_look(PROJECT, "w0", FRESH_FOR - SOON)
    assert guard.needs_look(PROJECT, "w0", FRESH_FOR)
    assert guard.needs_look(PROJECT, "other", ZERO)


def test_project_that_is_gone_is_forgotten() -> None:
    guard = a_guard(40, 50)
    guard.judge(PROJECT, "w0", ZERO)
    guard.forget(lambda project: project == PROJECT)
    assert guard.needs_look(PROJECT, "w0", ZERO)
    guard.record(PROJECT, names(40), 50, ZERO)
    assert guard.judge(PROJECT, "w0", ZERO) == RemovalHeld(40, 50, APART, is_news=True)


def test_two_lists_at_the_same_time_confirm_nothing() -> None:
    guard = a_guard(40, 50)
    guard.record(PROJECT, names(40), 50, APART - SOON)
    assert is_held(guard.judge(PROJECT, "w0", APART - SOON))
    guard.record(PROJECT, names(40), 50, APART)
    assert guard.judge(PROJECT, "w0", APART) == RemovalAllowed()
