"""Records every version of every object on real planes with a watch per plane and kind.

Scenarios ask for all versions of an object since they began. A watch event arrives after a read can
see the version; `has_seen` lets a reader wait for the recorder. Records are kept until the session
ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from compute_api_types.wire import JsonObject
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from e2e.world.kinds import (
    BINDING,
    CLAIM,
    DEPLOYMENT,
    INSTANCE,
    NAMESPACE,
    POLICY,
    SUBNET_CLAIM,
    WORKLOAD,
    Kind,
)
from e2e.world.objects import name_of, namespace_of, version_of

ON_HUB: Final = (NAMESPACE, DEPLOYMENT, INSTANCE, POLICY)
ON_CELL: Final = (NAMESPACE, DEPLOYMENT, INSTANCE, BINDING, SUBNET_CLAIM)
ON_SINGLE: Final = (NAMESPACE, WORKLOAD, DEPLOYMENT, INSTANCE)
ON_PROJECT: Final = (NAMESPACE, WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM)


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """One version; `after` is empty for a deletion, `before` for a creation."""

    at: datetime
    plane: str
    kind: Kind
    key: str
    revision: int
    before: bytes
    after: bytes

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]


class Recorder:
    """Versions of all planes, in the order in which they were received."""

    def __init__(self) -> None:
        self._versions: list[RecordedVersion] = []
        self._now: dict[tuple[str, Kind, str], bytes] = {}
        self._revisions: dict[tuple[str, Kind, str], int] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    def watch(self, plane: str, client: Client, kinds: Iterable[Kind]) -> None:
        """Starts watches for kinds of a plane."""
        self._tasks[plane] = [
            asyncio.create_task(
                self._follow(plane, client, kind), name=f"record {plane} {kind.name}"
            )
            for kind in kinds
        ]

    async def forget(self, plane: str) -> None:
        """Stops the watches of a deleted plane; its versions are kept."""
        tasks = self._tasks.pop(plane, [])
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        for plane in tuple(self._tasks):
            await self.forget(plane)

    def is_watched(self, plane: str, kind: Kind) -> bool:
        return any(
            task.get_name() == f"record {plane} {kind.name}" for task in self._tasks.get(plane, ())
        )

    def versions(
        self, plane: str, kind: Kind, namespace: str = "", *, since: datetime
    ) -> list[RecordedVersion]:
        return [
            one
            for one in tuple(self._versions)
            if one.plane == plane
            and one.kind is kind
            and one.at >= since
            and (not namespace or not kind.is_namespaced or one.namespace == namespace)
        ]

    def after(self, count: int) -> list[RecordedVersion]:
        """All versions after the first `count`, for reading on."""
        return self._versions[count:]

    def since(self, moment: datetime) -> Iterator[RecordedVersion]:
        """All versions received from that time on."""
        return (one for one in tuple(self._versions) if one.at >= moment)

    def held_at(self, moment: datetime) -> dict[tuple[str, Kind, str], RecordedVersion]:
        """The objects on all planes at a time."""
        held: dict[tuple[str, Kind, str], RecordedVersion] = {}
        for one in tuple(self._versions):
            if one.at >= moment:
                break
            location = (one.plane, one.kind, one.key)
            if one.after:
                held[location] = one
            else:
                held.pop(location, None)
        return held

    def has_seen(self, plane: str, kind: Kind, document: JsonObject) -> bool:
        """Whether the recorder has this version of the object or a newer one."""
        key, revision = key_of(document), int(version_of(document) or 0)
        return self._revisions.get((plane, kind, key), 0) >= revision

    def has_lost(self, plane: str, kind: Kind, key: str) -> bool:
        """Whether the recorder has no such object now."""
        return (plane, kind, key) not in self._now

    def held_in(self, planes: Container[str], namespaces: Container[str]) -> list[str]:
        """Objects in these namespaces of these planes that must be deleted with their root. Subnet
        claims belong to the network and are excluded.
        """
        return [
            f"{plane} {kind.name} {key}"
            for plane, kind, key in tuple(self._now)
            if plane in planes and kind is not SUBNET_CLAIM and key.rpartition("/")[0] in namespaces
        ]

    async def _follow(self, plane: str, client: Client, kind: Kind) -> None:
        resource = Resource(kind.group, kind.version, kind.plural, kind.name, kind.is_namespaced)
        async with aclosing(list_and_watch(client, resource)) as changes:
            async for seen in changes:
                # Items of a list carry neither kind nor apiVersion.
                whole = {"apiVersion": kind.api_version, "kind": kind.name, **seen.object}
                self._add(plane, kind, whole, is_gone=seen.is_deleted)

    def _add(self, plane: str, kind: Kind, document: JsonObject, *, is_gone: bool) -> None:
        key, revision = key_of(document), int(version_of(document) or 0)
        location = (plane, kind, key)
        before, raw = self._now.get(location, b""), orjson.dumps(document)
        if is_gone:
            self._now.pop(location, None)
        else:
            self._now[location] = raw
        recorded = RecordedVersion(
            datetime.now(UTC),
            plane,
            kind,
            key,
            revision,
            raw if is_gone else before,
            b"" if is_gone else raw,
        )
        self._versions.append(recorded)
        # Last: a reader that waits for a revision must then see its version.
        self._revisions[location] = revision


def key_of(document: JsonObject) -> str:
    namespace, name = namespace_of(document), name_of(document)
    return f"{namespace}/{name}" if namespace else name
