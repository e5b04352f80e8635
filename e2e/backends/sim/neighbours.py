"""The neighbours of a simulated world: who else works on the planes, and how he is told to.

Milo is among the planes. Every other neighbour stands on the client port of sim-planes under an
identity of its own, so that the history tells his writes from ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final

from compute_api_types import labels
from compute_sim_planes.api_server.identity import MASTERS, authenticated
from compute_sim_planes.clock import VirtualClock
from compute_sim_planes.karmada.knobs import knobs_of_real_planes
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.networking import NetworkServices, NsoKnobs
from compute_sim_planes.provider import Provider
from e2e.backends.network_delivery import NetworkDelivery
from e2e.backends.port import HUB, Cell, NetworkKnobs
from e2e.backends.sim.planes import SimPlanes
from e2e.documents import NETWORK_NAME

PROVIDER: Final = authenticated("provider", MASTERS)
NSO: Final = authenticated("nso", MASTERS)
KARMADA: Final = authenticated("karmada", MASTERS)
NEIGHBOURS: Final = (PROVIDER.name, NSO.name, KARMADA.name)


class Neighbours:
    """Everybody beside us, started and ended together."""

    def __init__(self, planes: SimPlanes, clock: VirtualClock) -> None:
        self._planes = planes
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self.providers: dict[str, Provider] = {}
        self.networks: dict[str, NetworkServices] = {}
        parts = KarmadaParts(clock, clock.identities, knobs_of_real_planes())
        self.karmada = Karmada(planes.transport(HUB, KARMADA), parts)

    async def join(self, cell: Cell) -> None:
        """Makes a cell a member of the hub, under the label of its city."""
        member = self._planes.transport(cell.name, KARMADA)
        await self.karmada.join(cell.name, member, {labels.TOPOLOGY_CITY_CODE: cell.city})

    def start_cell(self, cell: Cell, *, has_networking: bool) -> None:
        provider = Provider(self._planes.client(cell.name, PROVIDER), self._clock)
        self.providers[cell.name] = provider
        self._start(provider.run(), f"provider of {cell.name}")
        if has_networking:
            self.start_networking(cell.name)

    def start_networking(self, cell: str) -> None:
        client = self._planes.client(cell, NSO)
        nso = NetworkServices(client, self._clock)
        self.networks[cell] = nso
        self._start(nso.run(), f"NSO of {cell}")
        self._start(NetworkDelivery(client, NETWORK_NAME).run(), f"networks of {cell}")

    def set_networking(self, cell: str, knobs: NetworkKnobs) -> None:
        self.networks[cell].knobs = NsoKnobs(
            context_delay=knobs.context_delay, failure=knobs.failure
        )

    async def close(self) -> None:
        await self.karmada.stop()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    def _start(self, work: Coroutine[object, object, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))
