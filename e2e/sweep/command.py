"""`nox -s sweep`: derives, runs and judges fault plans on all cores, and reports what they found.

Workers are processes of their own, each with one scenario and a part of its plans; a worker sends
one JSON line per plan. A plan with a violation is written to a file that replays it.

```
 (nothing)      a fixed share of every scenario in both sizes     ≤ 4 min on 2 cores
 --all          every plan of 1×1×1, and the classes that it lacks of 2×2×3 and takeover   ≤ 30 min
 --every        every plan of both sizes, for nights; --share K/N takes a part of them
```
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Final, cast

from compute_sim_planes.faults.plan_files import parse_plan, print_plan
from compute_sim_planes.faults.plans import FaultPlan, FaultPlanError
from e2e.sweep.forking import PlanResult, repeat, strike_all
from e2e.sweep.nights import run_all_chains, run_all_histories
from e2e.sweep.plans import (
    StruckPair,
    StruckPoint,
    derive_faults,
    plan_of,
    sample_pairs,
    thin,
    without_known,
)
from e2e.sweep.points import count_matches
from e2e.sweep.results import ScenarioReport, remember, report_rows
from e2e.sweep.running import UNREACHED, SweepRun, judge_reference, play
from e2e.sweep.scenarios import LARGE, SMALL, SweptScenario, catalogue
from e2e.sweep.workers import run_forked

ROOT: Final = Path(__file__).parents[2]
FOUND: Final = ROOT / ".sweep"
# Of each scenario's plans, what a run without arguments takes: so much fits four minutes.
USUAL_SHARES: Final = {"small": (1, 24), "large": (1, 160)}
CHUNK: Final = 400  # plans of one worker, which first plays the scenario twice
SHOWN: Final = 300  # characters of a violation
LEAST: Final = 3000  # plans of `--all`


class Coverage(StrEnum):
    """Which of the derived plans are run; the value is the title of its rows."""

    USUAL = "share"
    ALL = "all"
    EVERY = "every"


# CPU seconds of all processes: four minutes and half an hour of two cores.
BUDGETS: Final = {Coverage.USUAL: 480.0, Coverage.ALL: 3600.0}


@dataclass(frozen=True, slots=True)
class Share:
    """The Kth of N parts."""

    part: int
    parts: int

    @classmethod
    def parse(cls, text: str) -> Share:
        part, _, parts = text.partition("/")
        if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
            raise argparse.ArgumentTypeError(f"{text!r} is no share such as 1/50")
        return cls(int(part), int(parts))


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker does."""

    scenario: str
    share: Share
    coverage: Coverage = Coverage.EVERY
    chunk: int = 0
    chunks: int = 1
    pairs: int = 0
    seed: int = 0


# --- a worker -------------------------------------------------------------------------------------


def work(job: Job) -> Iterator[dict[str, object]]:
    """Runs the plans of a job; a dictionary for the recording and one for each plan."""
    scenario = catalogue()[job.scenario]
    reference = play(scenario, plan_of(scenario.name))
    violations = judge_reference(reference)
    faults = derive(scenario, reference, job.coverage)
    yield {"derived": len(faults), "reference": violations}
    if violations:
        return
    results: list[PlanResult] = []
    strike_all(scenario, reference, choose(job, faults, reference), results.append)
    for result in results:
        yield {
            "plan": print_plan(result.plan),
            "faults": len(result.plan.faults),
            "violations": [*result.violations],
            "seconds": round(result.seconds, 2),
        }


def derive(
    scenario: SweptScenario, reference: SweepRun, coverage: Coverage = Coverage.EVERY
) -> list[StruckPoint]:
    """The plans of a scenario; those of the large size once for all that differ in names only."""
    faults = _derive_all(reference)
    if not is_large(scenario.name):
        return faults
    if coverage is not Coverage.ALL:
        return thin(faults)
    small = catalogue().get(scenario.name.replace(LARGE.title, SMALL.title))
    if small is None or small.name == scenario.name:
        return without_known(faults, ())
    return without_known(faults, _derive_all(play(small, plan_of(small.name))))


