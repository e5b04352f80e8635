"""Random histories and generated declarations on all cores, for nights, and the rows they give.

Each has a seed of its own in every process; a failing one is printed with what repeats it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from e2e.sweep.histories import run_histories
from e2e.sweep.results import row, spent_row
from e2e.sweep.transitions import PER_CHAIN, run_chain
from e2e.sweep.workers import Line, run_forked


@dataclass(frozen=True, slots=True)
class Portion:
    """What one process runs."""

    seed: int
    count: int


def split(count: int, seed: int, processes: int, *, apart: int = 1) -> list[Portion]:
    """Portions of a count; their seeds are so far apart."""
    each = [count // processes + (at < count % processes) for at in range(processes)]
    return [Portion(seed + at * apart, number) for at, number in enumerate(each) if number]


# --- histories ------------------------------------------------------------------------------------


def run_all_histories(count: int, seed: int, processes: int) -> list[dict[str, object]]:
    begun = time.monotonic()
    run = acts = violations = 0
    for _, line in run_forked(split(count, seed, processes), _work_on_histories, processes):
        if line.get("failure"):
            violations += 1
            print(f"VIOLATION in a random history: {line['failure']}", flush=True)
        run += int(str(line.get("histories", 0)))
        acts += int(str(line.get("acts", 0)))
    print(f"{run} random histories of {acts} acts, {violations} violations")
    return [
        row("histories: run", run, "histories"),
        row("histories: acts", acts, "acts"),
        row("histories: violations", violations, "histories", 0),
        row("histories: seconds", round(time.monotonic() - begun, 1), "s"),
        spent_row("histories"),
    ]


def _work_on_histories(portion: Portion) -> Iterator[Line]:
    try:
        tally = run_histories(portion.count, portion.seed)
    except AssertionError as failure:
        steps = "\n".join(getattr(failure, "__notes__", []))
        yield {"histories": portion.count, "failure": f"{failure}\n{steps}"}
        return
    yield {"histories": tally.histories, "acts": tally.acts}


# --- declarations ---------------------------------------------------------------------------------

FAR: Final = 1_000_000  # more chains than a process runs


def run_all_chains(transitions: int, seed: int, processes: int) -> list[dict[str, object]]:
    """So many transitions between generated Workloads, or a few more."""
    begun = time.monotonic()
    chains = -(-transitions // PER_CHAIN)
    portions = split(chains, seed * FAR, processes, apart=FAR)
    run = refused = violations = 0
    for _, line in run_forked(portions, _work_on_chains, processes):
        run += int(str(line.get("transitions", 0)))
        if line.get("refused"):
            refused += 1
            print(f"refused: chain {line['chain']}: {line['refused']}", flush=True)
        if line.get("failure"):
            violations += 1
            print(f"VIOLATION in chain {line.get('chain', '?')}: {line['failure']}", flush=True)
    print(f"{run} transitions, {refused} chains refused, {violations} violations")
    return [
        row("declarations: transitions", run, "transitions"),
        # What admission refuses shows nothing; many of them mean that the tables are out of date.
        row("declarations: refused", refused, "chains", max(1, chains // 20)),
        row("declarations: violations", violations, "chains", 0),
        row("declarations: seconds", round(time.monotonic() - begun, 1), "s"),
        spent_row("declarations"),
    ]


def _work_on_chains(portion: Portion) -> Iterator[Line]:
    for seed in range(portion.seed, portion.seed + portion.count):
        result = run_chain(seed)
        yield {
            "chain": seed,
            "transitions": result.transitions,
            "refused": result.refused,
            "failure": "; ".join(result.violations[:3]),
        }
