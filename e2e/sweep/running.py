"""One run of a swept scenario and its verdict: every oracle, and the comparison with a reference.

A fault that never happened is a violation of its own: a run without its fault shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from compute_sim_planes.faults.plans import FaultPlan
from compute_sim_planes.history import History, Injected
from compute_sim_planes.time.clock import LoopReport, VirtualClock, run
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.oracles import find_differences, find_violations, rest
from e2e.backends.sim.scheduler import START, ErrorLines, captured_logs
from e2e.oracles.leaks import CanaryLogHandler
from e2e.sweep.points import PointRecorder
from e2e.sweep.scenarios import SweptScenario

UNREACHED: Final = "the fault never happened"


@dataclass(slots=True)
class SweepRun:
    """A finished run; `failure` is why its scenario did not end."""

    report: LoopReport = field(default_factory=LoopReport)
    errors: list[str] = field(default_factory=list[str])
    leaks: list[str] = field(default_factory=list[str])
    failure: str = ""
    is_paced: bool = True
    begun: int = 0  # the number of points before the scenario's main change
    made: list[tuple[SimBackend, PointRecorder]] = field(
        default_factory=list[tuple[SimBackend, PointRecorder]]
    )

    @property
    def backend(self) -> SimBackend:
        return self.made[0][0]

    @property
    def recorder(self) -> PointRecorder:
        return self.made[0][1]


# Called when the planes are open, before the scenario begins.
OnOpen = Callable[[SweepRun], None]


def play(scenario: SweptScenario, plan: FaultPlan, on_open: OnOpen = lambda _: None) -> SweepRun:
    """One run from empty planes until it is at rest."""
    done = SweepRun(is_paced=scenario.is_paced)

    async def main(clock: VirtualClock) -> None:
        recorders: list[PointRecorder] = []

        def make_injector(
            faults: tuple[object, ...], clock: VirtualClock, history: History
        ) -> PointRecorder:
            del faults
            recorders.append(PointRecorder(plan.faults, clock, history))
            return recorders[0]

        backend = SimBackend(clock, scenario.needs, plan.faults, make_injector=make_injector)
        done.made.append((backend, recorders[0]))
        await backend.open()
        done.begun = len(recorders[0].points)
        on_open(done)

        def begin_change() -> None:
            done.begun = len(recorders[0].points)

        try:
            await scenario.body(backend, begin_change)
        except AssertionError as failure:
            done.failure = str(failure).partition("\n")[0]
        await rest(backend)
        await backend.close()

    errors, canaries = ErrorLines(), CanaryLogHandler()
    with captured_logs(errors, canaries):
        run(main, seed=plan.seed, start=START, report=done.report)
    done.errors, done.leaks = errors.lines, [*canaries.leaks]
    return done


def judge_reference(done: SweepRun) -> list[str]:
    """The violations of a run without faults."""
    violations = find_violations(done.backend, done.report, done.errors, is_reference=True)
    return [*_failure(done), *violations, *done.leaks]


def judge_history(done: SweepRun) -> list[str]:
    """The violations of a run with faults of its own, which has no reference."""
    violations = find_violations(done.backend, done.report, done.errors, is_reference=False)
    return [*_failure(done), *violations, *done.leaks]


def judge(done: SweepRun, reference: SweepRun, expected: int = 1) -> list[str]:
    """The violations of a run with so many faults."""
    struck = sum(1 for _ in done.backend.history.of(Injected))
    if struck < expected:
        return [UNREACHED]
    violations = find_violations(done.backend, done.report, done.errors, is_reference=False)
    return [
        *_failure(done),
        *violations,
        *done.leaks,
        *find_differences(done.backend, reference.backend, is_paced=done.is_paced),
    ]


def _failure(done: SweepRun) -> list[str]:
    return [f"scenario: {done.failure}"] if done.failure else []
