"""A Karmada: what its processes do on a hub and its members, until they are stopped.

```python
karmada = Karmada(hub.connect(), KarmadaParts(clock, identities))
async with asyncio.TaskGroup() as tasks:
    running = tasks.create_task(karmada.run())
    await karmada.join("dfw-1", dfw.connect(), {"topology.datum.net/city-code": "DFW"})
    karmada.cut("dfw-1")   # its way to that member only; `heal` undoes it
    running.cancel()       # all its processes are down; `run` starts them anew
```

Everything is done over two transports, the hub's and a member's, so it works beside simulated and
real API servers alike. It remembers nothing between two runs but the ways to its members.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from compute_sim_planes.api_server.sources import Clock, Identities
from compute_sim_planes.api_server.transport import Transport
from compute_sim_planes.client import Client
from compute_sim_planes.client_errors import AlreadyExistsError, ApiError
from compute_sim_planes.fault_links import LinkState
from compute_sim_planes.following import RETRY
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.karmada.binding_status import BindingStatusController
from compute_sim_planes.karmada.binding_works import BindingController
from compute_sim_planes.karmada.clusters import ClusterController
from compute_sim_planes.karmada.detector import Detector
from compute_sim_planes.karmada.execution import ExecutionController
from compute_sim_planes.karmada.health import HealthController
from compute_sim_planes.karmada.hub import Hub, Sources
from compute_sim_planes.karmada.interpreters import Interpreters
from compute_sim_planes.karmada.kinds import (
    CLUSTER_NAMESPACE,
    CLUSTERS,
    NAMESPACES,
    SECRETS,
    SYSTEM_NAMESPACE,
)
from compute_sim_planes.karmada.knobs import Knobs
from compute_sim_planes.karmada.member_status import WorkStatusController
from compute_sim_planes.karmada.members import MANAGER, Members, Reach, Ways
from compute_sim_planes.karmada.namespaces import NamespaceController
from compute_sim_planes.karmada.policies import PolicyController
from compute_sim_planes.karmada.scheduler import Scheduler
from compute_sim_planes.karmada.templates import Templates
from compute_sim_planes.milo.conditions import holds

_POLL: Final = 0.02
_HUB_NAMESPACES: Final = (SYSTEM_NAMESPACE, CLUSTER_NAMESPACE)


@dataclass(frozen=True, slots=True)
class KarmadaParts:
    """What it is given; `reach` only where members are joined by hand, by their addresses."""

    clock: Clock
    identities: Identities
    knobs: Knobs = field(default_factory=Knobs)
    reach: Reach | None = None


class Karmada:
    """See the module's text. Its kinds must be on the hub before it runs."""

    def __init__(self, hub: Transport, parts: KarmadaParts) -> None:
        self.knobs = parts.knobs
        self._sources = Sources(parts.clock, parts.identities, parts.knobs)
        self._client = Client(hub, manager=MANAGER)
        self._joined: dict[str, Transport] = {}
        self._ways = Ways(parts.reach or self._reach_joined, parts.clock, parts.knobs)
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """All its controllers, until this is cancelled."""
        await _insist(self._ensure_namespaces)
        hub = Hub(self._client, self._sources)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hub.events.run(), name="karmada events")
            await hub.sync(tasks)
            templates = Templates(hub, tasks)
            await _insist(templates.discover)
            self._start_controllers(hub, templates, tasks)
            tasks.create_task(templates.run(), name="karmada discovery")

    def _start_controllers(self, hub: Hub, templates: Templates, tasks: asyncio.TaskGroup) -> None:
        interpreters = Interpreters(hub)
        members = Members(hub, self._ways, tasks)
        members.start()
        detector = Detector(hub, templates, tasks)
        PolicyController(hub, templates, detector, tasks).start()
        BindingController(hub, templates, tasks).start()
        Scheduler(hub, tasks).start()
        ExecutionController(hub, templates, members, interpreters, tasks).start()
        WorkStatusController(hub, templates, members, interpreters, tasks).start()
        BindingStatusController(hub, templates, interpreters, tasks).start()
        NamespaceController(hub, tasks).start()
        ClusterController(hub, tasks).start()
        HealthController(hub, members, tasks).start()

    # as a process ------------------------------------------------------------------------------

    def start(self) -> None:
        """Runs in the background, until `stop`."""
        if self._running is None:
            self._running = asyncio.create_task(self.run(), name="karmada")

    async def stop(self) -> None:
        """Ends what `start` began; what a controller died of is raised here."""
        task, self._running = self._running, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # members -----------------------------------------------------------------------------------

    async def join(self, name: str, member: Transport, labels: Mapping[str, str]) -> None:
        """Registers a member as `karmadactl join` does, and waits until it is Ready."""
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
        # The Secret first, and final: see the module `members`.
        await self._client.apply(SECRETS, secret)
        await self._client.create(CLUSTERS, cluster)
        await _until(partial(self._is_ready, name))

    async def unjoin(self, name: str) -> None:
        """Deletes its Cluster, and waits until it is gone."""
        await self._client.delete(CLUSTERS, name)
        await _until(partial(self._is_gone, name))

    async def label(self, name: str, labels: Mapping[str, str | None]) -> None:
        """Sets labels of a Cluster; None takes one off."""
        await self._client.patch(CLUSTERS, name, {"metadata": {"labels": {**labels}}})

    def cut(self, name: str, state: LinkState = LinkState.REFUSED) -> None:
        """Karmada's way to a member is cut; the member itself lives on."""
        self._ways.link(name).cut(state)

    def heal(self, name: str) -> None:
        self._ways.link(name).heal()

    async def _is_ready(self, name: str) -> bool:
        found = await self._client.get(CLUSTERS, name)
        return found is not None and holds(found, "Ready")

    async def _is_gone(self, name: str) -> bool:
        return await self._client.get(CLUSTERS, name) is None

    def _reach_joined(self, endpoint: str, _: str) -> Transport:
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


async def _insist(act: Callable[[], Awaitable[None]]) -> None:
    """Until it succeeds: a hub may come up after its Karmada."""
    while True:
        try:
            return await act()
        except (ApiError, OSError):
            await asyncio.sleep(RETRY.total_seconds())
