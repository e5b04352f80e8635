"""Simulated API servers by the names that scenarios use, and transports to them.

Milo's root and projects share one server; home, hub and cells have their own. All record their
commits in one history. Each plane enforces RBAC by the roles stored on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from compute_sim_planes.api_server.admission.webhook_clients import RegisteredWebhooks
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.api_server.kinds.kind import GroupResource
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.state import Amendment
from compute_sim_planes.client.rest import Client
from compute_sim_planes.history import History, RecordingTransport
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.milo.options import MiloOptions
from compute_sim_planes.milo.paths import project_path
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.request_address import KindNames
from compute_sim_planes.time.clock import VirtualClock
from e2e.world.port import ROOT

# Answers instead of a plane, for tests of a misbehaving server; None lets the plane answer.
AnswerOverride: TypeAlias = Callable[[str, str, Mapping[str, str]], Response | None]


def no_override(plane: str, method: str, headers: Mapping[str, str]) -> Response | None:
    """The default: every plane answers itself."""
    del plane, method, headers
    return None


class SimPlanes:
    """All planes of a run; cells and projects are added while it lasts."""

    def __init__(self, clock: VirtualClock, history: History) -> None:
        self.clock = clock
        self.history = history
        self.webhooks = RegisteredWebhooks()
        parts = MiloParts(clock, clock.identities, webhooks=self.webhooks)
        self.milo = Milo(parts, MiloOptions())
        self.planes: dict[str, Plane] = {}
        self.answer_override: AnswerOverride = no_override
        history.listen(ROOT, self.milo.planes.root.state.store)

    async def add(
        self,
        name: str,
        manifests: Iterable[JsonObject],
        amendments: Mapping[GroupResource, Amendment] | None = None,
    ) -> Plane:
        """Adds a plane with its own server and applies the manifests to it."""
        parts = PlaneParts(
            clock=self.clock,
            identities=self.clock.identities,
            webhooks=self.webhooks,
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
        plane = self.planes.get(name)
        if plane is not None:
            return plane
        return self.milo.planes.root if name == ROOT else self.milo.planes.at(name)

    def reach(self, name: str, user: User) -> Transport:
        """A transport to a plane; the name is resolved with each request."""
        return _PlaneTransport(self, name, user)

    def kind_names(self, name: str) -> KindNames:
        """The kind of a resource, if the plane serves it at that moment."""

        def find(group: str, version: str, resource: str) -> str:
            resource_type = self.at(name).state.catalog.find(group, version, resource)
            return "" if resource_type is None else resource_type.kind

        return find

    def record(self, inner: Transport, name: str, identity: str) -> Transport:
        kinds = self.kind_names(name)
        return RecordingTransport(inner, self.history, plane=name, identity=identity, kinds=kinds)

    def transport(self, name: str, user: User) -> Transport:
        """A recording transport for an external controller or user, under its own name."""
        return self.record(self.reach(name, user), name, user.name)

    def client(self, name: str, user: User) -> Client:
        return Client(self.transport(name, user), manager=user.name)

    async def close(self) -> None:
        for plane in self.planes.values():
            await plane.close()
        await self.milo.close()


class _PlaneTransport:
    """A transport that looks up its plane with every request."""

    def __init__(self, planes: SimPlanes, name: str, user: User) -> None:
        self._planes = planes
        self._name = name
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        instead = self._planes.answer_override(self._name, method, headers)
        if instead is not None:
            return instead
        plane = self._planes.planes.get(self._name)
        if plane is not None:
            return await plane.connect(self._user).request(method, target, headers, body)
        place = "" if self._name == ROOT else project_path(self._name)
        milo = self._planes.milo.connect(self._user)
        return await milo.request(method, place + target, headers, body)