def _derive_all(reference: SweepRun) -> list[StruckPoint]:
    return derive_faults(reference.recorder.points, reference.backend.history, reference.begun)


def choose(
    job: Job, faults: Sequence[StruckPoint], reference: SweepRun
) -> Sequence[StruckPoint | StruckPair]:
    if job.pairs:
        pairs = sample_pairs(reference.recorder.points, faults, job.pairs, job.seed)
        return pairs[job.chunk :: job.chunks]
    return faults[job.share.part - 1 :: job.share.parts][job.chunk :: job.chunks]


def is_large(scenario: str) -> bool:
    return not is_small(scenario)


def is_small(scenario: str) -> bool:
    return scenario.endswith(SMALL.title)


# --- all workers ----------------------------------------------------------------------------------


def run_jobs(jobs: Sequence[Job], processes: int) -> dict[str, ScenarioReport]:
    """Runs the jobs side by side and prints a line for each violation."""
    reports = {job.scenario: ScenarioReport(job.scenario) for job in jobs}
    numbers = count(1)
    for job, line in run_forked(jobs, work, processes):
        _note(reports[job.scenario], line, numbers)
    return reports


def _note(report: ScenarioReport, line: dict[str, object], numbers: Iterator[int]) -> None:
    if "failure" in line:
        report.violations += 1
        print(f"VIOLATION {report.scenario}: {line['failure']}", flush=True)
        return
    if "plan" not in line:
        report.derived = max(report.derived, int(str(line["derived"])))
        messages = _texts(line["reference"])
        report.violations += bool(messages)
        for message in messages[:1]:
            more = f" (and {len(messages) - 1} more)" if len(messages) > 1 else ""
            first = f"{message[:SHOWN]}{more}"
            print(f"VIOLATION {report.scenario} without a fault: {first}", flush=True)
        return
    messages, is_pair = _texts(line["violations"]), line["faults"] == 2
    report.seconds += float(str(line["seconds"]))
    if is_pair and messages == [UNREACHED]:
        report.unreached += 1  # the first fault ended the run before the second; counted apart
        return
    report.pairs += is_pair
    report.plans += not is_pair
    if not messages:
        return
    report.violations += 1
    FOUND.mkdir(exist_ok=True)
    path = FOUND / f"{report.scenario}-{next(numbers)}.json"
    path.write_text(f"{line['plan']}\n", "utf-8")
    shown = path.relative_to(ROOT)
    print(f"VIOLATION {report.scenario} {shown}: {messages[0][:SHOWN]}", flush=True)


