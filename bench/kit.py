"""Cost of the kit compared with kopf on the same events in the same run.

The simulated server, the operator and the writer are separate processes over TLS; CPU time and
memory of the operator's process are measured. Both operators are set up as in production: kopf logs
as `kopf run` does, the kit reports its metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

import psutil

from bench._kit_load import Server, create, serving, update
from tools.bench import Row
from tools.workspace import ROOT

OBJECTS: Final = 500
UPDATES: Final = 6
PLANES: Final = (1, 100, 500)
OBJECTS_PER_PLANE: Final = 30
IDLE_SECONDS: Final = 32  # a plane is idle once the connections of its lists are closed: 15 to 30 s
MIB: Final = 1024 * 1024
CPU_TARGET: Final = 15.0  # docs/spec/runtime.md
EMPTY_TARGET: Final = 0.25
FILLED_TARGET: Final = 0.5


class Counted(TypedDict):
    """A worker's answer."""

    events: int
    reconciles: int
    cpu: float  # seconds of the process so far
    latencies: list[float]


class Worker:
    """One measured process."""

    def __init__(self, role: str, kubeconfig: Path, planes: int) -> None:
        command = [sys.executable, "-m", "bench._kit_workers", role, str(kubeconfig), str(planes)]
        environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        began = time.monotonic()
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._line() != "ready":
            raise RuntimeError(f"the {role} worker did not start; see its output above")
        self.start_seconds = time.monotonic() - began
        self._seen = psutil.Process(self._process.pid)

    def _line(self) -> str:
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        return self._process.stdout.readline().strip()

    def counted(self) -> Counted:
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        answer: Counted = json.loads(self._line())
        return answer

    @property
    def rss(self) -> float:
        return float(self._seen.memory_info().rss / MIB)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def running(role: str, server: Server, planes: int = 1) -> Generator[Worker]:
    worker = Worker(role, server.kubeconfig, planes)
    try:
        yield worker
    finally:
        worker.close()


@dataclass(frozen=True, slots=True)
class Received:
    """Cost of the events for one worker."""

    cpu_per_event: float  # µs
    events: int
    events_per_second: float
    requests_per_second: float
    latencies: list[float]


def receive(role: str, server: Server) -> Received:
    with running(role, server) as worker:
        asyncio.run(update(server, "p0", objects=OBJECTS, rounds=1))  # warm-up
        before, began = _settle(worker), time.monotonic()
        rate = asyncio.run(update(server, "p0", objects=OBJECTS, rounds=UPDATES))
        after = _settle(worker)
        seconds = time.monotonic() - began
    events = after["events"] - before["events"]
    return Received(
        cpu_per_event=(after["cpu"] - before["cpu"]) / max(1, events) * 1e6,
        events=events,
        events_per_second=events / seconds,
        requests_per_second=rate,
        latencies=after["latencies"],
    )


def _settle(worker: Worker) -> Counted:
    """Waits until the event count stops growing; latencies of the whole time are kept."""
    latencies: list[float] = []
    events = -1
    while True:
        counted = worker.counted()
        latencies += counted["latencies"]
        if counted["events"] == events:
            return {**counted, "latencies": latencies}
        events = counted["events"]
        time.sleep(0.5)


def events_rows() -> list[Row]:
    with serving(1) as server:
        asyncio.run(create(server, "p0", OBJECTS))
        kopf, kit = receive("kopf", server), receive("kit", server)
        silent, leading = receive("kopf-silent", server), receive("kit-reconciles", server)
    cuts = statistics.quantiles(leading.latencies, n=100)
    return [
        Row("CPU per event, kopf on.event", kopf.cpu_per_event, "µs"),
        Row("CPU per event, kopf on.event without its log", silent.cpu_per_event, "µs"),
        _ratio_row("CPU per event, kit, through mapping and queue", kit, kopf, CPU_TARGET),
        _ratio_row("CPU per event, kit, with a pass for each", leading, kopf),
        Row("events seen by kopf", kopf.events, "events", "kit", kopf.events / kit.events),
        Row("events per second at the kit", kit.events_per_second, "1/s"),
        Row("write requests per second at the simulated server", kit.requests_per_second, "1/s"),
        Row("event to pass, p50", cuts[49] * 1000, "ms"),
        Row("event to pass, p99", cuts[98] * 1000, "ms"),
    ]


def _ratio_row(what: str, kit: Received, kopf: Received, target: float | None = None) -> Row:
    ratio = kopf.cpu_per_event / kit.cpu_per_event
    holds = target is None or ratio >= target
    return Row(what, kit.cpu_per_event, "µs", "kopf on.event", ratio, target, holds=holds)


def memory_rows() -> list[Row]:
    most = max(PLANES)
    rows: list[Row] = []
    with serving(most) as server:
        empty = {count: _memory(server, count) for count in PLANES}
        rows += _per_plane("empty", empty, EMPTY_TARGET)
        asyncio.run(_fill(server, most))
        filled = {count: _memory(server, count) for count in PLANES}
        rows += _per_plane(f"{OBJECTS_PER_PLANE} objects", filled, FILLED_TARGET)
    started = empty[most][1] - empty[PLANES[0]][1]
    rows.append(Row("start-up per plane", started / (most - 1) * 1000, "ms"))
    return rows


def _memory(server: Server, planes: int) -> tuple[float, float]:
    with running("kit", server, planes) as worker:
        time.sleep(IDLE_SECONDS)
        return worker.rss, worker.start_seconds


async def _fill(server: Server, planes: int) -> None:
    for number in range(planes):
        await create(server, f"p{number}", OBJECTS_PER_PLANE)


def _per_plane(what: str, measured: dict[int, tuple[float, float]], target: float) -> Iterator[Row]:
    base = measured[PLANES[0]][0]
    yield Row(f"memory with one plane, {what}", base, "MiB")
    for count in PLANES[1:]:
        each = (measured[count][0] - base) / (count - 1)
        yield Row(
            f"memory per plane at {count}, {what}",
            each,
            "MiB",
            target=target,
            holds=each <= target,
        )


def run() -> list[Row]:
    return [*events_rows(), *memory_rows()]
