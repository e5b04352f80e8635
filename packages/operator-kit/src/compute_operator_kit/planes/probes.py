"""Probes of one plane: requests until it answers again, and permits for writes until its project
resumes.

Without probes a plane with an open circuit breaker gets no request and stays down, and a project
whose resume was not seen stays suspended until a restart. One probe serves all keys of the plane.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.interface import KubeClient
from compute_operator_kit.core.backoff import PLANE_BACKOFF, Backoff
from compute_operator_kit.core.clock import ZERO, Clock, Random
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import Kind
from compute_operator_kit.core.tasks import SupervisedTasks

RESTART_AFTER: Final = timedelta(seconds=5)  # a task that ended by a bug
SUSPENDED_FOR: Final = timedelta(seconds=60)  # suspension.md 2: one probe per project and minute
SUSPENDED_JITTER: Final = 0.2
# After the Project shows its resume: Milo's admission reads a cache that may be behind.
RESUME_BACKOFF: Final = Backoff(timedelta(seconds=0.5), SUSPENDED_FOR)


@dataclass(slots=True)
class PlaneProbes:
    """The probes of one plane; each runs as a task of it."""

    lane: FlowControl
    kube: KubeClient
    tasks: SupervisedTasks
    clock: Clock
    random: Random
    write_round: int = 0  # of the write probes: a newer round ends an older one

    def start(self, kind: Kind, delay: timedelta = ZERO) -> None:
        """Probes a plane with an open breaker, which gets no other request: a probe that crashed is
        started again, or the plane would stay down until the process restarts.
        """

        async def probe() -> None:
            await self.clock.sleep(delay)
            await self._probe(kind)

        self.tasks.start(probe(), "probe", on_crash=lambda: self.start(kind, RESTART_AFTER))

    async def _probe(self, kind: Kind) -> None:
        """Sends one request at a time with growing waits, until the plane answers."""
        attempt = 0
        while self.lane.is_open:
            attempt += 1
            await self.clock.sleep(PLANE_BACKOFF.delay(attempt, self.random.random()))
            # The flow control counts and reports the failure.
            with contextlib.suppress(ReconcileError):
                await self.kube.probe(kind)

    def start_writes(self, on_permit: Callable[[], None], *, is_resuming: bool = False) -> None:
        """Permits a write every minute while the project is suspended; `is_resuming`: at once, and
        then with growing waits.
        """
        self.write_round += 1
        current = self.write_round

        async def permit() -> None:
            attempt = 0
            while True:
                await self.clock.sleep(self._write_delay(attempt, is_resuming=is_resuming))
                if current != self.write_round or not self.lane.suspension.is_suspended:
                    return
                attempt += 1
                self.lane.suspension.permit_probe()
                on_permit()

        def again() -> None:
            self.start_writes(on_permit)

        self.tasks.start(permit(), "write-probe", on_crash=again)

    def _write_delay(self, attempt: int, *, is_resuming: bool) -> timedelta:
        chance = self.random.random()
        if not is_resuming:
            return SUSPENDED_FOR * (1.0 + SUSPENDED_JITTER * (2.0 * chance - 1.0))
        return RESUME_BACKOFF.delay(attempt, chance) if attempt else ZERO
