"""The processes of an operator's benchmark: the simulated planes, and the operator.

The operator is the shipped command in its own process, so that its CPU time and memory are read
from outside. The planes take one JSON command per line of standard input and print one JSON answer.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import aiohttp
import psutil

from compute_sim_planes.json_types import JsonObject, JsonValue
from tools.workspace import ROOT

MIB: Final = 1024 * 1024
PATIENCE: Final = 300.0
LOCAL: Final = "127.0.0.1"
# The operator's libraries import these if installed. They are in the environment of the benchmarks
# and not in the images: 16 MB that no user pays.
NOT_IN_IMAGES: Final = ("kubernetes", "pykube", "psutil", "rich", "pygments")
AS_SHIPPED: Final = """
import runpy, sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
del sys.argv[:2]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Planes:
    """The process of the planes, `python -m module` with these arguments."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._line() != "ready":
            raise RuntimeError("the planes did not start; see their output above")

    def ask(self, verb: str, **arguments: JsonValue) -> JsonValue:
        self.begin(verb, **arguments)
        return self.answer()

    def begin(self, verb: str, **arguments: JsonValue) -> None:
        """Sends a command without waiting; its answer must be read before the next command."""
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        self._process.stdin.write(json.dumps({"do": verb, "with": arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> JsonValue:
        parsed: JsonValue = json.loads(self._line())
        return parsed

    def count(self, what: str) -> int:
        counted = self.ask("count")
        number = counted[what] if isinstance(counted, dict) else None
        assert isinstance(number, int)  # noqa: S101 - our own process answers
        return number

    def numbers(self, verb: str, **arguments: JsonValue) -> list[float]:
        answer = self.ask(verb, **arguments)
        assert isinstance(answer, list)  # noqa: S101 - our own process answers
        return [one for one in answer if isinstance(one, float)]

    def _line(self) -> str:
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        end(self._process)


class Operator:
    """An operator's process with its own ports for probes and metrics."""

    def __init__(
        self,
        module: str,
        settings: JsonObject,
        folder: Path,
        environ: Mapping[str, str],
        ships: frozenset[str] = frozenset(),
    ) -> None:
        """`ships` are the libraries of `NOT_IN_IMAGES` that this operator's image has."""
        self.health, self.metrics = free_port(), free_port()
        file = folder / "operator.json"
        file.write_text(json.dumps({**self._serving(), **settings}), "utf-8")
        self.began = time.monotonic()
        hidden = ",".join(name for name in NOT_IN_IMAGES if name not in ships)
        with (folder / "operator.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", AS_SHIPPED, hidden, module, "--server-config", str(file)],
                cwd=ROOT,
                env=dict(environ),
                stderr=log,
            )
        self._seen = psutil.Process(self._process.pid)

    def _serving(self) -> JsonObject:
        return {
            "apiVersion": "apiserver.config.datumapis.com/v1alpha1",
            "metricsServer": {"bindAddress": f"{LOCAL}:{self.metrics}", "secureServing": False},
            "health": {"bindAddress": f"{LOCAL}:{self.health}"},
            # A busy machine must not cost the Lease.
            "leaderElection": {"leaseDuration": "60s", "renewDeadline": "50s"},
        }

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cpu_seconds(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    @property
    def rss(self) -> float:
        """In MiB."""
        return float(self._seen.memory_info().rss / MIB)

    def read_metrics(self) -> str:
        return asyncio.run(_read(f"http://{LOCAL}:{self.metrics}/metrics"))

    def is_ready(self) -> bool:
        return asyncio.run(_read(f"http://{LOCAL}:{self.health}/readyz")) != ""

    def is_idle(self) -> bool:
        busy = ("workqueue_depth", "controller_runtime_active_workers")
        text = self.read_metrics()
        return bool(text) and not any(sum_of(text, name) for name in busy)

    def until(self, is_so: Callable[[], bool], pause: float = 0.2) -> float:
        """Waits until `is_so` holds while the process runs; returns the time."""
        began = time.monotonic()
        while not is_so():
            if self._process.poll() is not None:
                raise RuntimeError(f"the operator ended with {self._process.returncode}")
            if time.monotonic() - began > PATIENCE:
                raise RuntimeError(f"waited {PATIENCE:.0f} s in vain")
            time.sleep(pause)
        return time.monotonic()

    def settle(self) -> None:
        """Waits until the queue is empty and no status is deferred."""
        for _ in range(3):  # a status may be deferred for 200 ms without being in a queue
            self.until(self.is_idle)
            time.sleep(0.5)

    def close(self) -> None:
        """Sends SIGTERM, so that the Lease is released."""
        self._process.send_signal(signal.SIGTERM)
        end(self._process)


async def _read(url: str) -> str:
    """The text at a URL; empty while it does not answer with 200."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return await answer.text() if answer.ok else ""
    except aiohttp.ClientError:
        return ""


def sum_of(text: str, metric: str) -> float:
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith((f"{metric}{{", f"{metric} "))
    )


def end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])
