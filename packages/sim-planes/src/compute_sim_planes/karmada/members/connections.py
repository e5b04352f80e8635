"""Connections to members, and informers of the objects in them.

Writes use the current address of the Cluster and the current token of its Secret; informers keep
the credentials with which they were started. So after an old token expires, status stops arriving
until Karmada restarts.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from compute_sim_planes.api_server.http.transport import Response, Transport
from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.client.workqueue import NamespacedName
from compute_sim_planes.faults.injection import FaultyTransport, Injector
from compute_sim_planes.faults.links import Link
from compute_sim_planes.json_types import JsonObject, object_at, string_at
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.metadata import generation_of, uid_of, version_of
from compute_sim_planes.karmada.options import KarmadaOptions
from compute_sim_planes.karmada.retry_queue import RequeueError
from compute_sim_planes.time.sources import Clock

MANAGER: Final = "karmada-controller-manager"

# The transport to a member, from the address in its Cluster and the token in its Secret.
TransportFactory: TypeAlias = Callable[[str, str], Transport]


class MemberTransports:
    """Transports to all members, which a test may cut. They survive a restart of Karmada."""

    def __init__(
        self, transport_factory: TransportFactory, clock: Clock, options: KarmadaOptions
    ) -> None:
        self._transport_factory = transport_factory
        self._injector = Injector((), clock)
        self._options = options
        self._links: dict[str, Link] = {}

    def link(self, cluster: str) -> Link:
        return self._links.setdefault(cluster, Link())

    def open(self, cluster: str, endpoint: str, token: str) -> Transport:
        link = self.link(cluster)
        inner = FaultyTransport(
            self._transport_factory(endpoint, token), self._injector, plane=cluster, link=link
        )
        return _TimeoutTransport(inner, self._options)


class _TimeoutTransport:
    """A transport with a response timeout."""

    def __init__(self, inner: Transport, options: KarmadaOptions) -> None:
        self._inner = inner
        self._options = options

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        async with asyncio.timeout(self._options.member_timeout.total_seconds()):
            return await self._inner.request(method, target, headers, body)


class Member:
    """One joined member, from its join to its removal."""

    def __init__(
        self, hub: Hub, transports: MemberTransports, cluster: JsonObject, tasks: asyncio.TaskGroup
    ) -> None:
        self.name = string_at(cluster, "metadata", "name")
        self.uid = uid_of(cluster)
        self._hub = hub
        self._transports = transports
        self._tasks = tasks
        self._informers: dict[Resource, Informer] = {}
        self._running: list[asyncio.Task[None]] = []
        self._versions: dict[tuple[Resource, NamespacedName], str] = {}
        self._informer_client: Client | None = None

    def transport(self) -> Transport:
        """A transport with the current address and token."""
        cluster = self._hub.clusters.get(self.name)
        endpoint = string_at(cluster, "spec", "apiEndpoint")
        return self._transports.open(self.name, endpoint, self._token(cluster or {}))

    def client(self) -> Client:
        return Client(self.transport(), manager=MANAGER)

    def start_informer(self, resource: Resource) -> Informer | None:
        """Start the informer of a kind; None when it is already running."""
        if resource in self._informers:
            return None
        if self._informer_client is None:
            self._informer_client = self.client()
        informer = self._informers[resource] = Informer(self._informer_client, resource)
        name = f"karmada member {self.name} {resource.plural}"
        self._running.append(self._tasks.create_task(informer.run(), name=name))
        return informer

    async def find(self, resource: Resource, key: NamespacedName) -> JsonObject | None:
        """An object from the informer; a live read until the informer is synced."""
        informer = self._informers.get(resource)
        if informer is not None and informer.synced.is_set():
            return informer.get(key.name, key.namespace)
        return await self.client().get(resource, key.name, key.namespace)

    def cached(self, resource: Resource, key: NamespacedName) -> JsonObject | None:
        informer = self._informers.get(resource)
        return informer.get(key.name, key.namespace) if informer else None

    def record(self, resource: Resource, key: NamespacedName, existing: JsonObject) -> None:
        """Record this version of a copy as the desired one, with the member's defaults."""
        self._versions[resource, key] = _version(existing)

    def is_recorded(self, resource: Resource, key: NamespacedName, existing: JsonObject) -> bool:
        return self._versions.get((resource, key)) == _version(existing)

    def forget(self, resource: Resource, key: NamespacedName) -> None:
        self._versions.pop((resource, key), None)

    def close(self) -> None:
        for task in self._running:
            task.cancel()

    def _token(self, cluster: JsonObject) -> str:
        reference = object_at(cluster, "spec", "secretRef")
        name, namespace = string_at(reference, "name"), string_at(reference, "namespace")
        secret = self._hub.secrets.get(name, namespace)
        if secret is None:
            raise RequeueError(f"secret {namespace}/{name} of member {self.name!r} is not there")
        try:
            return base64.b64decode(string_at(secret, "data", "token")).decode()
        except (binascii.Error, UnicodeDecodeError) as failure:
            raise RequeueError(
                f"token of member {self.name!r} is not base64 of UTF-8 text"
            ) from failure


def _version(existing: JsonObject) -> str:
    """The generation or, for kinds without one, the resourceVersion."""
    generation = generation_of(existing)
    return f"gen:{generation}" if generation else f"rv:{version_of(existing)}"


class Members:
    """All members by the names of their Clusters."""

    def __init__(self, hub: Hub, transports: MemberTransports, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._transports = transports
        self._tasks = tasks
        self._members: dict[str, Member] = {}

    def start(self) -> None:
        self._hub.clusters.listen(self._on_cluster)

    def get(self, name: str) -> Member:
        """The member of an existing Cluster; a Cluster that joined again is a new member."""
        cluster = self._hub.clusters.get(name)
        if cluster is None:
            raise RequeueError(f"cluster {name!r} does not exist")
        member = self._members.get(name)
        if member is None or member.uid != uid_of(cluster):
            self._drop(name)
            member = self._members[name] = Member(self._hub, self._transports, cluster, self._tasks)
        return member

    def _on_cluster(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if after is None and before is not None:
            self._drop(string_at(before, "metadata", "name"))

    def _drop(self, name: str) -> None:
        member = self._members.pop(name, None)
        if member is not None:
            member.close()
