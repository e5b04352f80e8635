"""The processes of a world by operator: replicas, and whoever starts one again that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from compute_sim_planes.fault_plans import Fault
from e2e.backends.sim.processes import RESTART_AFTER, Blueprint, Process, Surroundings

LOOK_EVERY: Final = timedelta(seconds=1)


class Crew:
    """All replicas of one operator, kept alive as a Deployment keeps its pods."""

    def __init__(self, around: Surroundings, replicas: int) -> None:
        self._around = around
        self._replicas = replicas
        self._blueprint: Blueprint | None = None
        self._starts = 0
        self._keeper: asyncio.Task[None] | None = None
        self.alive: list[Process] = []
        self.ended: list[Process] = []

    def __iter__(self) -> Iterator[Process]:
        """Every process there ever was."""
        yield from self.ended
        yield from self.alive

    def start(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint
        for _ in range(self._replicas):
            self._start_one()
        self._keeper = asyncio.create_task(self._keep(), name=f"{blueprint.operator}:keeper")

    async def stop(self) -> None:
        await self._dismiss()
        leaving, self.alive = self.alive, []
        self.ended += leaving
        for process in leaving:
            await process.stop()

    async def kill(self) -> None:
        await self._dismiss()
        leaving, self.alive = self.alive, []
        self.ended += leaving
        for process in leaving:
            await process.kill()

    @property
    def leader(self) -> Process | None:
        return next((one for one in self.alive if one.election.is_leading), None)

    def total(self, name: str, labels: Mapping[str, str]) -> float:
        """A metric over the replicas that live; histograms count their observations."""
        wanted = labels.items()
        found = 0.0
        for process in self.alive:
            measures = process.measures
            for series, amount in (*measures.counts.items(), *measures.gauges.items()):
                if series[0] == name and wanted <= dict(series[1]).items():
                    found += amount
            for series, values in measures.values.items():
                if series[0] == name and wanted <= dict(series[1]).items():
                    found += len(values)
        return found

    def _start_one(self) -> None:
        if self._blueprint is None:
            raise LookupError("starting a process: nobody said of which operator")
        self._starts += 1
        process = Process(
            self._blueprint, self._around, f"{self._blueprint.operator}-{self._starts}"
        )
        process.life.on_crash = self._note_crash
        self.alive.append(process)
        process.start()

    def _note_crash(self, fault: Fault) -> None:
        """The keeper finds out; the process itself sends nothing any more."""

    async def _keep(self) -> None:
        """Starts a process again that crashed or lost its Lease."""
        while True:
            await self._around.planes.clock.sleep(LOOK_EVERY)
            for process in [*self.alive]:
                if process.life.is_dead or process.has_lost_its_lease:
                    await self._replace(process)

    async def _replace(self, process: Process) -> None:
        self.alive.remove(process)
        self.ended.append(process)
        await (process.kill() if process.life.is_dead else process.stop())
        await self._around.planes.clock.sleep(RESTART_AFTER)
        self._start_one()

    async def _dismiss(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait({keeper})
