"""External controllers of a simulated run: Karmada, NSO and the provider, with their options.

Milo is part of the planes. Each other controller uses the client of sim-planes under its own
identity, so that the history attributes its writes to it and not to an operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final

from compute_api_types import labels
from compute_sim_planes.api_server.authz.identity import MASTERS, authenticated
from compute_sim_planes.autoscaling import Autoscalers
from compute_sim_planes.karmada.options import KarmadaOptions, real_plane_options
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.networking import NetworkServices, NsoOptions
from compute_sim_planes.provider import Provider
from compute_sim_planes.time.clock import VirtualClock
from e2e.backends.network_delivery import NetworkDelivery
from e2e.backends.sim.planes import SimPlanes
from e2e.world.documents import NETWORK_NAME
from e2e.world.port import HUB, Cell, NetworkOptions

PROVIDER: Final = authenticated("provider", MASTERS)
NSO: Final = authenticated("nso", MASTERS)
AUTOSCALER: Final = authenticated("autoscaler", MASTERS)
KARMADA: Final = authenticated("karmada", MASTERS)
EXTERNAL_CONTROLLERS: Final = (PROVIDER.name, NSO.name, KARMADA.name, AUTOSCALER.name)


class SimExternalControllers:
    """All external controllers, started and stopped together."""

    def __init__(self, planes: SimPlanes, clock: VirtualClock) -> None:
        self._planes = planes
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self.providers: dict[str, Provider] = {}
        self.networks: dict[str, NetworkServices] = {}
        self.autoscalers: dict[str, Autoscalers] = {}
        self._options = real_plane_options()
        parts = KarmadaParts(clock, clock.identities, self._options)
        self.karmada = Karmada(planes.transport(HUB, KARMADA), parts)

    async def join(self, cell: Cell) -> None:
        """Makes a cell a member of the hub, with its city label."""
        member = self._planes.transport(cell.name, KARMADA)
        await self.karmada.join(cell.name, member, {labels.TOPOLOGY_CITY_CODE: cell.city})

    def start_cell(self, cell: Cell, *, has_networking: bool) -> None:
        provider = Provider(self._planes.client(cell.name, PROVIDER), self._clock)
        self.providers[cell.name] = provider
        self._start(provider.run(), f"provider of {cell.name}")
        if has_networking:
            self.start_networking(cell.name)

    def start_autoscalers(self, cell: str) -> None:
        autoscalers = Autoscalers(self._planes.client(cell, AUTOSCALER), self._clock)
        self.autoscalers[cell] = autoscalers
        self._start(autoscalers.run(), f"autoscalers of {cell}")

    def start_networking(self, cell: str) -> None:
        client = self._planes.client(cell, NSO)
        nso = NetworkServices(client, self._clock)
        self.networks[cell] = nso
        self._start(nso.run(), f"NSO of {cell}")
        self._start(NetworkDelivery(client, NETWORK_NAME).run(), f"networks of {cell}")

    def calm(self) -> None:
        """Karmada probes its members as often as its own flags have it, not faster."""
        self._options.health_interval = KarmadaOptions().health_interval

    def set_networking(self, cell: str, options: NetworkOptions) -> None:
        self.networks[cell].options = NsoOptions(
            context_delay=options.context_delay, failure=options.failure
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
