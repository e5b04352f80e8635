"""One pass: observe → plan → apply → report, under a deadline; and the only broad `except`.

A pass ends in a `Judgement`: what to count, what to log and when to look again. Errors of our own
tree decide by their class; several of them are gathered and the worst gives the pass its name,
while anything that can heal by itself decides about the retry. An exception nobody foresaw is a bug
of ours: it is logged with its trace, counted, tried again slowly, and ends nothing but this pass.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, ParamSpec, Protocol, TypeVar

import msgspec

from compute_operator_kit.apply import Session
from compute_operator_kit.cache import Caches
from compute_operator_kit.clock import Clock
from compute_operator_kit.deadlines import Deadline
from compute_operator_kit.errors import (
    ConflictError,
    InvariantError,
    PlaneGoneError,
    ReconcileError,
    RejectedError,
    ThrottledError,
    UnavailableError,
    find_worst,
    iter_leaves,
)
from compute_operator_kit.intents import Plan
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.outcomes import Applied, Effect, soonest

S = TypeVar("S")
P = ParamSpec("P")

logger = logging.getLogger(__name__)

LONG: Final = timedelta(milliseconds=20)  # a pass over an ordinary object takes a tenth of it


class Result(msgspec.Struct, frozen=True):
    """What a pass asks for, and what of it failed; None: look again on a change, or at
    the resync.
    """

    requeue_after: timedelta | None = None
    errors: tuple[ReconcileError, ...] = ()
    is_refused: bool = False  # something was refused before and not tried again in this pass
    owed: Plan = Plan()  # held back; to be sent as it is unless something wakes the key before


class PassSpan(Protocol):
    """The trace of one pass."""

    def set_outcome(self, outcome: str) -> None: ...


class Spans(Protocol):
    """Traces: one span per pass, its steps below it."""

    def reconcile(self, controller: str, key: ObjectKey) -> AbstractContextManager[PassSpan]: ...

    def step(self, name: str) -> AbstractContextManager[None]: ...


class NoSpans:
    """Traces nothing, and makes nothing to do so: there are four of these in every pass."""

    def reconcile(self, controller: str, key: ObjectKey) -> AbstractContextManager[PassSpan]:  # noqa: ARG002
        return _NO_PASS

    def step(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return _NO_STEP


class _NoSpan:
    """The trace of a pass that nobody records."""

    def set_outcome(self, outcome: str) -> None:
        pass


_NO_PASS: Final[AbstractContextManager[PassSpan]] = nullcontext(_NoSpan())
_NO_STEP: Final[AbstractContextManager[None]] = nullcontext()


class Pass(msgspec.Struct, frozen=True):
    """What one pass works with."""

    caches: Caches
    session: Session
    clock: Clock
    spans: Spans = msgspec.field(default_factory=NoSpans)
    owed: Plan = Plan()  # of the pass before: nothing that concerns the key has changed since


class Steps(Protocol[S]):
    """The files of a folder: `observe` reads caches, `plan` decides, `report` tells.

    `observe` does not wait, so that what it sees is one moment. `report` gets what became of the
    plan and gives the status intents, whatever failed.
    """

    def observe(self, key: ObjectKey, caches: Caches) -> S | None: ...

    def plan(self, seen: S, now: datetime) -> Plan: ...

    def report(self, seen: S, applied: Applied, now: datetime) -> Plan: ...


async def run_steps(steps: Steps[S], key: ObjectKey, work: Pass) -> Result:
    """A pass in four steps; the status is computed and sent also when a write failed. Others run
    between two steps of a pass over something huge, and of no other.
    """
    began = work.clock.monotonic()
    with work.spans.step("observe"):
        seen = steps.observe(key, work.caches)
    if seen is None:
        return Result()
    if work.clock.monotonic() - began > LONG:
        await asyncio.sleep(0)
    with work.spans.step("plan"):
        plan = steps.plan(seen, work.clock.now())
    if work.clock.monotonic() - began > LONG:
        await asyncio.sleep(0)
    with work.spans.step("apply"):
        applied = await work.session.apply(plan)
        told = await work.session.apply(steps.report(seen, applied, work.clock.now()))
    return _derive_result(Applied(applied.outcomes + told.outcomes))


async def pay_owed(work: Pass) -> Result:
    """A pass for what the one before held back, as it was: nothing has changed since."""
    with work.spans.step("apply"):
        return _derive_result(await work.session.apply(work.owed))


def _derive_result(applied: Applied) -> Result:
    errors, failures, held = applied.errors, applied.failures, applied.held
    waits = [found.wait for found in applied.outcomes if found.effect is not Effect.HELD]
    # Whatever else is waited for, or stands in the way, may make something else of what is held.
    is_all = not errors and soonest(waits) is None
    return Result(
        applied.wait,
        failures,
        is_refused=len(errors) > len(failures),
        owed=held if is_all else Plan(),
    )


class Verdict(StrEnum):
    """How a pass ended, as `controller_runtime_reconcile_total` spells it."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"


