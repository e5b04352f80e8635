"""One reconcile: observe → plan → apply → report, under a deadline, with the only broad `except`.

A reconcile ends in a `ReconcileOutcome`: what to count, what to log and when to requeue. The class
of a `ReconcileError` decides about the retry; of several errors the worst names the outcome, and
those that can pass by themselves decide about the retry. Any other exception is a bug: it is logged
with its trace, counted and retried slowly, so that it ends this reconcile and not the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Generic, ParamSpec, Protocol, TypeVar

import msgspec

from compute_operator_kit.apply.applier import Session
from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import (
    ConflictError,
    InvariantError,
    PlaneGoneError,
    ProjectSuspendedError,
    ReconcileError,
    RejectedError,
    ThrottledError,
    UnavailableError,
    find_worst,
    iter_leaves,
)
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.timeouts import Deadline
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import Applied, Effect, soonest

ObservedT = TypeVar("ObservedT")
P = ParamSpec("P")

logger = logging.getLogger(__name__)

LONG: Final = timedelta(milliseconds=20)  # an ordinary reconcile takes a tenth of it


class Result(msgspec.Struct, frozen=True):
    """What a reconcile asks for, and what failed in it. Without `requeue_after` the key runs again
    on an event or at the resync.
    """

    requeue_after: timedelta | None = None
    errors: tuple[ReconcileError, ...] = ()
    is_refused: bool = False  # a write was refused before and not sent again in this reconcile
    deferred: Plan = Plan()  # to be sent as it is, unless an event enqueues the key before


class StepsResult(Result, Generic[ObservedT], frozen=True):
    """The result of `run_steps`, with what was observed (None: nothing to do) and planned."""

    observed: ObservedT | None = None
    plans: tuple[Plan, ...] = ()  # of `plan` and of `report`


class ReconcileSpan(Protocol):
    """The trace span of one reconcile."""

    def set_outcome(self, outcome: str) -> None: ...


class Spans(Protocol):
    """Tracing: one span per reconcile, its steps below it."""

    def reconcile(
        self, controller: str, key: ObjectKey
    ) -> AbstractContextManager[ReconcileSpan]: ...

    def step(self, name: str) -> AbstractContextManager[None]: ...


class NoSpans:
    """Records no spans, and allocates none: every reconcile opens four."""

    def reconcile(self, controller: str, key: ObjectKey) -> AbstractContextManager[ReconcileSpan]:  # noqa: ARG002
        return _NO_RECONCILE

    def step(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return _NO_STEP


class _NoSpan:
    """The span of a reconcile that is not traced."""

    def set_outcome(self, outcome: str) -> None:
        pass


_NO_RECONCILE: Final[AbstractContextManager[ReconcileSpan]] = nullcontext(_NoSpan())
_NO_STEP: Final[AbstractContextManager[None]] = nullcontext()


class ReconcileContext(msgspec.Struct, frozen=True):
    """Caches, writer and clock of one reconcile."""

    caches: Caches
    session: Session
    clock: Clock
    spans: Spans = msgspec.field(default_factory=NoSpans)
    deferred: Plan = Plan()  # of the last reconcile; no event has enqueued the key since


class Reconciler(Protocol[ObservedT]):
    """Steps of a reconcile: `observe` reads caches, `plan` decides, `report` derives the status.

    `observe` has no `await`, so that its snapshot is one moment. `report` gets the outcome of the
    plan, so that the status is also right when a write failed.
    """

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedT | None: ...

    def plan(self, observed: ObservedT, now: datetime) -> Plan: ...

    def report(self, observed: ObservedT, applied: Applied, now: datetime) -> Plan: ...


async def run_steps(
    steps: Reconciler[ObservedT], key: ObjectKey, work: ReconcileContext
) -> StepsResult[ObservedT]:
    """Runs a reconcile in four steps; the status is also sent when a write failed. The event loop
    runs between two steps only if they took long, because yielding costs every reconcile.
    """
    began = work.clock.monotonic()
    with work.spans.step("observe"):
        observed = steps.observe(key, work.caches)
    if observed is None:
        return StepsResult()
    if work.clock.monotonic() - began > LONG:
        await asyncio.sleep(0)
    with work.spans.step("plan"):
        plan = steps.plan(observed, work.clock.now())
    if work.clock.monotonic() - began > LONG:
        await asyncio.sleep(0)
    with work.spans.step("apply"):
        applied = await work.session.apply(plan)
        report = steps.report(observed, applied, work.clock.now())
        reported = await work.session.apply(report)
    joined = Applied(applied.outcomes + reported.outcomes)
    return _derive_result(joined, observed, (plan, report))


async def send_deferred(work: ReconcileContext) -> Result:
    """A reconcile that sends what the last one deferred: no event has enqueued the key since."""
    with work.spans.step("apply"):
        return _derive_result(await work.session.apply(work.deferred), None, ())


def _derive_result(
    applied: Applied, observed: ObservedT, plans: tuple[Plan, ...]
) -> StepsResult[ObservedT]:
    errors, failures, held = applied.errors, applied.failures, applied.held
    waits = [outcome.wait for outcome in applied.outcomes if outcome.effect is not Effect.HELD]
    # With another wait or an error, the next reconcile may derive other writes than those held.
    is_all = not errors and soonest(waits) is None
    return StepsResult(
        applied.wait,
        failures,
        is_refused=len(errors) > len(failures),
        deferred=held if is_all else Plan(),
        observed=observed,
        plans=plans,
    )


class ResultLabel(StrEnum):
    """The label `result` of `controller_runtime_reconcile_total`."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"


