"""The planes of a simulated world, by the names that scenarios use.

Milo's root and projects lie behind its one front; home, hub and cells are planes of their own. All
of them tell one history what they commit. Rights are enforced on each by the roles stored there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from compute_sim_planes.api_server.identity import User
from compute_sim_planes.api_server.kinds import GroupResource
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.policies import PolicyForm
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.api_server.state import Amendment
from compute_sim_planes.api_server.transport import Answer, Transport
from compute_sim_planes.api_server.webhook_callers import RegisteredWebhooks
from compute_sim_planes.client import Client
from compute_sim_planes.clock import VirtualClock
from compute_sim_planes.history import History, RecordingTransport
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.knobs import Knobs
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.request_address import KindNames
from e2e.backends.port import ROOT

# What answers in a plane's place, for tests that put somebody odd there; None lets a request pass.
Impostor: TypeAlias = Callable[[str, str, Mapping[str, str]], Answer | None]


def nobody(plane: str, method: str, headers: Mapping[str, str]) -> Answer | None:
    """Every plane answers for itself."""
    del plane, method, headers
    return None


class SimPlanes:
    """Every plane there is; cells and projects come as they are added."""

    def __init__(
        self, clock: VirtualClock, history: History, policies: dict[str, PolicyForm]
    ) -> None:
        self.clock = clock
        self.history = history
        self.webhooks = RegisteredWebhooks()
        self._policies = policies
        parts = MiloParts(clock, clock.identities, webhooks=self.webhooks, policies=dict(policies))
        self.milo = Milo(parts, Knobs())
        self.planes: dict[str, Plane] = {}
        self.impostor: Impostor = nobody
        history.listen(ROOT, self.milo.planes.root.state.store)

    async def add(
        self,
        name: str,
        manifests: Iterable[JsonObject],
        amendments: Mapping[GroupResource, Amendment] | None = None,
    ) -> Plane:
        """A plane of its own, with what an administrator applies before anything runs."""
        parts = PlaneParts(
            clock=self.clock,
            identities=self.clock.identities,
            webhooks=self.webhooks,
            policies=dict(self._policies),
            amendments=amendments or {},
        )
        plane = self.planes[name] = Plane(name, parts)
        self.history.listen(name, plane.state.store)
        await apply_manifests(plane.connect(), manifests)
        return plane

    async def add_project(self, name: str) -> None:
        self.history.listen(name, self.milo.planes.at(name).state.store)
        await self.milo.add_project(name)

    def at(self, name: str) -> Plane:
        found = self.planes.get(name)
        if found is not None:
            return found
        return self.milo.planes.root if name == ROOT else self.milo.planes.at(name)

    def reach(self, name: str, user: User) -> Transport:
        """A plane as a user reaches it, whichever plane bears that name when he asks."""
        return _Way(self, name, user)

    def kind_names(self, name: str) -> KindNames:
        """What a plane calls its kinds, as far as it serves them at that moment."""

        def find(group: str, version: str, resource: str) -> str:
            found = self.at(name).state.catalog.find(group, version, resource)
            return "" if found is None else found.kind

        return find

    def record(self, inner: Transport, name: str, identity: str) -> Transport:
        kinds = self.kind_names(name)
        return RecordingTransport(inner, self.history, plane=name, identity=identity, kinds=kinds)

    def transport(self, name: str, user: User) -> Transport:
        """A neighbour's way to a plane; what it does there is written down under its name."""
        return self.record(self.reach(name, user), name, user.name)

    def client(self, name: str, user: User) -> Client:
        return Client(self.transport(name, user), manager=user.name)

    async def close(self) -> None:
        for plane in self.planes.values():
            await plane.close()
        await self.milo.close()


class _Way:
    """A transport that looks up its plane with every request."""

    def __init__(self, planes: SimPlanes, name: str, user: User) -> None:
        self._planes = planes
        self._name = name
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        instead = self._planes.impostor(self._name, method, headers)
        if instead is not None:
            return instead
        plane = self._planes.planes.get(self._name)
        if plane is not None:
            return await plane.connect(self._user).request(method, target, headers, body)
        place = "" if self._name == ROOT else project_path(self._name)
        milo = self._planes.milo.connect(self._user)
        return await milo.request(method, place + target, headers, body)
