"""Two replicas as processes in real time: a leader that was frozen for 20 s writes no more."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
import yaml

from compute_kubeconfig.credentials import FileCredentials
from compute_operator_kit.core.system_clock import SystemClock

TESTS = Path(__file__).parents[1]
BOARD = "/api/v1/namespaces/default/configmaps"
FROZEN = 20  # seconds; the Lease lasts 15, the deadline of its holder is 10


@dataclass(slots=True)
class Replica:
    """A candidate process with its output."""

    name: str
    process: asyncio.subprocess.Process

    async def next_line(self) -> str:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 60)
        return line.decode().strip()

    async def prints(self, expected: str) -> None:
        while (line := await self.next_line()) != expected:
            assert line, f"{self.name} ended before it printed {expected!r}"

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


@pytest_asyncio.fixture
async def kubeconfig(tmp_path: Path) -> AsyncGenerator[Path]:
    """A simulated plane in a process of its own."""
    path = tmp_path / "kubeconfig"
    arguments = ("-m", "compute_sim_planes", "--plane", "home", "--kubeconfig", str(path))
    server = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    assert await asyncio.wait_for(server.stdout.readline(), 60), "the plane did not start"
    yield path
    server.terminate()
    await server.wait()


async def start(kubeconfig: Path, name: str) -> Replica:
    environ = {**os.environ, "PYTHONPATH": str(TESTS)}
    arguments = ("-m", "example_operator.candidate", str(kubeconfig), name)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environ, stdout=asyncio.subprocess.PIPE
    )
    return Replica(name, process)


class Board:
    """The object that leaders write, read from outside."""

    def __init__(self, kubeconfig: Path) -> None:
        self._credentials = FileCredentials.from_kubeconfig(kubeconfig, clock=SystemClock())
        document = yaml.safe_load(kubeconfig.read_text("utf-8"))
        self._server: str = document["clusters"][0]["cluster"]["server"]

    async def create(self) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "board"}}
        async with aiohttp.ClientSession(headers=await self._credentials.headers()) as session:
            made = await session.post(self._server + BOARD, json=body, ssl=self._trusted)
            assert made.status == 201

    async def writers_over(self, seconds: float) -> list[str]:
        """The writers, in the order of the writes."""
        marks: list[str] = []
        until = asyncio.get_running_loop().time() + seconds
        async with aiohttp.ClientSession(headers=await self._credentials.headers()) as session:
            while asyncio.get_running_loop().time() < until:
                answer = await session.get(self._server + BOARD + "/board", ssl=self._trusted)
                written = (await answer.json()).get("data", {})
                mark = f"{written.get('writer')} {written.get('number')}"
                if not marks or marks[-1] != mark:
                    marks.append(mark)
                await asyncio.sleep(0.05)
        return [mark.split()[0] for mark in marks]

    @property
    def _trusted(self) -> ssl.SSLContext:
        return self._credentials.ssl_context


@pytest.mark.fault("E2")
async def test_a_frozen_leader_never_writes_beside_its_successor(kubeconfig: Path) -> None:
    board = Board(kubeconfig)
    await board.create()
    first = await start(kubeconfig, "first")
    await first.prints("leading")
    second = await start(kubeconfig, "second")
    try:
        await first.prints("wrote 5")
        first.send(signal.SIGSTOP)
        await asyncio.sleep(FROZEN)
        await second.prints("leading")
        first.send(signal.SIGCONT)
        writers = await board.writers_over(5)
        assert set(writers) == {"second"}
        await first.prints("lost")
    finally:
        await first.end()
        await second.end()