class ReconcileOutcome(msgspec.Struct, frozen=True):
    """How a reconcile ended."""

    label: ResultLabel
    wait: timedelta | None = None
    errors: tuple[ReconcileError, ...] = ()
    # Planes of projects that are suspended: no errors, the key is parked until they resume.
    suspended: tuple[str, ...] = ()
    is_bug: bool = False
    is_refused: bool = False
    deferred: Plan = Plan()

    @property
    def worst(self) -> ReconcileError | None:
        return find_worst(self.errors)

    @property
    def outcome(self) -> str:
        """For traces: `done`, `waiting`, or the class of the worst error."""
        if self.worst is not None:
            return type(self.worst).__name__
        return "done" if self.wait is None else "waiting"

    @property
    def is_terminal(self) -> bool:
        """Not retried until an object changes."""
        return bool(self.errors) and all(isinstance(e, RejectedError) for e in self.errors)


async def run_reconcile(
    run: Callable[[], Awaitable[Result]], deadline: Deadline
) -> ReconcileOutcome:
    """Runs a reconcile and returns its outcome; it raises nothing but `CancelledError`."""
    try:
        with deadline.start():
            result = await run()
    except TimeoutError:
        late = UnavailableError("PassTooLong", "running a pass: its deadline is over")
        return ReconcileOutcome(ResultLabel.ERROR, errors=(late,))
    except Exception as error:  # noqa: BLE001 - a bug must not end the worker
        return _derive_outcome(tuple(iter_leaves(error)), None)
    outcome = _derive_outcome(result.errors, result.requeue_after)
    if not result.is_refused and not result.deferred:
        return outcome
    return msgspec.structs.replace(outcome, is_refused=result.is_refused, deferred=result.deferred)


def _derive_outcome(leaves: tuple[BaseException, ...], wait: timedelta | None) -> ReconcileOutcome:
    suspended = tuple({e.plane: None for e in leaves if isinstance(e, ProjectSuspendedError)})
    if suspended:
        others = tuple(leaf for leaf in leaves if not isinstance(leaf, ProjectSuspendedError))
        outcome = _derive_outcome(others, wait)
        return msgspec.structs.replace(outcome, suspended=suspended)
    errors = tuple(leaf for leaf in leaves if isinstance(leaf, ReconcileError))
    bugs = [e for e in leaves if isinstance(e, InvariantError) or not isinstance(e, ReconcileError)]
    if bugs:
        for bug in bugs:
            logger.error("Retrying slowly after a bug", exc_info=bug)
        unforeseen = InvariantError(f"running a pass: {type(bugs[0]).__name__}")
        return ReconcileOutcome(ResultLabel.ERROR, wait, errors or (unforeseen,), is_bug=True)
    if errors:
        return ReconcileOutcome(_derive_label(errors), wait, errors)
    return ReconcileOutcome(
        ResultLabel.SUCCESS if wait is None else ResultLabel.REQUEUE_AFTER, wait
    )


def _derive_label(errors: tuple[ReconcileError, ...]) -> ResultLabel:
    """Conflicts and throttling are expected answers of a plane and no errors in metrics."""
    if all(isinstance(error, PlaneGoneError) for error in errors):
        return ResultLabel.SUCCESS
    if all(isinstance(error, ConflictError) for error in errors):
        return ResultLabel.REQUEUE
    if all(isinstance(error, ConflictError | ThrottledError) for error in errors):
        return ResultLabel.REQUEUE_AFTER
    return ResultLabel.ERROR


def call_safely(controller: str, call: Callable[P, None], *args: P.args, **kw: P.kwargs) -> None:
    """Calls a mapping function of a controller; one that raises on an odd object is a bug and must
    not end the reflector that delivered the change.
    """
    try:
        call(*args, **kw)
    except Exception:  # any error of a mapping function
        logger.exception("Dropping a change after a bug", extra={"controller": controller})
