"""Runs a scenario on simulated planes and evaluates every oracle that applies.

A run is a function of scenario, seed and faults. A failure prints one line; a file with that line
replays it: `nox -s sim -- --plan F`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol, TypeAlias

from typing_extensions import override

from compute_operator_kit.testing.fakes import FakeMetrics
from compute_sim_planes.faults.plan_files import print_plan
from compute_sim_planes.faults.plans import FaultPlan
from compute_sim_planes.history import History
from compute_sim_planes.reconcile_trace import ReconcileTrace
from compute_sim_planes.time.clock import LoopReport, VirtualClock, run
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.oracles import ORACLES, find_differences, find_violations, rest
from e2e.harness.deploy.rights import used_rights
from e2e.harness.deploy.rights_report import keep_record
from e2e.oracles.leaks import CanaryLogHandler
from e2e.world.port import Backend, Needs

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
SEED: Final = 1
LOGGERS: Final = (
    "compute_cell_operator",
    "compute_management_operator",
    "compute_operator_kit",
    "compute_quota_client",
)

Body: TypeAlias = Callable[[Backend], Coroutine[object, object, None]]


class RunObserver(Protocol):
    """Observes a run from before the first process starts until it was at rest."""

    def make_measures(self, component: str) -> FakeMetrics:
        """Creates the metrics of a process of this component."""
        ...

    def make_spans(self, history: History) -> ReconcileTrace:
        """Creates the tracer of a process."""
        ...

    def observe(self, backend: SimBackend) -> AbstractAsyncContextManager[None]: ...


class NoObserver:
    """Observes nothing."""

    def make_measures(self, component: str) -> FakeMetrics:  # noqa: ARG002
        return FakeMetrics()

    def make_spans(self, history: History) -> ReconcileTrace:
        return ReconcileTrace(history)

    def observe(self, backend: SimBackend) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        return nullcontext()


class SimScenarioError(AssertionError):
    """A scenario or an oracle failed; the message ends with the line that replays the run."""


@dataclass(slots=True)
class SimScheduler:
    """The `ScenarioScheduler` of `sim`; `plan` sets another seed and faults."""

    plan: FaultPlan | None = None
    seed: int = SEED
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def run(self, name: str, needs: Needs, body: Body) -> None:
        begun = time.monotonic()
        plan = self.plan or FaultPlan(name, self.seed, oracles=ORACLES)
        try:
            self._run_scenario(plan, needs, body)
        except Exception as failure:
            line = print_plan(plan)
            message = f"{failure}\n\nreplay with nox -s sim -- --plan FILE, FILE holding\n{line}"
            raise SimScenarioError(message) from failure
        finally:
            self.seconds[name] = time.monotonic() - begun

    def _run_scenario(self, plan: FaultPlan, needs: Needs, body: Body) -> None:
        backend, violations = run_once(plan, needs, body)
        keep_record(plan.scenario, used_rights(backend.history, (c.name for c in needs.cells)))
        if plan.faults:
            reference, more = run_once(replace(plan, faults=()), needs, body)
            violations += [*more, *find_differences(backend, reference)]
        if violations:
            raise SimScenarioError("\n".join(violations))


def run_once(
    plan: FaultPlan, needs: Needs, body: Body, observer: RunObserver | None = None
) -> tuple[SimBackend, list[str]]:
    """One run from empty planes until it is at rest; returns its violations."""
    report = LoopReport()
    made: list[SimBackend] = []
    watching = observer or NoObserver()

    async def main(clock: VirtualClock) -> None:
        backend = SimBackend(
            clock,
            needs,
            plan.faults,
            make_measures=watching.make_measures,
            make_spans=watching.make_spans,
        )
        made.append(backend)
        async with watching.observe(backend):
            await backend.open()
            await body(backend)
            await rest(backend)
        await backend.close()

    errors, listening = ErrorLines(), CanaryLogHandler()
    with captured_logs(errors, listening):
        run(main, seed=plan.seed, start=START, report=report)
    violations = find_violations(made[0], report, errors.lines, is_reference=not plan.faults)
    return made[0], [*violations, *listening.leaks]


def run_observed(name: str, needs: Needs, body: Body, observer: RunObserver) -> list[str]:
    """One run without faults with an observer; returns its violations."""
    return run_once(FaultPlan(name, SEED), needs, body, observer)[1]


@contextmanager
def captured_logs(*handlers: logging.Handler) -> Generator[None]:
    """Attaches the handlers to the loggers of our packages at level DEBUG."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
            for handler in handlers:
                logger.removeHandler(handler)


class ErrorLines(logging.Handler):
    """Collects the lines at ERROR of a run, with their exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self.lines.append(f"{record.getMessage()} {cause!r}" if cause else record.getMessage())
