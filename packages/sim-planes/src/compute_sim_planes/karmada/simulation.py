"""A simulated Karmada: its controllers on a hub and its members.

```python
karmada = Karmada(hub.connect(), KarmadaParts(clock, identities))
async with asyncio.TaskGroup() as tasks:
    running = tasks.create_task(karmada.run())
    await karmada.join("dfw-1", dfw.connect(), {"topology.datum.net/city-code": "DFW"})
    karmada.cut("dfw-1")   # Karmada's connection to that member only; `heal` restores it
    running.cancel()       # stops all controllers; `run` starts them again
```

It only uses transports to the hub and to members, so it works with simulated and real API servers.
Between two runs it keeps only the transports to its members.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from compute_sim_planes.api_server.http.transport import Transport
from compute_sim_planes.client.errors import AlreadyExistsError, ApiError
from compute_sim_planes.client.reflector import RETRY
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.faults.links import LinkState
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.karmada.bindings.dependencies import DependenciesDistributor
from compute_sim_planes.karmada.bindings.scheduler import Scheduler
from compute_sim_planes.karmada.bindings.status_controller import BindingStatusController
from compute_sim_planes.karmada.bindings.work_controller import BindingController
from compute_sim_planes.karmada.hub import Hub, HubSources
from compute_sim_planes.karmada.interpreter.registry import Interpreters
from compute_sim_planes.karmada.kinds import (
    CLUSTER_NAMESPACE,
    CLUSTERS,
    NAMESPACES,
    SECRETS,
    SYSTEM_NAMESPACE,
)
from compute_sim_planes.karmada.members.clusters import ClusterController
from compute_sim_planes.karmada.members.connections import (
    MANAGER,
    Members,
    MemberTransports,
    TransportFactory,
)
from compute_sim_planes.karmada.members.execution import ExecutionController
from compute_sim_planes.karmada.members.health import HealthController
from compute_sim_planes.karmada.members.namespaces import NamespaceSyncController
from compute_sim_planes.karmada.members.work_status import WorkStatusController
from compute_sim_planes.karmada.options import KarmadaOptions
from compute_sim_planes.karmada.policies.controller import PolicyController
from compute_sim_planes.karmada.policies.detector import Detector
from compute_sim_planes.karmada.templates import Templates
from compute_sim_planes.time.sources import Clock, Identities

_POLL: Final = 0.02
_HUB_NAMESPACES: Final = (SYSTEM_NAMESPACE, CLUSTER_NAMESPACE)


@dataclass(frozen=True, slots=True)
class KarmadaParts:
    """The dependencies of a Karmada; `transport_factory` is for members joined by address."""

    clock: Clock
    identities: Identities
    options: KarmadaOptions = field(default_factory=KarmadaOptions)
    transport_factory: TransportFactory | None = None


class Karmada:
    """A Karmada (see the module docstring). Its CRDs must be on the hub before it runs."""

    def __init__(self, hub: Transport, parts: KarmadaParts) -> None:
        self.options = parts.options
        self._sources = HubSources(parts.clock, parts.identities, parts.options)
        self._client = Client(hub, manager=MANAGER)
        self._joined: dict[str, Transport] = {}
        self._transports = MemberTransports(
            parts.transport_factory or self._joined_transport, parts.clock, parts.options
        )
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run all controllers until cancelled."""
        await _retry_until_done(self._ensure_namespaces)
        hub = Hub(self._client, self._sources)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hub.events.run(), name="karmada events")
            await hub.sync(tasks)
            templates = Templates(hub, tasks)
            await _retry_until_done(templates.discover)
            self._start_controllers(hub, templates, tasks)
            tasks.create_task(templates.run(), name="karmada discovery")

    def _start_controllers(self, hub: Hub, templates: Templates, tasks: asyncio.TaskGroup) -> None:
        interpreters = Interpreters(hub)
        members = Members(hub, self._transports, tasks)
        members.start()
        detector = Detector(hub, templates, tasks)
        PolicyController(hub, templates, detector, tasks).start()
        BindingController(hub, templates, tasks).start()
        Scheduler(hub, tasks).start()
        DependenciesDistributor(hub, templates, interpreters, tasks).start()
        ExecutionController(hub, templates, members, interpreters, tasks).start()
        WorkStatusController(hub, templates, members, interpreters, tasks).start()
        BindingStatusController(hub, templates, interpreters, tasks).start()
        NamespaceSyncController(hub, tasks).start()
        ClusterController(hub, tasks).start()
        HealthController(hub, members, tasks).start()

    # as a process ------------------------------------------------------------------------------

    def start(self) -> None:
        """Run in the background until `stop`."""
        if self._running is None:
            self._running = asyncio.create_task(self.run(), name="karmada")

    async def stop(self) -> None:
        """End what `start` began; the error of a failed controller is raised here."""
        task, self._running = self._running, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # members -----------------------------------------------------------------------------------

    async def join(self, name: str, member: Transport, labels: Mapping[str, str]) -> None:
        """Register a member as `karmadactl join` does, and wait until it is Ready."""
        await self._ensure_namespaces()
        endpoint = f"https://{name}.member.internal"
        self._joined[endpoint] = member
        reference: JsonObject = {"namespace": CLUSTER_NAMESPACE, "name": name}
        token = base64.b64encode(name.encode()).decode()
        secret: JsonObject = {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": {**reference},
            "data": {"token": token},
        }
        cluster: JsonObject = {
            "apiVersion": CLUSTERS.api_version,
            "kind": CLUSTERS.kind,
            "metadata": {"name": name, "labels": {**labels}},
            "spec": {
                "syncMode": "Push",
                "id": name,
                "apiEndpoint": endpoint,
                "secretRef": {**reference},
            },
        }
        # The Secret first: connections read it as soon as the Cluster exists.
        await self._client.apply(SECRETS, secret)
        await self._client.create(CLUSTERS, cluster)
        await _until(partial(self._is_ready, name))

    async def unjoin(self, name: str) -> None:
        """Delete a Cluster, and wait until it is gone."""
        await self._client.delete(CLUSTERS, name)
        await _until(partial(self._is_deleted, name))

    async def label(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Set labels of a Cluster; None removes one."""
        await self._client.patch(CLUSTERS, name, {"metadata": {"labels": {**labels}}})

    def cut(self, name: str, state: LinkState = LinkState.REFUSED) -> None:
        """Cut Karmada's connection to a member; the member itself keeps running."""
        self._transports.link(name).cut(state)

    def heal(self, name: str) -> None:
        self._transports.link(name).heal()

    async def _is_ready(self, name: str) -> bool:
        existing = await self._client.get(CLUSTERS, name)
        return existing is not None and is_condition_true(existing, "Ready")

    async def _is_deleted(self, name: str) -> bool:
        return await self._client.get(CLUSTERS, name) is None

    def _joined_transport(self, endpoint: str, _: str) -> Transport:
        member = self._joined.get(endpoint)
        if member is None:
            raise ConnectionRefusedError(f"nobody listens at {endpoint!r}")
        return member

    async def _ensure_namespaces(self) -> None:
        for name in _HUB_NAMESPACES:
            with suppress(AlreadyExistsError):
                await self._client.create(
                    NAMESPACES,
                    {
                        "apiVersion": NAMESPACES.api_version,
                        "kind": NAMESPACES.kind,
                        "metadata": {"name": name},
                    },
                )


async def _until(is_so: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await is_so():
            return
        await asyncio.sleep(_POLL)


async def _retry_until_done(act: Callable[[], Awaitable[None]]) -> None:
    """Retry until it succeeds: a hub may start after its Karmada."""
    while True:
        try:
            return await act()
        except (ApiError, OSError):
            await asyncio.sleep(RETRY.total_seconds())
