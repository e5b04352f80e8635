"""Runs one benchmark, prints its table and remembers it in `.bench/NAME.json`.

Speed is judged as a ratio to something named in the same run, because absolute times say more
about the machine than about the code. Benchmarks are never part of the tests: a test that judges
time fails on a busy machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from tools.workspace import ROOT

RESULTS: Final = ROOT / ".bench"
COLUMNS: Final = ("measure", "value", "unit", "compared to", "ratio", "target", "holds")


@dataclass(frozen=True, slots=True)
class Row:
    """One measure. A row that only informs has no target and holds."""

    measure: str
    value: float
    unit: str
    compared_to: str | None = None
    ratio: float | None = None
    target: float | None = None
    holds: bool = True


def names() -> list[str]:
    return sorted(path.stem for path in (ROOT / "bench").glob("[!_]*.py"))


def table(rows: Sequence[Row]) -> str:
    cells = [COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _cells(row: Row) -> tuple[str, ...]:
    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"

    return (
        row.measure,
        number(row.value),
        row.unit,
        row.compared_to or "–",
        number(row.ratio),
        number(row.target),
        "yes" if row.holds else "NO",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one benchmark.")
    parser.add_argument("name", choices=names())
    name: str = parser.parse_args().name
    rows: list[Row] = importlib.import_module(f"bench.{name}").run()
    load = ", ".join(f"{average:.2f}" for average in os.getloadavg())
    python = f"Python {platform.python_version()} ({sys.base_prefix})"
    print(f"\n{name}, on {os.cpu_count()} cores, load {load}, {python}\n{table(rows)}")
    RESULTS.mkdir(exist_ok=True)
    remembered = json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(remembered + "\n", "utf-8")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
