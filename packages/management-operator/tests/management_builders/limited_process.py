"""The operator as a process that may take no more memory than its shipped container.

Without the limit a test of an attack on memory would take the machine's own, and prove nothing
about the container.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from compute_operator_kit.config.settings import API_VERSION
from compute_operator_kit.core.json import JsonObject
from management_builders.served_planes import ServedPlanes

SHIPPED_LIMIT: Final = 256 * 1024 * 1024  # operations.md 4, row "resources"
START_WITHIN: Final = 40.0  # a busy machine, and a process that imports kopf


@dataclass(slots=True)
class LimitedProcess:
    """A running operator, and the file its log goes to."""

    process: subprocess.Popen[bytes]
    planes: ServedPlanes
    health: int
    log: Path

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def peak(self) -> int:
        """The most memory it has had resident, in bytes."""
        return self._status("VmHWM")

    async def is_ready(self) -> bool:
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.health}/readyz") as answer,
            ):
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def limit(self) -> None:
        """Lets it grow by what the shipped limit leaves it beside what it has now.

        `RLIMIT_AS` counts addresses, of which libraries reserve more than they use.
        """
        left = SHIPPED_LIMIT - self._status("VmRSS")
        most = self._status("VmSize") + left
        resource.prlimit(self.process.pid, resource.RLIMIT_AS, (most, most))

    def _status(self, field: str) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(
            int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(field)
        )


async def eventually(is_so: Callable[[], Awaitable[bool]], every: float = 0.1) -> None:
    """Asks again and again; seldom, where asking takes the planes' own time."""
    async with asyncio.timeout(START_WITHIN):
        while not await is_so():  # noqa: ASYNC110 - what is waited for is another process
            await asyncio.sleep(every)


@asynccontextmanager
async def limited_process(folder: Path, planes: ServedPlanes) -> AsyncGenerator[LimitedProcess]:
    """Ready and leading, and limited from then on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    settings: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": "ManagementOperator",
        "discovery": {"mode": "milo", "discoveryKubeconfigPath": str(folder / "root.yaml")},
        "federation": {"mode": "karmada", "kubeconfigPath": str(folder / "hub.yaml")},
        "metricsServer": {"bindAddress": "0"},
        "health": {"bindAddress": f"127.0.0.1:{port}"},
    }
    file, log = folder / "operator.json", folder / "operator.log"
    file.write_text(json.dumps(settings))
    environ = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(folder / "root.yaml"),
        "POD_NAMESPACE": "compute-system",
        "POD_NAME": "pod-1",
    }
    command = [sys.executable, "-m", "compute_management_operator", "--server-config", str(file)]
    with log.open("wb") as opened:
        process = subprocess.Popen(command, env=environ, stderr=opened)  # noqa: ASYNC220
    started = LimitedProcess(process, planes, port, log)
    try:
        await eventually(started.is_ready)
        started.limit()
        yield started
    finally:
        peak = started.peak if started.is_alive else 0
        process.kill()
        process.wait()
        sys.stderr.write(f"peak {peak} bytes\n{log.read_text()[-20_000:]}")
