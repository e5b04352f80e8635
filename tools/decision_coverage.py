"""Branch coverage of an operator's `plan` and `status` modules, by its unit and property tests.

A decision that no such test takes is shown by slower tests alone, where a wrong one is expensive to
trace. Lines that were not run are printed by name and fail nothing; a failed test does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coverage import Coverage
from coverage.exceptions import CoverageException
from pydantic import BaseModel, ConfigDict, TypeAdapter

from tools.workspace import ROOT, Package

# A module of this name, or any module in a package of this name, at any depth: as the import
# contract on pure decisions has it. `planes.py` and `status_lag.py` are other things.
NAMES: Final = ("plan", "render", "status", "verdict")
SETTINGS: Final = ROOT / "pyproject.toml"


class NotMeasuredError(Exception):
    """There is nothing to measure, or nothing was: a figure would be one about nothing."""


class _Summary(BaseModel):
    model_config = ConfigDict(extra="ignore")

    num_branches: int
    covered_branches: int


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    summary: _Summary
    missing_lines: list[int]
    missing_branches: list[tuple[int, int]]


_FILES: Final = TypeAdapter(dict[str, _File])


@dataclass(frozen=True, slots=True)
class Measured:
    """Branches of all decisions together, and each place that was not reached."""

    branches: int
    taken: int
    missing: tuple[str, ...]

    def describe(self, package: str) -> str:
        title = f"plan and status of {package}"
        if not self.missing:
            return f"{title}: 100 % of branches"
        counted = f"{title}: {self.taken} of {self.branches} branches; not reached:"
        return "\n".join((counted, *(f"  {place}" for place in self.missing)))


def find_decisions(source: Path) -> list[Path]:
    patterns = [pattern for name in NAMES for pattern in (f"{name}.py", f"{name}/**/*.py")]
    return sorted({path for pattern in patterns for path in source.rglob(pattern)})


def run_tests(decisions: Sequence[Path], data: Path, arguments: Sequence[str]) -> int:
    """Runs pytest and its workers under coverage; its exit status."""
    included = ",".join(map(str, decisions))
    options = (f"--rcfile={SETTINGS}", f"--data-file={data}", f"--include={included}")
    command = (sys.executable, "-m", "coverage", "run", *options, "-m", "pytest", *arguments)
    return subprocess.run(command, check=False).returncode


def measure(decisions: Sequence[Path], data: Path) -> Measured:
    """What the tests reached, by the data files that each of their processes left."""
    names = [str(path) for path in decisions]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        coverage = Coverage(data_file=str(data), config_file=str(SETTINGS))
        try:
            coverage.combine()
            # A module that no test imports is in no data file: without this it is left out.
            coverage.get_data().touch_files(names)
            coverage.json_report(morfs=names, outfile=str(report))
        except CoverageException as error:
            raise NotMeasuredError(f"reading coverage: {error}") from error
        files = _FILES.validate_python(json.loads(report.read_text("utf-8"))["files"])
    return Measured(
        sum(file.summary.num_branches for file in files.values()),
        sum(file.summary.covered_branches for file in files.values()),
        tuple(place for name, file in files.items() for place in _missing(name, file)),
    )


def _missing(name: str, file: _File) -> Iterator[str]:
    missing = set(file.missing_lines)
    yield from (f"{name}:{line}" for line in file.missing_lines)
    for start, end in file.missing_branches:
        if not {start, end} & missing:  # else its line has been named
            # A negative line stands for the end of the function.
            yield f"{name}:{start} -> {end if end > 0 else 'return'}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run an operator's tests and measure decisions.")
    parser.add_argument("package", help="folder below packages/")
    parser.add_argument("pytest", nargs=argparse.REMAINDER, help="arguments of pytest")
    asked = parser.parse_args(arguments)
    decisions = find_decisions(Package(asked.package).path / "src")
    if not decisions:
        raise NotMeasuredError(f"packages/{asked.package} has no module named plan or status")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "coverage"
        failed = run_tests(decisions, data, asked.pytest)
        if not failed:
            print(measure(decisions, data).describe(asked.package), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
