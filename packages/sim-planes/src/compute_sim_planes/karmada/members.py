"""Members: how each is reached, and what is known of its objects.

Writes go to the address its Cluster names now, with the token its Secret holds now; what is
followed goes on as it was begun. So once an old token is worth nothing, status stops to come back,
until Karmada starts anew.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from compute_sim_planes.api_server.sources import Clock
from compute_sim_planes.api_server.transport import Answer, Transport
from compute_sim_planes.client import Client, Resource
from compute_sim_planes.fault_links import Link
from compute_sim_planes.faults import FaultyTransport, Injector
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.informer import Informer
from compute_sim_planes.karmada.knobs import Knobs
from compute_sim_planes.karmada.metadata import generation_of, uid_of, version_of
from compute_sim_planes.karmada.retrying import NotYetError
from compute_sim_planes.keyed_work import Key

MANAGER: Final = "karmada-controller-manager"

# The way to a member by the address its Cluster names and the token its Secret holds.
Reach: TypeAlias = Callable[[str, str], Transport]


class Ways:
    """The ways to all members, which a test may cut: they outlast Karmada's processes."""

    def __init__(self, reach: Reach, clock: Clock, knobs: Knobs) -> None:
        self._reach = reach
        self._injector = Injector((), clock)
        self._knobs = knobs
        self._links: dict[str, Link] = {}

    def link(self, cluster: str) -> Link:
        return self._links.setdefault(cluster, Link())

    def open(self, cluster: str, endpoint: str, token: str) -> Transport:
        link = self.link(cluster)
        inner = FaultyTransport(
            self._reach(endpoint, token), self._injector, plane=cluster, link=link
        )
        return _Patient(inner, self._knobs)


class _Patient:
    """Waits for an answer so long and no longer."""

    def __init__(self, inner: Transport, knobs: Knobs) -> None:
        self._inner = inner
        self._knobs = knobs

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        async with asyncio.timeout(self._knobs.member_timeout.total_seconds()):
            return await self._inner.request(method, target, headers, body)


class Member:
    """One joined member, from its join to its end."""

    def __init__(self, hub: Hub, ways: Ways, cluster: JsonObject, tasks: asyncio.TaskGroup) -> None:
        self.name = string_at(cluster, "metadata", "name")
        self.uid = uid_of(cluster)
        self._hub = hub
        self._ways = ways
        self._tasks = tasks
        self._informers: dict[Resource, Informer] = {}
        self._running: list[asyncio.Task[None]] = []
        self._versions: dict[tuple[Resource, Key], str] = {}
        self._followed_by: Client | None = None

    def transport(self) -> Transport:
        """By address and token of this moment."""
        cluster = self._hub.clusters.get(self.name)
        endpoint = string_at(cluster, "spec", "apiEndpoint")
        return self._ways.open(self.name, endpoint, self._token(cluster or {}))

    def client(self) -> Client:
        return Client(self.transport(), manager=MANAGER)

    def follow(self, resource: Resource) -> Informer | None:
        """Begins to follow a kind; None when that is so already."""
        if resource in self._informers:
            return None
        if self._followed_by is None:
            self._followed_by = self.client()
        informer = self._informers[resource] = Informer(self._followed_by, resource)
        name = f"karmada member {self.name} {resource.plural}"
        self._running.append(self._tasks.create_task(informer.run(), name=name))
        return informer

    async def find(self, resource: Resource, key: Key) -> JsonObject | None:
        """As it is known; asked for while the kind is not followed yet."""
        informer = self._informers.get(resource)
        if informer is not None and informer.synced.is_set():
            return informer.get(key.name, key.namespace)
        return await self.client().get(resource, key.name, key.namespace)

    def known(self, resource: Resource, key: Key) -> JsonObject | None:
        informer = self._informers.get(resource)
        return informer.get(key.name, key.namespace) if informer else None

    def record(self, resource: Resource, key: Key, found: JsonObject) -> None:
        """That version of the copy is as wanted, whatever the member made of it."""
        self._versions[resource, key] = _version(found)

    def is_recorded(self, resource: Resource, key: Key, found: JsonObject) -> bool:
        return self._versions.get((resource, key)) == _version(found)

    def forget(self, resource: Resource, key: Key) -> None:
        self._versions.pop((resource, key), None)

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    def _token(self, cluster: JsonObject) -> str:
        reference = object_at(cluster, "spec", "secretRef")
        name, namespace = string_at(reference, "name"), string_at(reference, "namespace")
        secret = self._hub.secrets.get(name, namespace)
        if secret is None:
            raise NotYetError(f"secret {namespace}/{name} of member {self.name!r} is not there")
        try:
            return base64.b64decode(string_at(secret, "data", "token")).decode()
        except (binascii.Error, UnicodeDecodeError) as failure:
            raise NotYetError(f"token of member {self.name!r} is none") from failure


def _version(found: JsonObject) -> str:
    """Kinds without generations are told apart by every write."""
    generation = generation_of(found)
    return f"gen:{generation}" if generation else f"rv:{version_of(found)}"


class Members:
    """All of them, by the names of their Clusters."""

    def __init__(self, hub: Hub, ways: Ways, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._ways = ways
        self._tasks = tasks
        self._members: dict[str, Member] = {}

    def start(self) -> None:
        self._hub.clusters.listen(self._on_cluster)

    def get(self, name: str) -> Member:
        """A member whose Cluster exists; joined anew it is another one."""
        cluster = self._hub.clusters.get(name)
        if cluster is None:
            raise NotYetError(f"cluster {name!r} does not exist")
        member = self._members.get(name)
        if member is None or member.uid != uid_of(cluster):
            self._drop(name)
            member = self._members[name] = Member(self._hub, self._ways, cluster, self._tasks)
        return member

    def _on_cluster(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None and before is not None:
            self._drop(string_at(before, "metadata", "name"))

    def _drop(self, name: str) -> None:
        member = self._members.pop(name, None)
        if member is not None:
            member.close()
