"""Cost of the pod provider on a simulated cluster, which runs in its own process (PP-35).

The provider is the shipped command with Lease, metrics and TLS. There is no kubelet: a Pod runs as
soon as it is created, so that the provider's own part is measured. The table is that of
docs/spec/pod-provider.md 8.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from bench._measured import Operator, Planes
from tools.bench import Row

INSTANCES: Final = 500
AT_ONCE: Final = 100
PROBES: Final = 30
PROBE_EVERY: Final = 1.0
REST: Final = 30.0
# The table of docs/spec/pod-provider.md 8.
LIMITS: Final = {
    "p50": 0.3,
    "p99": 1.0,
    "burst": 5.0,
    "life": 60.0,
    "rest": 0.5,
    "memory": 160.0,
    "restart": 10.0,
    "writes": 0.0,
}
# Requests of one start: finalizer, Pod, status.
WRITES_OF_A_START: Final = 3


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-pods-") as name:
        folder = Path(name)
        planes = Planes("bench._pod_planes", name)
        try:
            return _measure(planes, folder)
        finally:
            planes.close()


def _measure(planes: Planes, folder: Path) -> list[Row]:
    provider = _start(folder)
    try:
        provider.until(provider.is_ready)
        time.sleep(2)
        cpu = provider.cpu_seconds
        many = INSTANCES - AT_ONCE - PROBES
        _bring_up(planes, provider, "w", many)
        probed = planes.numbers("probe", prefix="p", times=PROBES, every=PROBE_EVERY)
        _bring_up(planes, provider, "b", AT_ONCE)
        (burst,) = planes.numbers("span", prefix="b")
        _await_rest(planes, provider)
        spent = provider.cpu_seconds - cpu
        rest = _rest(planes, provider)
        rss = provider.rss
    finally:
        provider.close()
    restart, extra, spent_on_end = _restart(planes, folder)
    life = (spent + spent_on_end) / (INSTANCES + 1) * 1000
    many_at_rest = f"{INSTANCES} Instances at rest"
    at_rest = f"requests that write, {INSTANCES} at rest, {REST:.0f} s"
    created = "ungated to Pod created, one per second"
    return [
        _at_most(f"{created}, p50", _cut(probed, 50), "s", "p50"),
        _at_most(f"{created}, p99", _cut(probed, 99), "s", "p99"),
        _at_most(f"{AT_ONCE} ungated at once to the last Pod", burst, "s", "burst"),
        _at_most("CPU per Instance and life", life, "ms", "life"),
        _at_most(f"CPU, {many_at_rest}", rest[0], "% of a core", "rest"),
        _at_most(at_rest, rest[1], "", "writes"),
        _at_most(f"memory, {many_at_rest}", rss, "MiB", "memory"),
        _at_most(
            "restart: start of the process to the Pod of a new Instance", restart, "s", "restart"
        ),
        _at_most("restart: requests that write about settled Instances", extra, "", "writes"),
    ]


def _bring_up(planes: Planes, provider: Operator, prefix: str, count: int) -> None:
    planes.ask("add", prefix=prefix, count=count)
    planes.ask("open", prefix=prefix, count=count)
    provider.until(lambda: planes.count("available") == planes.count("instances"))


def _await_rest(planes: Planes, provider: Operator) -> None:
    """Until all are Available and no request was made for five seconds."""
    provider.until(lambda: planes.count("available") == planes.count("instances"))
    while True:
        before = planes.count("writes")
        time.sleep(5)
        if planes.count("writes") == before:
            return


def _rest(planes: Planes, provider: Operator) -> tuple[float, float]:
    """Per cent of a core, and requests, over a time at rest."""
    cpu, writes = provider.cpu_seconds, planes.count("writes")
    time.sleep(REST)
    share = (provider.cpu_seconds - cpu) / REST * 100
    return share, planes.count("writes") - writes


def _restart(planes: Planes, folder: Path) -> tuple[float, float, float]:
    """Seconds to the Pod of an Instance that came meanwhile, further writes, CPU of all deletes."""
    planes.ask("add", prefix="r", count=1)
    planes.ask("open", prefix="r", count=1)
    writes, pods = planes.count("writes"), planes.count("pods")
    provider = _start(folder)
    try:
        took = provider.until(lambda: planes.count("pods") == pods + 1) - provider.began
        _await_rest(planes, provider)
        extra = planes.count("writes") - writes - WRITES_OF_A_START
        cpu = provider.cpu_seconds
        planes.ask("delete")
        provider.until(lambda: planes.count("instances") == 0)
        spent = provider.cpu_seconds - cpu
    finally:
        provider.close()
    return took, extra, spent


def _start(folder: Path) -> Operator:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KUBECONFIG": str(folder / "cell.yaml"),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": "bench",
    }
    return Operator(
        "compute_pod_provider", {"kind": "PodProvider"}, folder, environ, frozenset({"kubernetes"})
    )


def _cut(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _at_most(measure: str, value: float, unit: str, limit: str) -> Row:
    target = LIMITS[limit]
    ratio = value / target if target else None
    return Row(measure, value, unit, "target", ratio, target, holds=value <= target)
