from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from compute_operator_kit.controller.reconcile import (
    ReconcileOutcome,
    Result,
    ResultLabel,
    call_safely,
    run_reconcile,
)
from compute_operator_kit.core.errors import (
    ConflictError,
    ForbiddenError,
    InvariantError,
    PlaneGoneError,
    ReconcileError,
    ThrottledError,
    UnavailableError,
)
from compute_operator_kit.core.timeouts import Deadline

SECOND = timedelta(seconds=1)
CONFLICT = ConflictError("Conflict", "x")
AWAY = UnavailableError("Unreachable", "x", plane="hub")
REFUSED = ForbiddenError("Forbidden", "x")
PAUSE = ThrottledError("Busy", "x", retry_after=SECOND)
GONE = PlaneGoneError("PlaneGone", "x")


async def judge(outcome: Result | BaseException) -> ReconcileOutcome:
    async def run() -> Result:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return await run_reconcile(run, Deadline(1.0))


async def test_a_successful_reconcile_asks_for_nothing_or_for_a_time() -> None:
    assert await judge(Result()) == ReconcileOutcome(ResultLabel.SUCCESS)
    assert (await judge(Result())).outcome == "done"
    waiting = await judge(Result(SECOND))
    assert waiting == ReconcileOutcome(ResultLabel.REQUEUE_AFTER, SECOND)
    assert waiting.outcome == "waiting"


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ((CONFLICT,), ResultLabel.REQUEUE),
        ((PAUSE, CONFLICT), ResultLabel.REQUEUE_AFTER),
        ((GONE,), ResultLabel.SUCCESS),
        ((AWAY,), ResultLabel.ERROR),
        ((REFUSED, CONFLICT), ResultLabel.ERROR),
    ],
)
async def test_errors_decide_the_result_label(
    errors: tuple[ReconcileError, ...], verdict: ResultLabel
) -> None:
    judgement = await judge(Result(SECOND, errors))
    assert judgement.label is verdict
    assert judgement.wait == SECOND, "what did not fail still wants its time"
    raised = await judge(ExceptionGroup("several", list(errors)))
    assert raised.label is verdict
    assert raised.errors == errors


async def test_the_worst_error_names_the_outcome() -> None:
    judgement = await judge(Result(None, (CONFLICT, REFUSED, AWAY)))
    assert judgement.worst is REFUSED
    assert judgement.outcome == "ForbiddenError"
    assert not judgement.is_terminal
    assert (await judge(Result(None, (REFUSED,)))).is_terminal


async def test_a_reconcile_has_a_deadline() -> None:
    async def hang() -> Result:
        await asyncio.Event().wait()
        raise AssertionError

    judgement = await run_reconcile(hang, Deadline(0.001))
    assert judgement.errors[0].reason == "PassTooLong"
    assert judgement.label is ResultLabel.ERROR


async def test_an_unexpected_exception_ends_this_reconcile_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judgement = await judge(KeyError("spec"))
    assert judgement.is_bug
    assert isinstance(judgement.worst, InvariantError)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.levelname == "ERROR"


async def test_a_bug_beside_an_error_is_still_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    judgement = await judge(ExceptionGroup("both", [AWAY, KeyError("spec")]))
    assert judgement.is_bug
    assert judgement.errors == (AWAY,)
    assert len(caplog.records) == 1


async def test_an_invariant_of_ours_is_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    assert (await judge(InvariantError("no plane"))).is_bug
    assert len(caplog.records) == 1


async def test_cancellation_goes_through() -> None:
    with pytest.raises(asyncio.CancelledError):
        await judge(asyncio.CancelledError())


def test_a_mapping_function_that_fails_does_not_end_its_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise KeyError("metadata")

    call_safely("mirror", fail)
    (record,) = caplog.records
    assert record.levelname == "ERROR"
