"""Instructions per Workload and per Instance, counted by callgrind and therefore repeatable.

Counts this tree and, if `BENCH_AGAINST` names a commit, that one in the same run, and prints the
ratio. CPU seconds vary by the hour and would hide a small regression. Needs valgrind. The operator
is the shipped command; only the time from the first object to rest counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

AGAINST: Final = "BENCH_AGAINST"
LARGEST_RATIO: Final = 1.05
PROJECTS: Final = 5
OBJECTS: Final = 200
# Under callgrind the process is about fifty times slower.
PATIENCE: Final = 1200.0
HERE: Final = Path(__file__).resolve()


@contextmanager
def under_callgrind() -> Generator[Path]:
    """Operators started inside run under valgrind, with counting off; yields its folder."""
    python = sys.executable
    with tempfile.TemporaryDirectory(prefix="bench-instructions-") as name:
        options = f"--tool=callgrind --instr-atstart=no --callgrind-out-file={name}/out"
        # Operators are started with `-c`, the process of the planes with `-m` (`_measured.py`).
        script = f'case $1 in -c) exec valgrind -q {options} {python} "$@";; esac'
        wrapper = Path(name) / "python"
        wrapper.write_text(f'#!/bin/sh\n{script}\nexec {python} "$@"\n', "utf-8")
        wrapper.chmod(0o700)
        sys.executable = str(wrapper)
        try:
            yield Path(name)
        finally:
            sys.executable = python


def count(pid: int, folder: Path, work: Callable[[], None]) -> int:
    """Instructions of a process while `work` runs."""
    _control("--instr=on", pid)
    work()
    _control("--dump", pid)
    _control("--instr=off", pid)
    counts = [_read_total(path) for path in folder.glob("out*")]
    return max(counts)


def _control(option: str, pid: int) -> None:
    subprocess.run(["callgrind_control", option, str(pid)], check=True, capture_output=True)


def _read_total(path: Path) -> int:
    for line in path.read_text("utf-8").splitlines():
        if line.startswith(("summary:", "totals:")):
            return int(line.split()[1])
    return 0


def count_workloads() -> int:
    """The management operator, from the first Workload until all are on the hub and at rest."""
    from bench import _measured, management

    _replace(_measured, "PATIENCE", PATIENCE)
    _replace(management, "PROJECTS", PROJECTS)
    with (
        under_callgrind() as folder,
        management.on_planes(PROJECTS) as runtime,
        runtime.operating() as operator,
    ):
        operator.until(operator.is_engaged)
        operator.settle()

        def work() -> None:
            runtime.planes.ask("create", prefix="w", each=OBJECTS // PROJECTS)
            operator.until(lambda: runtime.planes.count("copies") == OBJECTS)
            operator.settle()

        return count(operator.pid, folder, work)


def count_instances() -> int:
    """The cell operator, from the first deployment until each has its Instance at rest."""
    from bench import _measured, cell

    _replace(_measured, "PATIENCE", PATIENCE)
    with under_callgrind() as folder, cell.on_planes("off") as runtime:

        def work() -> None:
            runtime.planes.ask("deliver", prefix="w", deployments=OBJECTS, replicas=1)
            runtime.operator.until(lambda: runtime.planes.count("converged") == OBJECTS, 1)
            runtime.operator.settle()

        return count(runtime.operator.pid, folder, work)


def _replace(module: ModuleType, name: str, value: float) -> None:
    """Sets a constant of another benchmark: fewer objects and longer waits for a slow process."""
    setattr(module, name, value)


def count_here() -> dict[str, float]:
    return {
        "instructions per Workload": count_workloads() / OBJECTS / 1e6,
        "instructions per Instance": count_instances() / OBJECTS / 1e6,
    }


def count_there(revision: str) -> dict[str, float]:
    """The same counts of another commit, with the libraries of this environment."""
    root = HERE.parents[1]
    with tempfile.TemporaryDirectory(prefix="bench-tree-") as name:
        git = ("git", "-C", str(root), "worktree")
        subprocess.run([*git, "add", "--detach", name, revision], check=True, capture_output=True)
        try:
            sources = [str(path) for path in sorted(Path(name).glob("packages/*/src"))]
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join([name, *sources])}
            command = [sys.executable, str(HERE)]
            done = subprocess.run(
                command, cwd=name, env=environ, check=True, capture_output=True, text=True
            )
            counted: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            return counted
        finally:
            subprocess.run([*git, "remove", "--force", name], check=True, capture_output=True)


def run() -> list[object]:
    from tools.bench import Row

    here, revision = count_here(), os.environ.get(AGAINST, "")
    if not revision:
        return [Row(measure, value, "M") for measure, value in here.items()]
    there = count_there(revision)
    rows: list[object] = []
    for measure, value in here.items():
        ratio = value / there[measure]
        before = Row(f"{measure}, {revision}", there[measure], "M")
        holds = ratio <= LARGEST_RATIO
        rows += [before, Row(measure, value, "M", revision, ratio, LARGEST_RATIO, holds)]
    return rows


if __name__ == "__main__":
    print(json.dumps(count_here()))
