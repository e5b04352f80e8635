"""Provider and NSO of sim-planes in the cells of a real stack, over HTTP, and metrics of Pods.

Each has its own identity, so that audit logs attribute its writes to it and not to an operator.
Milo and Karmada are processes of the stack.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client
from compute_sim_planes.networking import NetworkServices, NsoOptions
from compute_sim_planes.pod_life import ProviderOptions
from compute_sim_planes.provider import Provider
from compute_sim_planes.time.sources import SystemClock
from e2e.backends.network_delivery import NetworkDelivery
from e2e.backends.pod_metrics.publisher import PodMetricsPublisher
from e2e.backends.pod_metrics.scraper import KubeletScraper
from e2e.harness.planes.identities import Identity
from e2e.harness.stack.stack import RealPlanes
from e2e.world.documents import NETWORK_NAME
from e2e.world.port import NetworkOptions

PROVIDER: Final = Identity("provider", ("system:masters",))
NSO: Final = Identity("nso", ("system:masters",))
RECORDER: Final = Identity("recorder", ("system:masters",))
POD_METRICS: Final = Identity("pod-metrics", ("system:masters",))
IDENTITIES: Final = (PROVIDER, NSO, RECORDER, POD_METRICS)
# NSO's own retry interval for a binding that had no ready context.
NETWORK_RETRY: Final = NsoOptions().binding_retry


class Clients:
    """Clients of planes for tasks on the background loop; closed together."""

    def __init__(self, planes: RealPlanes) -> None:
        self._planes = planes
        authority = planes.plane("root").runtime.pki.authority
        self._trusted = ssl.create_default_context(cadata=authority.decode())
        self._open: list[HttpTransport] = []

    def of(self, plane: str, user: Identity) -> Client:
        return Client(self.transport_of(plane, user), manager=user.user)

    def transport_of(self, plane: str, user: Identity) -> HttpTransport:
        endpoint = self._planes.plane(plane).endpoint(user.user)
        token = endpoint.token.token if endpoint.token else ""
        transport = HttpTransport(endpoint.server, token=token, context=self._trusted)
        self._open.append(transport)
        return transport

    async def close(self) -> None:
        for transport in self._open:
            await transport.close()


class RealExternalControllers:
    """All external controllers in the cells, started and stopped together."""

    def __init__(
        self,
        clients: Clients,
        options: ProviderOptions | None = None,
        network_retry: timedelta = NETWORK_RETRY,
    ) -> None:
        self._clients = clients
        self._network_retry = network_retry
        self._clock = SystemClock()
        self._options = options or ProviderOptions()
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self.providers: dict[str, Provider] = {}
        self.networks: dict[str, NetworkServices] = {}
        self.pod_metrics: dict[str, PodMetricsPublisher] = {}

    def start_provider(self, cell: str) -> None:
        provider = Provider(self._clients.of(cell, PROVIDER), self._clock, self._options)
        self.providers[cell] = provider
        self._start(f"provider of {cell}", provider.run())

    def start_networking(self, cell: str) -> None:
        client = self._clients.of(cell, NSO)
        nso = NetworkServices(client, self._clock, self._nso_options(NetworkOptions()))
        self.networks[cell] = nso
        delivery = NetworkDelivery(client, NETWORK_NAME)
        self._start(f"NSO of {cell}", nso.run(), delivery.run())

    async def stop_networking(self, cell: str) -> None:
        self.networks.pop(cell, None)
        await self._end(f"NSO of {cell}")

    def start_pod_metrics(self, cell: str) -> None:
        """Of a cell that serves the kind; without a simulated provider, containers run there."""
        client = self._clients.of(cell, POD_METRICS)
        has_kubelets = cell not in self.providers
        publisher = PodMetricsPublisher(client, self._clock, has_kubelets=has_kubelets)
        self.pod_metrics[cell] = publisher
        self._start(f"Pod metrics of {cell}", publisher.run())

    def start_scraper(self, cell: str) -> None:
        """The metrics of the node of a cell, which has its name."""
        transport = self._clients.transport_of(cell, POD_METRICS)
        client = self._clients.of(cell, POD_METRICS)
        scraper = KubeletScraper(transport, client, cell)
        self._start(f"Pod metrics of {cell}", scraper.run())

    async def stop_pod_metrics(self) -> None:
        self.pod_metrics.clear()
        for name in tuple(self._tasks):
            if name.startswith("Pod metrics of "):
                await self._end(name)

    def set_networking(self, cell: str, options: NetworkOptions) -> None:
        self.networks[cell].options = self._nso_options(options)

    def _nso_options(self, options: NetworkOptions) -> NsoOptions:
        return NsoOptions(
            context_delay=options.context_delay,
            binding_retry=self._network_retry,
            failure=options.failure,
        )

    def check(self) -> None:
        """Raises the exception that ended a controller, instead of letting a scenario time out."""
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