def _texts(value: object) -> list[str]:
    return [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else []


def _is_short(scenario: str, coverage: Coverage) -> bool:
    """Of the large size most plans are run, or few."""
    return LARGE.title in scenario if coverage is Coverage.ALL else is_small(scenario)


def plan_jobs(
    names: Sequence[str],
    share: Share | None,
    pairs: int,
    seed: int,
    coverage: Coverage = Coverage.EVERY,
) -> list[Job]:
    """The jobs of a run, the long ones first."""
    jobs: list[Job] = []
    for name in sorted(names, key=lambda name: (_is_short(name, coverage), name)):
        usual = USUAL_SHARES["large" if is_large(name) else "small"]
        part = share or (Share(*usual) if coverage is Coverage.USUAL else Share(1, 1))
        if pairs:
            each = pairs // len(names) + (names.index(name) < pairs % len(names))
            chunks = max(1, each // CHUNK)
            parts = range(chunks if each else 0)
            jobs += [Job(name, part, coverage, at, chunks, each, seed) for at in parts]
            continue
        is_few = coverage is Coverage.ALL and LARGE.title in name
        chunks = 1 if is_few else max(1, 1200 // part.parts // CHUNK)
        jobs += [Job(name, part, coverage, at, chunks) for at in range(chunks)]
    return jobs


# --- the report -----------------------------------------------------------------------------------


def print_report(reports: dict[str, ScenarioReport], seconds: float) -> None:
    for one in reports.values():
        pairs = f", {one.pairs} pairs" if one.pairs else ""
        print(
            f"{one.scenario:26} {one.plans:5} of {one.derived:5} plans{pairs}, "
            f"{one.violations} violations, {one.seconds:.0f} s"
        )
    plans = sum(one.plans + one.pairs for one in reports.values())
    violations = sum(one.violations for one in reports.values())
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    print(
        f"\n{plans} plans, {violations} violations in {seconds:.0f} s "
        f"on {os.cpu_count()} cores, load {load}"
    )


# --- the command ----------------------------------------------------------------------------------


def replay(path: str) -> int:
    """Runs the plan of a file; one clear line where it is none."""
    try:
        plan = parse_plan(Path(path).read_bytes())
        scenario = _scenario_of(plan)
    except (OSError, FaultPlanError) as error:
        print(f"sweep: {path}: {error}", file=sys.stderr)
        return 2
    reference = play(scenario, FaultPlan(plan.scenario, plan.seed))
    first = plan.faults[0]
    if count_matches(reference.recorder.points, first) < first.at.nth:
        print(f"sweep: {path}: {_describe_absent(plan)}", file=sys.stderr)
        return 2
    violations = [*judge_reference(reference), *repeat(scenario, plan, reference).violations]
    for violation in violations:
        print(violation)
    print(f"{plan.scenario}: {len(violations)} violations")
    return 1 if violations else 0


def _describe_absent(plan: FaultPlan) -> str:
    at = plan.faults[0].at
    shown = " ".join(filter(None, (at.verb, at.kind, at.key, "on", at.plane)))
    return f"faults[0].at: {plan.scenario} has no {shown} number {at.nth}: nothing would be struck"


def _scenario_of(plan: FaultPlan) -> SweptScenario:
    known = catalogue()
    if plan.scenario not in known:
        raise FaultPlanError(
            f"scenario: {plan.scenario!r} is not known; known are {', '.join(known)}"
        )
    if not plan.faults:
        raise FaultPlanError("faults: there is none, and a run without faults shows nothing")
    return known[plan.scenario]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sweep", description=__doc__)
    parser.add_argument("--plan", help="replay the plan of this file")
    parser.add_argument("--share", type=Share.parse, help="the Kth of N parts of all plans: K/N")
    parser.add_argument("--all", action="store_true", help="every plan of 1x1x1 and every class")
    parser.add_argument("--every", action="store_true", help="every plan of both sizes")
    parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
    parser.add_argument("--pairs", type=int, default=0, help="so many plans of two faults instead")
    parser.add_argument("--histories", type=int, default=0, help="so many random ones instead")
    parser.add_argument(
        "--transitions", type=int, default=0, help="so many between generated Workloads instead"
    )
    parser.add_argument("--seed", type=int, default=1, help="of pairs, histories and Workloads")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args(arguments)


def coverage_of(given: argparse.Namespace) -> Coverage:
    if given.all:
        return Coverage.ALL
    return Coverage.EVERY if given.every or given.share or given.pairs else Coverage.USUAL


def main(arguments: Sequence[str] | None = None) -> int:
    given = parse_arguments(arguments)
    if given.plan:
        return replay(given.plan)
    known = catalogue()
    names: list[str] = given.scenario or [*known]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"sweep: no scenario is called {unknown[0]!r}", file=sys.stderr)
        return 2
    begun = time.monotonic()
    if given.histories:
        rows = run_all_histories(given.histories, given.seed, given.jobs)
    elif given.transitions:
        rows = run_all_chains(given.transitions, given.seed, given.jobs)
    else:
        coverage = coverage_of(given)
        jobs = plan_jobs(names, given.share, given.pairs, given.seed, coverage)
        reports = run_jobs(jobs, given.jobs)
        seconds = time.monotonic() - begun
        print_report(reports, seconds)
        is_whole = not given.scenario and not given.share and not given.pairs
        rows = report_rows(
            reports,
            seconds,
            "pairs" if given.pairs else coverage.value,
            budget=BUDGETS.get(coverage) if is_whole else None,
            least=LEAST if is_whole and coverage is Coverage.ALL else None,
        )
    remember(rows)
    return 0 if all(row["holds"] for row in rows) else 1
