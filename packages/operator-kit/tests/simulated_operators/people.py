"""What a person does in a simulated world: through a client of their own, written down as such."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compute_operator_kit.exchange import Connection, Transport
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.kube import AlreadyExists, Kube, Page, Preconditions, Writer
from compute_operator_kit.kube_http import KubeHttp
from compute_operator_kit.lane import Lane
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.wire import JsonMapping, JsonObject, member_object, member_text
from compute_sim_planes.api_server.identity import User
from compute_sim_planes.clock import VirtualClock
from compute_sim_planes.fault_plans import Fault
from simulated_operators.ground import USER, Ground


def address(plane: str, kind: Kind, name: str, namespace: str) -> ObjectKey:
    """Where an object is; one of a kind without namespaces is in none."""
    return ObjectKey(PlaneName(plane), kind, namespace if kind.namespaced else "", name)


def destination(
    plane: str, document: JsonMapping, kinds: Iterable[Kind], namespace: str
) -> ObjectKey:
    """Where a document goes; its kind must be one of those that are known."""
    metadata = document["metadata"]
    assert isinstance(metadata, Mapping)
    found = next(
        kind
        for kind in kinds
        if kind.kind == document["kind"] and kind.api_version == document["apiVersion"]
    )
    return address(plane, found, str(metadata["name"]), str(metadata.get("namespace", namespace)))


class PeopledGround(Ground):
    """Ground with people on it: they know some kinds, and live in one namespace."""

    def __init__(
        self,
        clock: VirtualClock,
        kinds: Iterable[Kind],
        *,
        namespace: str = "default",
        others: Mapping[str, str] | None = None,
        faults: tuple[Fault, ...] = (),
    ) -> None:
        """`others` are kinds that nobody makes by hand, by their resources."""
        self._kinds = tuple(kinds)
        names = {kind.plural: kind.kind for kind in self._kinds} | dict(others or {})
        super().__init__(clock, lambda _group, _version, plural: names.get(plural, ""), faults)
        self._namespace = namespace
        self._lanes: dict[str, Lane] = {}

    def kube(self, name: str, user: User = USER) -> Kube:
        """A person's way to a plane: no faults, everything written down."""
        transport: Transport = self.recorded(self.way(name, user), name, "user")
        lane = self._lanes.setdefault(name, Lane(PlaneName(name), self.clock))
        connection = Connection(PlaneName(name), Role.PROJECT, transport, lane)
        return KubeHttp(connection, Writer("user", "user"))

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
        found = await self.kube(plane).get(self.key_to(plane, kind, name, namespace))
        return None if isinstance(found, Absent) else found.decode()

    async def get(
        self, plane: str, kind: Kind, name: str, namespace: str | None = None
    ) -> JsonObject:
        found = await self.find(plane, kind, name, namespace)
        assert found is not None, f"no {self.key_to(plane, kind, name, namespace)}"
        return found

    async def exists(self, plane: str, kind: Kind, name: str, namespace: str | None = None) -> bool:
        return await self.find(plane, kind, name, namespace) is not None

    async def is_gone(
        self, plane: str, kind: Kind, name: str, namespace: str | None = None
    ) -> bool:
        return not await self.exists(plane, kind, name, namespace)

    async def listed(self, plane: str, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """Objects of one namespace, or of all."""
        page = await self.kube(plane).list(kind, namespace=namespace)
        assert isinstance(page, Page), page
        return [item.snapshot.decode() for item in page.items]

    async def names(self, plane: str, kind: Kind, namespace: str = "") -> list[str]:
        found = await self.listed(plane, kind, namespace)
        return sorted(member_text(member_object(one, "metadata"), "name") for one in found)

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
        found = await self.kube(plane).get(key)
        assert isinstance(found, Snapshot), f"no {key}"
        await self.kube(plane).delete(key, preconditions=Preconditions(found.metadata.uid))
