"""Plays a scenario on simulated planes and judges the run by every oracle that applies.

A run is a function of scenario, seed and faults. One that fails says so in one line, which a file
of that content replays: `nox -s sim -- --plan F`.
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

from compute_operator_kit.testing import FakeMeasures
from compute_sim_planes.clock import LoopReport, VirtualClock, run
from compute_sim_planes.fault_plan_files import print_plan
from compute_sim_planes.fault_plans import FaultPlan
from e2e.backends.port import Backend, Needs
from e2e.backends.rights import used_rights
from e2e.backends.sim.backend import SimBackend
from e2e.backends.sim.judging import ORACLES, judge, judge_against, rest
from e2e.faults.leaks import ListeningHandler
from e2e.rights import keep_record

START: Final = datetime(2026, 3, 1, tzinfo=UTC)
SEED: Final = 1
LOGGERS: Final = (
    "compute_cell_operator",
    "compute_management_operator",
    "compute_operator_kit",
    "compute_quota_client",
)

Body: TypeAlias = Callable[[Backend], Coroutine[object, object, None]]


class Onlooker(Protocol):
    """Somebody who looks on, from before the first process starts until a run was seen to rest."""

    def make_measures(self, component: str) -> FakeMeasures:
        """Where a process of this component puts its numbers."""
        ...

    def look(self, backend: SimBackend) -> AbstractAsyncContextManager[None]: ...


class Nobody:
    """Looks on at most runs."""

    def make_measures(self, component: str) -> FakeMeasures:  # noqa: ARG002
        return FakeMeasures()

    def look(self, backend: SimBackend) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        return nullcontext()


class ScenarioError(AssertionError):
    """A scenario, or an oracle after it, did not hold; the message ends with what replays it."""


@dataclass(slots=True)
class SimStage:
    """Where scenarios are played; `plan` brings another seed and faults."""

    plan: FaultPlan | None = None
    seed: int = SEED
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def play(self, name: str, needs: Needs, body: Body) -> None:
        begun = time.monotonic()
        plan = self.plan or FaultPlan(name, self.seed, oracles=ORACLES)
        try:
            self._play(plan, needs, body)
        except Exception as failure:
            line = print_plan(plan)
            message = f"{failure}\n\nreplay with nox -s sim -- --plan FILE, FILE holding\n{line}"
            raise ScenarioError(message) from failure
        finally:
            self.seconds[name] = time.monotonic() - begun

    def _play(self, plan: FaultPlan, needs: Needs, body: Body) -> None:
        backend, violations = play_once(plan, needs, body)
        keep_record(plan.scenario, used_rights(backend.history, (c.name for c in needs.cells)))
        if plan.faults:
            reference, more = play_once(replace(plan, faults=()), needs, body)
            violations += [*more, *judge_against(backend, reference)]
        if violations:
            raise ScenarioError("\n".join(violations))


def play_once(
    plan: FaultPlan, needs: Needs, body: Body, onlooker: Onlooker | None = None
) -> tuple[SimBackend, list[str]]:
    """One run from an empty world to its rest, and what is wrong with it."""
    report = LoopReport()
    made: list[SimBackend] = []
    watching = onlooker or Nobody()

    async def main(clock: VirtualClock) -> None:
        backend = SimBackend(clock, needs, plan.faults, make_measures=watching.make_measures)
        made.append(backend)
        async with watching.look(backend):
            await backend.open()
            await body(backend)
            await rest(backend)
        await backend.close()

    errors, listening = _ErrorLines(), ListeningHandler()
    with heard(errors, listening):
        run(main, seed=plan.seed, start=START, report=report)
    judged = judge(made[0], report, errors.lines, is_reference=not plan.faults)
    return made[0], [*judged, *listening.leaks]


def play_seen(name: str, needs: Needs, body: Body, onlooker: Onlooker) -> list[str]:
    """One run without faults under somebody's eyes; what is wrong with it."""
    return play_once(FaultPlan(name, SEED), needs, body, onlooker)[1]


@contextmanager
def heard(*handlers: logging.Handler) -> Generator[None]:
    """The handlers hear everything our packages say, down to DEBUG."""
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


class _ErrorLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self.lines.append(f"{record.getMessage()} {cause!r}" if cause else record.getMessage())
