"""Users in a simulated world: they write through their own recorded client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compute_operator_kit.client.flow_control import FlowControl
from compute_operator_kit.client.http_client import HttpKubeClient
from compute_operator_kit.client.interface import (
    AlreadyExists,
    FieldOwner,
    KubeClient,
    Page,
    Preconditions,
)
from compute_operator_kit.client.rest import RestConfig, Transport
from compute_operator_kit.core.json import JsonMapping, JsonObject, member_object, member_text
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_sim_planes.api_server.authz.identity import User
from compute_sim_planes.faults.plans import Fault
from compute_sim_planes.time.clock import VirtualClock
from simulated_operators.ground import USER, Ground


def address(plane: str, kind: Kind, name: str, namespace: str) -> ObjectKey:
    """The key of an object; a kind without namespaces has none."""
    return ObjectKey(PlaneName(plane), kind, namespace if kind.namespaced else "", name)


def destination(
    plane: str, document: JsonMapping, kinds: Iterable[Kind], namespace: str
) -> ObjectKey:
    """The key of a document; its kind must be one of `kinds`."""
    metadata = document["metadata"]
    assert isinstance(metadata, Mapping)
    known = next(
        kind
        for kind in kinds
        if kind.kind == document["kind"] and kind.api_version == document["apiVersion"]
    )
    return address(plane, known, str(metadata["name"]), str(metadata.get("namespace", namespace)))


class PeopledGround(Ground):
    """A world with a user of some kinds in one namespace."""

    def __init__(
        self,
        clock: VirtualClock,
        kinds: Iterable[Kind],
        *,
        namespace: str = "default",
        others: Mapping[str, str] | None = None,
        faults: tuple[Fault, ...] = (),
    ) -> None:
        """`others` are kinds that users do not create, by their resources."""
        self._kinds = tuple(kinds)
        names = {kind.plural: kind.kind for kind in self._kinds} | dict(others or {})
        super().__init__(clock, lambda _group, _version, plural: names.get(plural, ""), faults)
        self._namespace = namespace
        self._lanes: dict[str, FlowControl] = {}

    def kube(self, name: str, user: User = USER) -> KubeClient:
        """The user's client of a plane: recorded, without faults."""
        transport: Transport = self.recorded(self.way(name, user), name, "user")
        lane = self._lanes.setdefault(name, FlowControl(PlaneName(name), self.clock))
        connection = RestConfig(PlaneName(name), Role.PROJECT, transport, lane)
        return HttpKubeClient(connection, FieldOwner("user", "user"))

    def key_to(self, plane: str, kind: Kind, name: str, namespace: str | None) -> ObjectKey:
        return address(plane, kind, name, self._namespace if namespace is None else namespace)

    async def create(self, plane: str, document: JsonMapping) -> JsonObject:
        key = destination(plane, document, self._kinds, self._namespace)
        made = await self.kube(plane).create(key, document)
        assert not isinstance(made, AlreadyExists), f"{key} exists"
        return made.decode()

    async def find(
        self, plane: str, kind: Kind, name: str, namespace: str | None = None
    ) -> JsonObject | None:
        snapshot = await self.kube(plane).get(self.key_to(plane, kind, name, namespace))
        return None if isinstance(snapshot, Absent) else snapshot.decode()

    async def get(
        self, plane: str, kind: Kind, name: str, namespace: str | None = None
    ) -> JsonObject:
        existing = await self.find(plane, kind, name, namespace)
        assert existing is not None, f"no {self.key_to(plane, kind, name, namespace)}"
        return existing

    async def exists(self, plane: str, kind: Kind, name: str, namespace: str | None = None) -> bool:
        return await self.find(plane, kind, name, namespace) is not None

    async def is_gone(
        self, plane: str, kind: Kind, name: str, namespace: str | None = None
    ) -> bool:
        return not await self.exists(plane, kind, name, namespace)

    async def listed(self, plane: str, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """The objects of one namespace, or of all."""
        page = await self.kube(plane).list(kind, namespace=namespace)
        assert isinstance(page, Page), page
        return [item.snapshot.decode() for item in page.items]

    async def names(self, plane: str, kind: Kind, namespace: str = "") -> list[str]:
        objects = await self.listed(plane, kind, namespace)
        return sorted(member_text(member_object(one, "metadata"), "name") for one in objects)

    async def patch(
        self, plane: str, kind: Kind, name: str, body: JsonMapping, namespace: str | None = None
    ) -> JsonObject:
        """A merge patch."""
        key = self.key_to(plane, kind, name, namespace)
        answer = await self.kube(plane).patch_merge(key, body)
        assert isinstance(answer, Snapshot), f"no {key}"
        return answer.decode()

    async def set_status(
        self, plane: str, kind: Kind, name: str, status: JsonMapping, namespace: str | None = None
    ) -> None:
        key = self.key_to(plane, kind, name, namespace)
        answer = await self.kube(plane).patch_merge(key, {"status": status}, subresource="status")
        assert isinstance(answer, Snapshot), f"no {key}"

    async def delete(self, plane: str, kind: Kind, name: str, namespace: str | None = None) -> None:
        key = self.key_to(plane, kind, name, namespace)
        snapshot = await self.kube(plane).get(key)
        assert isinstance(snapshot, Snapshot), f"no {key}"
        await self.kube(plane).delete(key, preconditions=Preconditions(snapshot.metadata.uid))
