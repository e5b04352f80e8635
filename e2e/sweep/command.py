"""`nox -s sweep`: derives, runs and judges fault plans on all cores, and reports what they found.

Workers are processes of their own, each with one scenario and a part of its plans; a worker prints
one JSON line per plan. A plan with a violation is written to a file that replays it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

from compute_sim_planes.faults.plan_files import parse_plan, print_plan
from compute_sim_planes.faults.plans import FaultPlan, FaultPlanError
from e2e.sweep.forking import PlanResult, repeat, strike_all
from e2e.sweep.histories import run_histories
from e2e.sweep.plans import StruckPair, StruckPoint, derive_faults, plan_of, sample_pairs, thin
from e2e.sweep.running import UNREACHED, SweepRun, judge_reference, play
from e2e.sweep.scenarios import LARGE, SweptScenario, catalogue

ROOT: Final = Path(__file__).parents[2]
FOUND: Final = ROOT / ".sweep"
RESULTS: Final = ROOT / ".bench" / "sweep.json"
# Of each scenario's plans, what a run without arguments takes: so much fits six minutes.
USUAL_SHARES: Final = {"small": (1, 24), "large": (1, 160)}
CHUNK: Final = 60  # plans of one worker, so that the last ones end together
SHOWN: Final = 300  # characters of a violation


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
    chunk: int = 0
    chunks: int = 1
    pairs: int = 0
    seed: int = 0
    histories: int = 0


@dataclass(slots=True)
class ScenarioReport:
    """What was run of one scenario."""

    scenario: str
    derived: int = 0
    plans: int = 0
    pairs: int = 0
    unreached: int = 0
    violations: int = 0
    seconds: float = 0.0
    messages: list[str] = field(default_factory=list[str])


# --- a worker -------------------------------------------------------------------------------------


def work(job: Job) -> Iterator[dict[str, object]]:
    """Runs the plans of a job; a dictionary for the recording and one for each plan."""
    if job.histories:
        yield run_random_histories(job)
        return
    scenario = catalogue()[job.scenario]
    reference = play(scenario, plan_of(scenario.name))
    violations = judge_reference(reference)
    faults = derive(scenario, reference)
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


def run_random_histories(job: Job) -> dict[str, object]:
    try:
        tally = run_histories(job.histories, job.seed)
    except AssertionError as failure:
        steps = "\n".join(getattr(failure, "__notes__", []))
        return {"histories": job.histories, "failure": f"{failure}\n{steps}"}
    return {"histories": tally.histories, "acts": tally.acts, "failure": ""}


def derive(scenario: SweptScenario, reference: SweepRun) -> list[StruckPoint]:
    """The plans of a scenario; those of the large size once for all that differ in names only."""
    recorder, history = reference.recorder, reference.backend.history
    faults = derive_faults(recorder.points, history, reference.begun)
    return thin(faults) if is_large(scenario.name) else faults


def choose(
    job: Job, faults: Sequence[StruckPoint], reference: SweepRun
) -> Sequence[StruckPoint | StruckPair]:
    if job.pairs:
        pairs = sample_pairs(reference.recorder.points, faults, job.pairs, job.seed)
        return pairs[job.chunk :: job.chunks]
    return faults[job.share.part - 1 :: job.share.parts][job.chunk :: job.chunks]


def is_large(scenario: str) -> bool:
    return scenario.endswith(LARGE.title) or scenario == "takeover"


# --- all workers ----------------------------------------------------------------------------------


def run_jobs(jobs: Sequence[Job], processes: int) -> dict[str, ScenarioReport]:
    """Runs the jobs side by side and prints a line for each violation."""
    reports = {job.scenario: ScenarioReport(job.scenario) for job in jobs}
    numbers = count(1)
    with ThreadPoolExecutor(max_workers=processes) as pool:
        for job, lines in zip(jobs, pool.map(_run_worker, jobs), strict=True):
            for line in lines:
                _note(reports[job.scenario], line, numbers)
    return reports


def _run_worker(job: Job) -> list[dict[str, object]]:
    told = json.dumps(asdict(job))
    command = [sys.executable, "-m", "e2e.sweep", "--worker", told]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines: list[dict[str, object]] = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")
    ]
    if done.returncode:
        lines.append({"reference": [f"the worker ended: {done.stderr[-600:]}"], "derived": 0})
    return lines


def _note(report: ScenarioReport, line: dict[str, object], numbers: Iterator[int]) -> None:
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


def plan_jobs(names: Sequence[str], share: Share | None, pairs: int, seed: int) -> list[Job]:
    """The jobs of a run, the long ones first."""
    jobs: list[Job] = []
    for name in sorted(names, key=lambda name: (not is_large(name), name)):
        usual = USUAL_SHARES["large" if is_large(name) else "small"]
        part = share or Share(*usual)
        if pairs:
            each = pairs // len(names) + (names.index(name) < pairs % len(names))
            chunks = max(1, each // CHUNK)
            jobs += [Job(name, part, at, chunks, each, seed) for at in range(chunks) if each]
            continue
        chunks = max(1, 1600 // part.parts // CHUNK)
        jobs += [Job(name, part, at, chunks) for at in range(chunks)]
    return jobs


def run_all_histories(count: int, seed: int, processes: int) -> list[dict[str, object]]:
    """Random histories side by side, and the rows of their report; a failing one is printed."""
    each = [count // processes + (at < count % processes) for at in range(processes)]
    whole = Share(1, 1)
    jobs = [
        Job("histories", whole, seed=seed + at, histories=number)
        for at, number in enumerate(each)
        if number
    ]
    with ThreadPoolExecutor(max_workers=processes) as pool:
        lines = [line for done in pool.map(_run_worker, jobs) for line in done]
    failures = [str(line.get("failure") or line.get("reference") or "") for line in lines]
    for failure in filter(None, failures):
        print(f"VIOLATION in a random history: {failure}", flush=True)
    run = sum(int(str(line.get("histories", 0))) for line in lines)
    acts = sum(int(str(line.get("acts", 0))) for line in lines)
    print(f"{run} random histories of {acts} acts, {sum(map(bool, failures))} violations")
    return [
        _row("histories: run", run, "histories"),
        _row("histories: acts", acts, "acts"),
        _row("histories: violations", sum(map(bool, failures)), "histories", 0),
    ]


# --- the report -----------------------------------------------------------------------------------


def report_rows(
    reports: dict[str, ScenarioReport], seconds: float, title: str
) -> list[dict[str, object]]:
    """Rows as those of benchmarks: a measure, its value, and whether it holds."""
    rows: list[dict[str, object]] = []
    totals = [*reports.values()]
    for one in totals:
        count = one.pairs if title == "pairs" else one.plans
        rows.append(_row(f"{title}: {one.scenario}: run", count, f"of {one.derived}"))
        rows.append(_row(f"{title}: {one.scenario}: violations", one.violations, "plans", 0))
    run = sum(one.plans + one.pairs for one in totals)
    rows.append(_row(f"{title}: run", run, "plans"))
    if title == "pairs":
        unreached = sum(one.unreached for one in totals)
        rows.append(_row(f"{title}: without their second fault", unreached, "plans"))
    rows.append(_row(f"{title}: violations", sum(one.violations for one in totals), "plans", 0))
    rows.append(_row(f"{title}: seconds", round(seconds, 1), "s"))
    return rows


def _remember(rows: list[dict[str, object]]) -> None:
    """Writes the rows; those of single faults, pairs and histories stand side by side."""
    titles = {str(row["measure"]).partition(":")[0] for row in rows}
    former: list[dict[str, object]] = []
    if RESULTS.exists():
        former = json.loads(RESULTS.read_text("utf-8"))
    kept = [row for row in former if str(row["measure"]).partition(":")[0] not in titles]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([*kept, *rows], indent=1) + "\n", "utf-8")


def _row(measure: str, value: float, unit: str, target: float | None = None) -> dict[str, object]:
    holds = target is None or value <= target
    return {"measure": measure, "value": value, "unit": unit, "target": target, "holds": holds}


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
    violations = [*judge_reference(reference), *repeat(scenario, plan, reference).violations]
    for violation in violations:
        print(violation)
    print(f"{plan.scenario}: {len(violations)} violations")
    return 1 if violations else 0


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
    parser.add_argument("--all", action="store_true", help="every plan of every scenario")
    parser.add_argument("--scenario", action="append", help="only this one; may be repeated")
    parser.add_argument("--pairs", type=int, default=0, help="so many plans of two faults instead")
    parser.add_argument("--histories", type=int, default=0, help="so many random ones instead")
    parser.add_argument("--seed", type=int, default=1, help="of pairs and histories")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    given = parse_arguments(arguments)
    if given.worker:
        described: dict[str, Any] = json.loads(given.worker)
        share = Share(**described.pop("share"))
        for line in work(Job(share=share, **described)):
            print(json.dumps(line), flush=True)
        return 0
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
        rows.append(_row("histories: seconds", round(time.monotonic() - begun, 1), "s"))
    else:
        share = Share(1, 1) if given.all else given.share
        reports = run_jobs(plan_jobs(names, share, given.pairs, given.seed), given.jobs)
        seconds = time.monotonic() - begun
        print_report(reports, seconds)
        rows = report_rows(reports, seconds, "pairs" if given.pairs else "all")
    _remember(rows)
    return 0 if all(row["holds"] for row in rows) else 1
