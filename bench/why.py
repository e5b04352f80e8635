"""Time and requests of `kubectl compute why` on embedded planes with 50 cities (WY-19).

The command is the installed program in its own process, from its start to its end, so that imports
and the kubeconfig count. All planes are in one other process and share its CPU; on real planes they
would not. Requests are counted in a run inside of this process.
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import yaml

from bench._measured import Planes
from bench._why_planes import PROJECT, SHOP
from compute_kubectl.__main__ import run as run_command
from compute_kubectl.commands.session import Ports
from compute_kubectl.commands.terminal import Terminal
from compute_kubectl.read.requests import SentRequest
from tools.bench import Row

CITIES: Final = 50
WORKLOADS: Final = 20
TIMES: Final = 7
LIMIT: Final = 2.0
# kubectl-compute.md 4: of a project alone, and of all planes.
PROJECT_REQUESTS: Final = 40
REQUESTS: Final = 12
REQUESTS_PER_CELL: Final = 6
ALL_REQUESTS: Final = 10
START_LIMIT: Final = 0.5
ALONE: Final = ("--planes", "project")
_WAITING: Final = 1
_READY: Final = 0


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-why-") as name:
        folder = Path(name)
        planes = Planes("bench._why_planes", name, str(CITIES), str(WORKLOADS))
        try:
            return _measure(_kubeconfig(folder))
        finally:
            planes.close()


def _kubeconfig(folder: Path) -> Path:
    """One file with a context for each plane, the project as current."""
    parts = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in folder.glob("*.yaml")}
    merged = dict(parts[PROJECT])
    for key in ("clusters", "users", "contexts"):
        merged[key] = [entry for name in sorted(parts) for entry in parts[name][key]]
    path = folder / "all"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(merged), "utf-8")
    return path


def _measure(kubeconfig: Path) -> list[Row]:
    cells = REQUESTS + REQUESTS_PER_CELL * CITIES
    everything = f"{CITIES} cities × {WORKLOADS} Workloads"
    rows: list[Row] = []
    for title, words, code, most in (
        ("why, all planes, one city waits", ("why", "app-00"), _WAITING, cells),
        ("why, all planes, ready", ("why", "app-01"), _READY, cells),
        ("why, project alone", ("why", "app-00", *ALONE), _WAITING, PROJECT_REQUESTS),
        ("why --all, project alone", ("why", "--all", *ALONE), _WAITING, ALL_REQUESTS),
    ):
        took = [_time(kubeconfig, words, code) for _ in range(TIMES)]
        rows += [
            _at_most(f"{title}, {everything}, median", statistics.median(took), "s", LIMIT),
            _at_most(f"{title}: requests", _count(kubeconfig, words), "", most),
        ]
    rows.append(_at_most("--help, more than `python -c pass`", _start(), "s", START_LIMIT))
    return rows


def _time(kubeconfig: Path, words: tuple[str, ...], code: int) -> float:
    command = [sys.executable, "-m", "compute_kubectl", *words, "-n", SHOP, "--timeout", "60s"]
    began = time.monotonic()
    done = _call(command, kubeconfig)
    took = time.monotonic() - began
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}: {done.stdout}{done.stderr}")
    return took


def _call(command: list[str], kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def _count(kubeconfig: Path, words: tuple[str, ...]) -> int:
    sent: list[SentRequest] = []
    out = io.StringIO()
    given = [*words, "-n", SHOP, "--timeout", "60s"]
    environ = {"KUBECONFIG": str(kubeconfig)}
    run_command(given, environ, terminal=Terminal(out, out), ports=Ports(sent=sent.append))
    return len(sent)


def _start() -> float:
    """Seconds that the help takes beyond the interpreter's own start; medians of both."""

    def median(*words: str) -> float:
        took: list[float] = []
        for _ in range(TIMES):
            began = time.monotonic()
            subprocess.run([sys.executable, *words], capture_output=True, check=True)
            took.append(time.monotonic() - began)
        return statistics.median(took)

    return median("-m", "compute_kubectl", "--help") - median("-c", "pass")


def _at_most(measure: str, value: float, unit: str, target: float) -> Row:
    return Row(measure, value, unit, "target", value / target, target, holds=value <= target)
