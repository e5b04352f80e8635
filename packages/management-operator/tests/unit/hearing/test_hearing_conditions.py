"""What a user reads of a city that cannot be heard, row by row."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from compute_api_types import reasons
from compute_management_operator.hub.hearing.conditions import (
    cover_deployment,
    cover_instance,
    is_unreachable,
)
from compute_management_operator.hub.hearing.verdicts import Audibility
from compute_management_operator.stored_status import NO_STATUS, StoredCondition, StoredStatus

NOW = datetime(2026, 6, 20, 9, 0, tzinfo=UTC)
NOW_TEXT = "2026-06-20T09:00:00Z"
LONG_AGO = "2026-01-01T00:00:00Z"
MESSAGE = 'City "ORD" has not been heard of; its instances may still run'


def a_true(*types: str) -> list[StoredCondition]:
    return [StoredCondition(each, "True", "Fine", "", LONG_AGO, 3) for each in types]


def a_false(type_: str, reason: str) -> StoredCondition:
    return StoredCondition(type_, "False", reason, "because", LONG_AGO, 3)


def an_unknown(type_: str, message: str = MESSAGE, since: str = NOW_TEXT) -> StoredCondition:
    return StoredCondition(type_, "Unknown", reasons.CELL_UNREACHABLE, message, since, 3)


@pytest.mark.spec("DS-02")
def test_a_dark_deployment_is_unknown() -> None:
    shown = a_true("Available", "ReplicasReady", "Ready", "Foreign")
    covered = cover_deployment(shown, NO_STATUS, Audibility.DARK, "ORD", NOW)
    expected = [an_unknown(each) for each in ("Available", "ReplicasReady", "Ready")]
    assert covered == [*expected, *a_true("Foreign")]


@pytest.mark.spec("DS-02")
@pytest.mark.parametrize(
    ("reason", "is_covered"),
    [
        (reasons.SUSPENDED, False),
        (reasons.CITY_CODE_MISMATCH, False),
        (reasons.IMAGE_UNAVAILABLE, False),
        (reasons.REFERENCED_DATA_NOT_READY, True),
        (reasons.PENDING_QUOTA, True),
        (reasons.INSTANCES_PROVISIONING, True),
        (reasons.PENDING, True),
        ("Anything", True),
    ],
)
def test_what_a_user_can_cure_stays(reason: str, is_covered: bool) -> None:
    shown = [a_false("Ready", reason)]
    covered = cover_deployment(shown, NO_STATUS, Audibility.DARK, "ORD", NOW)
    assert covered == ([an_unknown("Ready")] if is_covered else shown)
    instance = cover_instance(shown, NO_STATUS, Audibility.DARK, "ORD", NOW)
    assert is_unreachable(instance) is is_covered


@pytest.mark.spec("DS-02")
def test_of_several_cells_one_dark_leaves_available() -> None:
    shown = [*a_true("Available", "Ready"), a_false("ReplicasReady", reasons.PENDING_QUOTA)]
    covered = cover_deployment(shown, NO_STATUS, Audibility.PARTLY, "ORD", NOW)
    assert covered == [shown[0], an_unknown("Ready"), shown[2]]


@pytest.mark.spec("DS-02")
def test_a_dark_instance_keeps_what_others_write() -> None:
    shown = a_true("Programmed", "QuotaGranted", "Available", "Ready")
    covered = cover_instance(shown, NO_STATUS, Audibility.DARK, "ORD", NOW)
    message = 'City "ORD" has not been heard of; this instance may still run'
    assert covered[:2] == shown[:2]
    assert covered[2:] == [an_unknown("Available", message), an_unknown("Ready", message)]


@pytest.mark.spec("DS-02")
def test_equal_input_gives_the_same_instance_again() -> None:
    shown = a_true("Available", "Ready")
    first = cover_instance(shown, NO_STATUS, Audibility.DARK, "ORD", NOW)
    stored = StoredStatus(conditions=tuple(first))
    later = NOW.replace(hour=23)
    assert cover_instance(shown, stored, Audibility.DARK, "ORD", later) == first


@pytest.mark.spec("DS-05")
def test_without_a_verdict_what_was_stated_stays() -> None:
    stored = StoredStatus(conditions=(an_unknown("Ready", since=LONG_AGO), *a_true("Available")))
    shown = a_true("Available", "Ready")
    expected = [shown[0], an_unknown("Ready", since=LONG_AGO)]
    assert cover_deployment(shown, stored, Audibility.UNDECIDED, "ORD", NOW) == expected
    assert cover_instance(shown, stored, Audibility.UNDECIDED, "ORD", NOW) == expected
    cured = [a_false("Ready", reasons.SUSPENDED)]
    assert cover_deployment(cured, stored, Audibility.UNDECIDED, "ORD", NOW) == cured


@pytest.mark.spec("DS-02")
@pytest.mark.parametrize("cover", [cover_deployment, cover_instance])
def test_what_is_heard_is_shown_as_it_is(cover: object) -> None:
    shown = a_true("Available", "Ready")
    stored = StoredStatus(conditions=(an_unknown("Ready"),))
    assert callable(cover)
    assert cover(shown, stored, Audibility.HEARD, "ORD", NOW) == shown
