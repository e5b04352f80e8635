from __future__ import annotations

from datetime import timedelta

import pytest

from compute_operator_kit.core.errors import (
    SEVERITY,
    Cause,
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    InvariantError,
    OutcomeUnknownError,
    PlaneGoneError,
    ReconcileError,
    RejectedError,
    ServerAnswer,
    ThrottledError,
    TransientError,
    UnavailableError,
    find_worst,
    iter_leaves,
)

CONFLICT = ConflictError("Conflict", "writing: somebody wrote first")
AWAY = UnavailableError("Unreachable", "writing: no connection")
REFUSED = InvalidSpecError("Invalid", "writing: refused")


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        (ConflictError, TransientError),
        (ThrottledError, TransientError),
        (UnavailableError, TransientError),
        (OutcomeUnknownError, UnavailableError),
        (InvalidSpecError, RejectedError),
        (ForbiddenError, RejectedError),
        (TransientError, ReconcileError),
        (RejectedError, ReconcileError),
        (PlaneGoneError, ReconcileError),
        (InvariantError, ReconcileError),
    ],
)
def test_the_tree_is_that_of_the_house_style(
    child: type[ReconcileError], parent: type[ReconcileError]
) -> None:
    assert issubclass(child, parent)


def test_the_worst_class_decides_whatever_the_order() -> None:
    assert find_worst([CONFLICT, AWAY, REFUSED]) is REFUSED
    assert find_worst([REFUSED, AWAY, CONFLICT]) is REFUSED
    assert find_worst([AWAY, CONFLICT]) is AWAY


def test_among_equals_the_first_decides() -> None:
    second = ConflictError("Other", "other")
    assert find_worst([CONFLICT, second]) is CONFLICT
    assert find_worst([]) is None


def test_every_class_has_a_place_in_the_order() -> None:
    assert SEVERITY[-1] is ReconcileError
    assert SEVERITY.index(InvariantError) == 0


def test_leaves_of_nested_groups_come_in_order() -> None:
    nested = ExceptionGroup("outer", [CONFLICT, ExceptionGroup("inner", [AWAY, REFUSED])])
    assert list(iter_leaves(nested)) == [CONFLICT, AWAY, REFUSED]
    assert list(iter_leaves(CONFLICT)) == [CONFLICT]


def test_what_the_server_said_is_kept_and_not_printed() -> None:
    answer = ServerAnswer(
        422, "Invalid", 'spec.token: Invalid value: "s3cret"', causes=(Cause("x", "spec.token"),)
    )
    error = InvalidSpecError("Invalid", "creating Note: refused", answer=answer)
    assert error.status == 422
    assert "s3cret" not in str(error)
    assert "s3cret" not in repr(error)
    assert answer.has_cause("x")


def test_an_error_without_an_answer_has_no_status() -> None:
    assert CONFLICT.status is None


def test_a_pause_says_how_long() -> None:
    pause = ThrottledError("Busy", "listing: busy", retry_after=timedelta(seconds=3), plane="hub")
    assert pause.retry_after == timedelta(seconds=3)
    assert pause.plane == "hub"
