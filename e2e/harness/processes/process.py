"""One process of the stack: started, checked, stopped, frozen, restarted.

It does not depend on an event loop: a stack may be started in one loop and used in others. The
error of an unexpected exit contains the last lines of the log.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeAlias

from e2e.harness.access.waiting import until
from e2e.harness.errors import ProcessDiedError
from e2e.harness.processes.die_with_parent import with_parent_death_signal
from e2e.harness.processes.run_folder import RunFolder

LAST_LINES: Final = 12
LAST_BYTES: Final = 16_384
POLL: Final = timedelta(milliseconds=20)
# An API server with open watches takes longer to stop, and its state is in etcd by then.
GRACE: Final = timedelta(seconds=2)
ADDRESS_IN_USE: Final = "address already in use"
Probe: TypeAlias = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line; `name` is unique in the stack and names the log."""

    name: str
    program: Path
    arguments: tuple[str, ...]
    # In addition to the environment of all processes of the stack.
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


class ManagedProcess:
    """A process that must run from `start` to `stop`."""

    def __init__(self, command: Command, run: RunFolder, ready: Probe) -> None:
        self.command = command
        self._run = run
        self._ready = ready
        self._running: subprocess.Popen[bytes] | None = None
        self._starts_in_log = 0
        # Set before the first signal, because other tasks check the process while it ends.
        self._is_to_end = False

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def log(self) -> Path:
        return self._run.log_of(self.name)

    @property
    def pid(self) -> int | None:
        """The process id; None while it is meant to be down."""
        return self._running.pid if self._running else None

    def start(self) -> None:
        self._is_to_end = False
        with self.log.open("ab") as log:
            self._starts_in_log = log.tell()
            self._running = subprocess.Popen(
                with_parent_death_signal([str(self.command.program), *self.command.arguments]),
                cwd=self._run.path,
                env=self._run.environment(os.environ.get("PATH", os.defpath))
                | {**self.command.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C in a terminal must reach this process only, which ends the others in order.
                process_group=0,
            )

    async def up(self) -> None:
        """Starts it and waits until it serves."""
        self.start()
        await until(f"{self.name} to be ready", self._ready, check=self.check)

    async def restart(self) -> None:
        """Restarts it on the same ports and data."""
        await self.stop()
        await self.up()

    def rss(self) -> int:
        """Resident bytes; 0 if it does not run."""
        try:
            statm = Path(f"/proc/{self.pid}/statm").read_text("ascii")
        except OSError:
            return 0
        return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def check(self) -> None:
        """Raises if the process ended unexpectedly."""
        code = self._running.poll() if self._running else None
        if code is None or self._is_to_end:
            return
        ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        words = self.last_words()
        if ADDRESS_IN_USE in words:
            raise ProcessDiedError(
                self.name, "its port was taken by another process", remedy="run again"
            )
        remedy = f"its last lines follow, the whole log is {self.log}"
        raise ProcessDiedError(self.name, ended, remedy=remedy, detail=words)

    def last_words(self) -> str:
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            # Without the lines of earlier starts.
            log.seek(max(self._starts_in_log, size - LAST_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LAST_LINES:])

    async def crash(self) -> None:
        """Kills it with SIGKILL; from now on it is meant to be down."""
        self._is_to_end = True
        self._signal(signal.SIGKILL)
        await self._gone()

    def freeze(self) -> None:
        """Stops it with SIGSTOP: ports and connections stay, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    async def stop(self, grace: timedelta = GRACE) -> None:
        """Sends SIGTERM, waits, then kills it. `check` accepts the exit."""
        self._is_to_end = True
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a frozen process could not end
        if not await self._ended(grace):
            self._signal(signal.SIGKILL)
        await self._gone()

    async def _gone(self) -> None:
        await self._ended(within=None)
        self._running = None

    async def _ended(self, within: timedelta | None) -> bool:
        deadline = time.monotonic() + (within.total_seconds() if within else math.inf)
        while self._running and self._running.poll() is None:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL.total_seconds())
        return True

    def _signal(self, number: signal.Signals) -> None:
        # After poll has reaped the child, its pid may be reused: only a running one is signalled.
        if self._running and self._running.poll() is None:
            os.killpg(self._running.pid, number)
