"""What a run of the sweep found, as rows of `.bench/sweep.json`.

Rows are those of benchmarks: a measure, its value, and whether it holds. A run replaces the rows of
its own kind; those of single faults, pairs, histories and declarations stand side by side.
"""

from __future__ import annotations

import json
import resource
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parents[2] / ".bench" / "sweep.json"


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


def report_rows(
    reports: dict[str, ScenarioReport],
    seconds: float,
    title: str,
    *,
    budget: float | None = None,
    least: int | None = None,
) -> list[dict[str, object]]:
    """Rows as those of benchmarks: a measure, its value, and whether it holds."""
    rows: list[dict[str, object]] = []
    totals = [*reports.values()]
    for one in totals:
        count = one.pairs if title == "pairs" else one.plans
        rows.append(row(f"{title}: {one.scenario}: run", count, f"of {one.derived}"))
        rows.append(row(f"{title}: {one.scenario}: violations", one.violations, "plans", 0))
    run = sum(one.plans + one.pairs for one in totals)
    rows.append(row(f"{title}: run", run, "plans", least=least))
    if title == "pairs":
        unreached = sum(one.unreached for one in totals)
        rows.append(row(f"{title}: without their second fault", unreached, "plans"))
    rows.append(row(f"{title}: violations", sum(one.violations for one in totals), "plans", 0))
    rows.append(row(f"{title}: seconds", round(seconds, 1), "s"))
    rows.append(spent_row(title, budget))
    return rows


def remember(rows: list[dict[str, object]]) -> None:
    """Writes the rows; those of single faults, pairs and histories stand side by side."""
    titles = {str(row["measure"]).partition(":")[0] for row in rows}
    former: list[dict[str, object]] = []
    if RESULTS.exists():
        former = json.loads(RESULTS.read_text("utf-8"))
    kept = [row for row in former if str(row["measure"]).partition(":")[0] not in titles]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([*kept, *rows], indent=1) + "\n", "utf-8")


def row(
    measure: str,
    value: float,
    unit: str,
    target: float | None = None,
    *,
    least: float | None = None,
) -> dict[str, object]:
    holds = (target is None or value <= target) and (least is None or value >= least)
    bound = least if target is None else target
    return {"measure": measure, "value": value, "unit": unit, "target": bound, "holds": holds}


def spent_row(title: str, budget: float | None = None) -> dict[str, object]:
    """The CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return row(f"{title}: CPU seconds", round(used.ru_utime + used.ru_stime, 1), "s", budget)
