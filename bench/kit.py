"""What the kit costs, beside kopf on the same events in the same run.

The simulated server, the operator and the sender of events are processes of their own, over TLS;
what is measured is the CPU time and the memory of the operator's process alone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict

import aiohttp
import psutil
import yaml

from tools.bench import Row
from tools.workspace import ROOT

OBJECTS: Final = 500  # many at once, so that events come as a burst and not one by one
UPDATES: Final = 6
PLANES: Final = (1, 100, 500)
OBJECTS_PER_PLANE: Final = 30
TEXT: Final = "x" * 3600  # an object of about 3.9 KB
MIB: Final = 1024 * 1024
IN_FLIGHT: Final = 64
CPU_TARGET: Final = 15.0  # docs/spec/runtime.md
EMPTY_TARGET: Final = 0.25
FILLED_TARGET: Final = 0.5


class Counted(TypedDict):
    """What a worker answers."""

    events: int
    passes: int
    latencies: list[float]


@dataclass(frozen=True, slots=True)
class Server:
    """A running simulated server: its kubeconfig, and how to send to it."""

    kubeconfig: Path
    origin: str
    token: str
    ca: str


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
    def cpu_seconds(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

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


@contextlib.contextmanager
def serving(planes: int) -> Generator[Server]:
    """A simulated server with planes `p0` … in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix="bench-kit-"))
    names = [part for number in range(planes) for part in ("--plane", f"p{number}")]
    path = folder / "kubeconfig"
    command = [sys.executable, "-m", "compute_sim_planes", *names, "--kubeconfig", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101 - asked for above
        if not process.stdout.readline():
            raise RuntimeError("the simulated server did not start; see its output above")
        yield _server(path)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _server(path: Path) -> Server:
    document = yaml.safe_load(path.read_text("utf-8"))
    cluster = document["clusters"][0]["cluster"]
    origin = "/".join(cluster["server"].split("/")[:3])
    token: str = document["users"][0]["user"]["token"]
    return Server(path, origin, token, cluster["certificate-authority-data"])


# --- sending --------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def sending(server: Server) -> AsyncGenerator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=base64.b64decode(server.ca).decode())
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=IN_FLIGHT)
    async with aiohttp.ClientSession(
        server.origin, headers=headers, connector=connector
    ) as session:
        yield session


def _config_map(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": {"sent": str(time.time())}},
        "data": {"text": TEXT},
    }


async def create(server: Server, plane: str, count: int) -> None:
    path = f"/planes/{plane}/api/v1/namespaces/default/configmaps"
    async with sending(server) as session:
        for batch in range(0, count, IN_FLIGHT):
            numbers = range(batch, min(count, batch + IN_FLIGHT))
            await asyncio.gather(*(_post(session, path, f"c{n}") for n in numbers))


async def _post(session: aiohttp.ClientSession, path: str, name: str) -> None:
    async with session.post(path, json=_config_map(name)) as answer:
        answer.raise_for_status()


async def update(server: Server, plane: str, rounds: int) -> float:
    """Patches every object `rounds` times; gives the requests per second the server took."""
    path = f"/planes/{plane}/api/v1/namespaces/default/configmaps"
    began = time.monotonic()
    async with sending(server) as session:
        for _ in range(rounds):
            for batch in range(0, OBJECTS, IN_FLIGHT):
                numbers = range(batch, min(OBJECTS, batch + IN_FLIGHT))
                await asyncio.gather(*(_patch(session, f"{path}/c{n}") for n in numbers))
    return rounds * OBJECTS / (time.monotonic() - began)


async def _patch(session: aiohttp.ClientSession, path: str) -> None:
    body = json.dumps({"metadata": {"annotations": {"sent": str(time.time())}}})
    headers = {"Content-Type": "application/merge-patch+json"}
    async with session.patch(path, data=body, headers=headers) as answer:
        answer.raise_for_status()


# --- measuring ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """What one worker spent on the events."""

    cpu_per_event: float  # µs
    events: int
    events_per_second: float
    requests_per_second: float
    latencies: list[float]


def receive(role: str, server: Server) -> Received:
    with running(role, server) as worker:
        asyncio.run(update(server, "p0", 1))  # connections, caches and code are warm
        _settle(worker)
        before, cpu, began = worker.counted()["events"], worker.cpu_seconds, time.monotonic()
        rate = asyncio.run(update(server, "p0", UPDATES))
        counted = _settle(worker)
        events = counted["events"] - before
        spent = worker.cpu_seconds - cpu
        seconds = time.monotonic() - began
    return Received(
        cpu_per_event=spent / max(1, events) * 1e6,
        events=events,
        events_per_second=events / seconds,
        requests_per_second=rate,
        latencies=counted["latencies"],
    )


def _settle(worker: Worker) -> Counted:
    """Waits until the count stands still; latencies of the whole time are kept."""
    latencies: list[float] = []
    events = -1
    while True:
        found = worker.counted()
        latencies += found["latencies"]
        if found["events"] == events:
            return Counted(events=events, passes=found["passes"], latencies=latencies)
        events = found["events"]
        time.sleep(0.5)


def events_rows() -> list[Row]:
    with serving(1) as server:
        asyncio.run(create(server, "p0", OBJECTS))
        kopf, kit = receive("kopf", server), receive("kit", server)
        leading = receive("kit-passes", server)
    ratio = kopf.cpu_per_event / kit.cpu_per_event
    cuts = statistics.quantiles(leading.latencies, n=100)
    return [
        Row("CPU per event, kopf on.event", kopf.cpu_per_event, "µs"),
        Row(
            "CPU per event, kit, through mapping and queue",
            kit.cpu_per_event,
            "µs",
            "kopf on.event",
            ratio,
            CPU_TARGET,
            holds=ratio >= CPU_TARGET,
        ),
        Row(
            "CPU per event, kit, with a pass for each",
            leading.cpu_per_event,
            "µs",
            "kopf on.event",
            kopf.cpu_per_event / leading.cpu_per_event,
        ),
        Row("events seen by kopf", kopf.events, "events", "kit", kopf.events / kit.events),
        Row("events per second at the kit", kit.events_per_second, "1/s"),
        Row("write requests per second at the simulated server", kit.requests_per_second, "1/s"),
        Row("event to pass, p50", cuts[49] * 1000, "ms"),
        Row("event to pass, p99", cuts[98] * 1000, "ms"),
    ]


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
        time.sleep(1)
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
