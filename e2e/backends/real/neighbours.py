"""Provider and NSO in the cells of a real stack: those of sim-planes, over HTTP.

Each has an identity of its own, so that audit logs tell their writes from ours. Milo and Karmada
are processes of the stack.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Final

from compute_sim_planes.api_server.sources import SystemClock
from compute_sim_planes.client import Client
from compute_sim_planes.client_http import HttpTransport
from compute_sim_planes.networking import NetworkServices, NsoKnobs
from compute_sim_planes.provider import Provider, ProviderKnobs
from e2e.backends.network_delivery import NetworkDelivery
from e2e.backends.port import NetworkKnobs
from e2e.documents import NETWORK_NAME
from e2e.planes.identities import Identity
from e2e.planes.stack import RealPlanes

PROVIDER: Final = Identity("provider", ("system:masters",))
NSO: Final = Identity("nso", ("system:masters",))
RECORDER: Final = Identity("recorder", ("system:masters",))
IDENTITIES: Final = (PROVIDER, NSO, RECORDER)
# How long NSO itself leaves a binding alone whose context was not ready at its first look.
NETWORK_RETRY: Final = NsoKnobs().binding_retry


class Clients:
    """Clients of planes for whoever works backstage; closed together."""

    def __init__(self, planes: RealPlanes) -> None:
        self._planes = planes
        authority = planes.plane("root").site.pki.authority
        self._trusted = ssl.create_default_context(cadata=authority.decode())
        self._open: list[HttpTransport] = []

    def of(self, plane: str, who: Identity) -> Client:
        endpoint = self._planes.plane(plane).endpoint(who.user)
        token = endpoint.token.token if endpoint.token else ""
        transport = HttpTransport(endpoint.server, token=token, context=self._trusted)
        self._open.append(transport)
        return Client(transport, manager=who.user)

    async def close(self) -> None:
        for transport in self._open:
            await transport.close()


class Neighbours:
    """Those in the cells, started and ended together."""

    def __init__(
        self,
        clients: Clients,
        knobs: ProviderKnobs | None = None,
        network_retry: timedelta = NETWORK_RETRY,
    ) -> None:
        self._clients = clients
        self._network_retry = network_retry
        self._clock = SystemClock()
        self._knobs = knobs or ProviderKnobs()
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self.providers: dict[str, Provider] = {}
        self.networks: dict[str, NetworkServices] = {}

    def start_provider(self, cell: str) -> None:
        provider = Provider(self._clients.of(cell, PROVIDER), self._clock, self._knobs)
        self.providers[cell] = provider
        self._start(f"provider of {cell}", provider.run())

    def start_networking(self, cell: str) -> None:
        client = self._clients.of(cell, NSO)
        nso = NetworkServices(client, self._clock, self._nso_knobs(NetworkKnobs()))
        self.networks[cell] = nso
        delivery = NetworkDelivery(client, NETWORK_NAME)
        self._start(f"NSO of {cell}", nso.run(), delivery.run())

    async def stop_networking(self, cell: str) -> None:
        self.networks.pop(cell, None)
        await self._end(f"NSO of {cell}")

    def set_networking(self, cell: str, knobs: NetworkKnobs) -> None:
        self.networks[cell].knobs = self._nso_knobs(knobs)

    def _nso_knobs(self, knobs: NetworkKnobs) -> NsoKnobs:
        return NsoKnobs(
            context_delay=knobs.context_delay,
            binding_retry=self._network_retry,
            failure=knobs.failure,
        )

    def check(self) -> None:
        """Raises what ended a neighbour: a scenario would wait for it in vain."""
        for tasks in self._tasks.values():
            for task in tasks:
                if task.done():
                    task.result()

    async def close(self) -> None:
        for name in tuple(self._tasks):
            await self._end(name)

    def _start(self, name: str, *work: Coroutine[object, object, None]) -> None:
        self._tasks[name] = [asyncio.create_task(one, name=name) for one in work]

    async def _end(self, name: str) -> None:
        for task in self._tasks.pop(name, []):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