class Judgement(msgspec.Struct, frozen=True):
    """A pass that ended."""

    verdict: Verdict
    wait: timedelta | None = None
    errors: tuple[ReconcileError, ...] = ()
    is_bug: bool = False
    is_refused: bool = False
    owed: Plan = Plan()

    @property
    def worst(self) -> ReconcileError | None:
        return find_worst(self.errors)

    @property
    def outcome(self) -> str:
        """For traces and histories: `done`, `waiting`, or the class of what went wrong."""
        if self.worst is not None:
            return type(self.worst).__name__
        return "done" if self.wait is None else "waiting"

    @property
    def is_terminal(self) -> bool:
        """Not tried again until something changes."""
        return bool(self.errors) and all(isinstance(e, RejectedError) for e in self.errors)


async def judge_pass(run: Callable[[], Awaitable[Result]], deadline: Deadline) -> Judgement:
    """Runs a pass to its end, whatever that is; only cancellation goes through."""
    try:
        with deadline.start():
            result = await run()
    except TimeoutError:
        late = UnavailableError("PassTooLong", "running a pass: its deadline is over")
        return Judgement(Verdict.ERROR, errors=(late,))
    except Exception as error:  # noqa: BLE001 - the one place that may not let anything through
        return _judge(tuple(iter_leaves(error)), None)
    judgement = _judge(result.errors, result.requeue_after)
    if not result.is_refused and not result.owed:
        return judgement
    return msgspec.structs.replace(judgement, is_refused=result.is_refused, owed=result.owed)


def _judge(leaves: tuple[BaseException, ...], wait: timedelta | None) -> Judgement:
    errors = tuple(leaf for leaf in leaves if isinstance(leaf, ReconcileError))
    bugs = [e for e in leaves if isinstance(e, InvariantError) or not isinstance(e, ReconcileError)]
    if bugs:
        for bug in bugs:
            logger.error("Retrying slowly after a bug", exc_info=bug)
        unforeseen = InvariantError(f"running a pass: {type(bugs[0]).__name__}")
        return Judgement(Verdict.ERROR, wait, errors or (unforeseen,), is_bug=True)
    if errors:
        return Judgement(_verdict_of(errors), wait, errors)
    return Judgement(Verdict.SUCCESS if wait is None else Verdict.REQUEUE_AFTER, wait)


def _verdict_of(errors: tuple[ReconcileError, ...]) -> Verdict:
    """Conflicts and pauses are how planes work, not failures of ours: they are no errors
    in metrics.
    """
    if all(isinstance(error, PlaneGoneError) for error in errors):
        return Verdict.SUCCESS
    if all(isinstance(error, ConflictError) for error in errors):
        return Verdict.REQUEUE
    if all(isinstance(error, ConflictError | ThrottledError) for error in errors):
        return Verdict.REQUEUE_AFTER
    return Verdict.ERROR


def call_safely(controller: str, call: Callable[P, None], *args: P.args, **kw: P.kwargs) -> None:
    """Calls functions of a controller that map changes; one that fails on an odd object is a bug,
    and must not end the reflector that told the change.
    """
    try:
        call(*args, **kw)
    except Exception:  # the other end of what a controller may break
        logger.exception("Dropping a change after a bug", extra={"controller": controller})
