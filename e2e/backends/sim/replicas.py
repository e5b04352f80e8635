"""The replicas of one simulated operator, restarted when one ends by itself.

It stands for the Deployment and kubelet that restart an operator after a crash or a lost Lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from compute_sim_planes.faults.plans import Fault
from e2e.backends.sim.processes import RESTART_AFTER, Blueprint, Process, ProcessContext

POLL_INTERVAL: Final = timedelta(seconds=1)


class SimReplicas:
    """All replicas of one operator."""

    def __init__(self, context: ProcessContext, replicas: int) -> None:
        self._context = context
        self._replicas = replicas
        self._blueprint: Blueprint | None = None
        self._starts = 0
        self._restarter: asyncio.Task[None] | None = None
        self.alive: list[Process] = []
        self.ended: list[Process] = []

    def __iter__(self) -> Iterator[Process]:
        """Every process since the start of the run."""
        yield from self.ended
        yield from self.alive

    def start(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        for _ in range(self._replicas):
            self._start_one()
        self._restarter = asyncio.create_task(
            self._restart_exited(), name=f"{blueprint.operator}:keeper"
        )

    async def stop(self) -> None:
        await self._stop_restarter()
        leaving, self.alive = self.alive, []
        self.ended += leaving
        for process in leaving:
            await process.stop()

    async def kill(self) -> None:
        await self._stop_restarter()
        leaving, self.alive = self.alive, []
        self.ended += leaving
        for process in leaving:
            await process.kill()

    @property
    def leader(self) -> Process | None:
        return next((one for one in self.alive if one.election.is_leading), None)

    def total(self, name: str, labels: Mapping[str, str]) -> float:
        """A metric over the running replicas; histograms count their observations."""
        wanted = labels.items()
        total = 0.0
        for process in self.alive:
            measures = process.measures
            for series, amount in (*measures.counts.items(), *measures.gauges.items()):
                if series[0] == name and wanted <= dict(series[1]).items():
                    total += amount
            for series, values in measures.values.items():
                if series[0] == name and wanted <= dict(series[1]).items():
                    total += len(values)
        return total

    def _start_one(self) -> None:
        if self._blueprint is None:
            raise LookupError("starting a process: no blueprint was given")
        self._starts += 1
        process = Process(
            self._blueprint, self._context, f"{self._blueprint.operator}-{self._starts}"
        )
        process.life.on_crash = self._note_crash
        self.alive.append(process)
        process.start()

    def _note_crash(self, fault: Fault) -> None:
        """Nothing to do here: `_keep` polls for dead processes, and a dead one sends nothing."""

    async def _restart_exited(self) -> None:
        """Starts a process again that crashed or lost its Lease."""
        while True:
            await self._context.planes.clock.sleep(POLL_INTERVAL)
            for process in [*self.alive]:
                if process.life.is_dead or process.has_lost_its_lease:
                    await self._replace(process)

    async def _replace(self, process: Process) -> None:
        self.alive.remove(process)
        self.ended.append(process)
        await (process.kill() if process.life.is_dead else process.stop())
        await self._context.planes.clock.sleep(RESTART_AFTER)
        self._start_one()

    async def _stop_restarter(self) -> None:
        restarter, self._restarter = self._restarter, None
        if restarter is not None:
            restarter.cancel()
            await asyncio.wait({restarter})
