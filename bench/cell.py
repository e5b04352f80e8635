"""Cost of the cell operator on simulated planes, which run in their own process.

The operator is the shipped command with Lease, metrics, TLS, networking and quota on. CPU time and
memory are measured from outside; latencies come from the process of the planes, by the commits of
the operator's writes.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench._measured import Operator, Planes
from compute_sim_planes.json_types import JsonObject
from tools.bench import Row

PROJECTS: Final = 10
DEPLOYMENTS: Final = 200
REPLICAS: Final = 10
AT_ONCE: Final = 500
PROBES: Final = 300
PROBE_EVERY: Final = 0.05
REST: Final = 60.0  # seconds; a Lease is renewed every two of them
# Targets of docs/spec/runtime.md and, for the gate, of quota.md B.
MEMORY_TARGET: Final = 128.0
REST_TARGET: Final = 0.5
RATE_TARGET: Final = 50.0
GATE_TARGET: Final = 250.0


@dataclass(frozen=True, slots=True)
class Site:
    """The planes and the operator on them."""

    planes: Planes
    operator: Operator


@contextlib.contextmanager
def on_planes(networking: str = "auto") -> Generator[Site]:
    with tempfile.TemporaryDirectory(prefix="bench-cell-") as name:
        folder = Path(name)
        planes = Planes("bench._cell_planes", name, str(PROJECTS))
        try:
            operator = Operator(
                "compute_cell_operator",
                {**_settings(folder), "networking": networking},
                folder,
                _environment(folder),
            )
            try:
                operator.until(operator.is_ready)
                operator.settle()
                yield Site(planes, operator)
            finally:
                operator.close()
        finally:
            planes.close()


def _settings(folder: Path) -> JsonObject:
    return {
        "kind": "CellOperator",
        "cell": {"name": "dfw-1"},
        "federation": {"mode": "karmada", "kubeconfigPath": str(folder / "hub.yaml")},
        "quota": {"mode": "enforce", "kubeconfigPath": str(folder / "quota.yaml")},
    }


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(folder / "cell.yaml"),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": "bench",
    }


def rest_rows() -> list[Row]:
    """2,000 running Instances at rest."""
    wanted = DEPLOYMENTS * REPLICAS
    with on_planes() as runtime:
        empty = runtime.operator.rss
        cpu = runtime.operator.cpu_seconds
        runtime.planes.ask("deliver", prefix="w", deployments=DEPLOYMENTS, replicas=REPLICAS)
        runtime.operator.until(lambda: runtime.planes.count("copied") == wanted, 1)
        runtime.operator.until(lambda: runtime.planes.count("converged") == DEPLOYMENTS, 1)
        runtime.operator.settle()
        rolled = runtime.operator.cpu_seconds - cpu
        rss, cpu = runtime.operator.rss, runtime.operator.cpu_seconds
        time.sleep(REST)
        share = (runtime.operator.cpu_seconds - cpu) / REST * 100
    load = f"{wanted} Instances in {DEPLOYMENTS} WDs"
    return [
        Row("memory, nothing delivered", empty, "MiB"),
        _at_most(f"memory, {load}, at rest", rss, "MiB", MEMORY_TARGET),
        _at_most(f"CPU, {load}, at rest", share, "% of a core", REST_TARGET),
        Row("CPU per Instance, in order, until all is settled", rolled / wanted * 1000, "ms"),
    ]


def throughput_rows() -> list[Row]:
    """500 deployments of one replica, delivered at once.

    The target is for a cell with quota on (runtime.md); the row with networking is informative, as
    in the floor of cell.md 2.
    """
    plain, networked = _deliver_at_once("off"), _deliver_at_once("auto")
    title = "Instances from delivery to Ready per CPU second"
    return [
        Row(
            f"{title}, quota on",
            plain.rate,
            "1/s",
            target=RATE_TARGET,
            holds=plain.rate >= RATE_TARGET,
        ),
        Row(f"{title}, quota and networking on", networked.rate, "1/s"),
        Row("Instances from delivery to Ready per second of the wall", plain.wall_rate, "1/s"),
        Row("CPU per Instance until all is settled", plain.whole / AT_ONCE * 1000, "ms"),
        Row(f"grant to gate removed, p99, {AT_ONCE} at once", _cut(plain.gaps, 99) * 1000, "ms"),
    ]


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Cost until all of them are Ready."""

    rate: float  # per CPU second of the operator
    wall_rate: float
    whole: float  # CPU seconds until the operator is at rest
    gaps: list[float]


def _deliver_at_once(networking: str) -> DeliveryResult:
    with on_planes(networking) as runtime:
        cpu, began = runtime.operator.cpu_seconds, time.monotonic()
        runtime.planes.ask("deliver", prefix="w", deployments=AT_ONCE, replicas=1)
        ended = runtime.operator.until(lambda: runtime.planes.count("ready") == AT_ONCE)
        spent = runtime.operator.cpu_seconds - cpu
        runtime.operator.until(lambda: runtime.planes.count("copied") == AT_ONCE)
        runtime.operator.settle()
        whole = runtime.operator.cpu_seconds - cpu
        gaps = runtime.planes.numbers("gaps", prefix="w")
    return DeliveryResult(AT_ONCE / spent, AT_ONCE / (ended - began), whole, gaps)


def gate_rows() -> list[Row]:
    """One deployment at a time: from the commit of the grant to that of the removed gate."""
    with on_planes() as runtime:
        runtime.planes.numbers("probe", prefix="warm", times=20, every=PROBE_EVERY)
        taken = runtime.planes.numbers("probe", prefix="p", times=PROBES, every=PROBE_EVERY)
    return [
        Row("grant to gate removed, p50", _cut(taken, 50) * 1000, "ms"),
        _at_most("grant to gate removed, p99", _cut(taken, 99) * 1000, "ms", GATE_TARGET),
    ]


def _cut(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def _at_most(measure: str, value: float, unit: str, target: float) -> Row:
    return Row(measure, value, unit, target=target, holds=value <= target)


def run() -> list[Row]:
    return [*gate_rows(), *throughput_rows(), *rest_rows()]
