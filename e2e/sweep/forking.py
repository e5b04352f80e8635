"""Many runs from one prefix: the run is forked at each point that a fault strikes.

Up to its fault a run is the recording, so playing that part again for every fault is wasted time.
The process plays the scenario once more without faults and forks at each chosen point: the child
goes on with the fault, judges itself and sends its violations; the parent waits and goes on without
it. Nothing in virtual time has a socket or a thread, so a fork is a whole copy of the run.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from compute_sim_planes.faults.plans import Fault, FaultPlan, Point
from e2e.backends.sim.oracles import ORACLES
from e2e.oracles.comparison import remember_reference
from e2e.sweep.plans import StruckPair, StruckPoint, plan_of
from e2e.sweep.points import PointRecorder, StrikePoint
from e2e.sweep.running import SweepRun, judge, play
from e2e.sweep.scenarios import SweptScenario

LONGEST: Final = 120  # seconds of wall time; a run that takes longer is stuck
TAKES: Final = "the run took longer than"


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan that was run, and its violations."""

    plan: FaultPlan
    violations: tuple[str, ...]
    seconds: float


OnResult = Callable[[PlanResult], None]


@dataclass(slots=True)
class _Fork:
    """What a child has to strike and to judge; None in the process that forks."""

    plan: FaultPlan | None = None
    pipe: int = -1
    begun: float = 0.0


def strike_all(
    scenario: SweptScenario,
    reference: SweepRun,
    chosen: Iterable[StruckPoint | StruckPair],
    on_result: OnResult,
) -> None:
    """Runs every plan; `reference` is the run that they were derived from."""
    by_point: dict[int, list[StruckPoint | StruckPair]] = {}
    for one in chosen:
        first = one.first if isinstance(one, StruckPair) else one
        by_point.setdefault(first.point.number, []).append(one)
    own = _Fork()

    def on_open(done: SweepRun) -> None:
        gc.freeze()  # the collector would copy the pages of every object into every child
        recorder = done.recorder

        def strike(point: StrikePoint) -> Fault | None:
            if own.plan is not None:
                return None
            _check_same(point, reference)
            for one in by_point.get(point.number, ()):
                fault = _fork(own, scenario, recorder, one, on_result)
                if fault is not None:
                    return fault
            return None

        recorder.strike = strike

    remember_reference(reference.backend.history)
    try:
        done = play(scenario, plan_of(scenario.name), on_open)
    except BaseException:
        if own.plan is None:
            raise
        _send(own, [f"the run ended: {traceback.format_exc(limit=-3)}"])
    if own.plan is not None:
        _send(own, _judge(done, reference, len(own.plan.faults)))
    gc.unfreeze()


def _check_same(point: StrikePoint, reference: SweepRun) -> None:
    points = reference.recorder.points
    if point.number >= len(points) or points[point.number].address != point.address:
        raise RuntimeError(f"point {point.number} is not that of the recording: {point.address}")


def _fork(
    own: _Fork,
    scenario: SweptScenario,
    recorder: PointRecorder,
    chosen: StruckPoint | StruckPair,
    on_result: OnResult,
) -> Fault | None:
    """In the child the fault that strikes; in the parent None, once the child has ended."""
    first = chosen.first if isinstance(chosen, StruckPair) else chosen
    faults = (first.fault, *((chosen.second,) if isinstance(chosen, StruckPair) else ()))
    plan = plan_of(scenario.name, *faults, oracles=ORACLES)
    loop, begun = asyncio.get_running_loop(), time.monotonic()
    ours, theirs = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(theirs)
        on_result(PlanResult(plan, _receive(child, ours), time.monotonic() - begun))
        return None
    os.close(ours)
    # asyncio forgets the running loop in a forked process.
    asyncio._set_running_loop(loop)  # noqa: SLF001
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST)
    own.plan, own.pipe, own.begun = plan, theirs, begun
    gc.disable()  # a run is short; what it leaves behind is collected before it is judged
    if isinstance(chosen, StruckPair):
        recorder.arm(_from_now(chosen.second, recorder.points))
    return first.fault


def _from_now(fault: Fault, points: Sequence[StrikePoint]) -> Fault:
    """The fault with its matches counted from now on instead of from the start."""
    at = fault.at
    past = sum(1 for one in points if _matches(at, one))
    return replace(fault, at=replace(at, nth=max(1, at.nth - past)))


def _matches(at: Point, point: StrikePoint) -> bool:
    address = point.address
    return (address.plane, address.verb, address.kind, address.subresource) == (
        at.plane,
        at.verb,
        at.kind,
        at.subresource,
    ) and point.is_event == (at.verb == "watch")


def _judge(done: SweepRun, reference: SweepRun, expected: int) -> list[str]:
    gc.collect()  # an exception that no task has retrieved is reported when its task goes
    try:
        return judge(done, reference, expected)
    except Exception:  # noqa: BLE001 -- a child must send, whatever happened to it
        return [f"judging failed: {traceback.format_exc(limit=-3)}"]


def _send(own: _Fork, violations: list[str]) -> NoReturn:
    """Sends the violations and ends the child without the clean-up of its parent."""
    with os.fdopen(own.pipe, "wb") as pipe:
        pipe.write(json.dumps(violations).encode())
    os._exit(0)


def _receive(child: int, pipe: int) -> tuple[str, ...]:
    with os.fdopen(pipe, "rb") as sent:
        raw = sent.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return (f"{TAKES} {LONGEST} s",)
    if status or not raw:
        return (f"the run ended with status {status}",)
    violations: list[str] = json.loads(raw)
    return tuple(violations)


def repeat(scenario: SweptScenario, plan: FaultPlan, reference: SweepRun) -> PlanResult:
    """Runs a plan from its file, from empty planes on."""
    begun = time.monotonic()
    done = play(scenario, plan)
    violations = judge(done, reference, len(plan.faults))
    return PlanResult(plan, tuple(violations), time.monotonic() - begun)
