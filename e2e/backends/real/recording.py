"""What real planes held, version by version: a watch per plane and kind, from the session's start.

A scenario asks for every version of an object since it began. Watches tell them a moment after the
planes have them; `has_seen` lets whoever read something newer wait for the record to catch up.
Nothing is forgotten before the session ends.
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
from compute_sim_planes.client import Client, Resource
from compute_sim_planes.following import follow
from e2e.kinds import (
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
from e2e.objects import name_of, namespace_of, version_of

ON_HUB: Final = (NAMESPACE, DEPLOYMENT, INSTANCE, POLICY)
ON_CELL: Final = (NAMESPACE, DEPLOYMENT, INSTANCE, BINDING, SUBNET_CLAIM)
ON_SINGLE: Final = (NAMESPACE, WORKLOAD, DEPLOYMENT, INSTANCE)
ON_PROJECT: Final = (NAMESPACE, WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One version; `after` is empty where the object is gone, `before` where it was not there."""

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
    """Records of all planes, in the order in which they were heard."""

    def __init__(self) -> None:
        self._versions: list[Recorded] = []
        self._now: dict[tuple[str, Kind, str], bytes] = {}
        self._revisions: dict[tuple[str, Kind, str], int] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}

    def watch(self, plane: str, client: Client, kinds: Iterable[Kind]) -> None:
        """Begins to record kinds of a plane."""
        self._tasks[plane] = [
            asyncio.create_task(
                self._follow(plane, client, kind), name=f"record {plane} {kind.name}"
            )
            for kind in kinds
        ]

    async def forget(self, plane: str) -> None:
        """The plane is gone; what it held stays in the record."""
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
    ) -> list[Recorded]:
        return [
            one
            for one in tuple(self._versions)
            if one.plane == plane
            and one.kind is kind
            and one.at >= since
            and (not namespace or not kind.is_namespaced or one.namespace == namespace)
        ]

    def after(self, count: int) -> list[Recorded]:
        """Everything but the first so many; for whoever reads on where he stopped."""
        return self._versions[count:]

    def since(self, moment: datetime) -> Iterator[Recorded]:
        """Everything that changed from then on, and before it what there was already."""
        return (one for one in tuple(self._versions) if one.at >= moment)

    def held_at(self, moment: datetime) -> dict[tuple[str, Kind, str], Recorded]:
        """What planes held at a moment."""
        held: dict[tuple[str, Kind, str], Recorded] = {}
        for one in tuple(self._versions):
            if one.at >= moment:
                break
            spot = (one.plane, one.kind, one.key)
            if one.after:
                held[spot] = one
            else:
                held.pop(spot, None)
        return held

    def has_seen(self, plane: str, kind: Kind, found: JsonObject) -> bool:
        """Whether the record is at least as new as this object."""
        key, revision = key_of(found), int(version_of(found) or 0)
        return self._revisions.get((plane, kind, key), 0) >= revision

    def has_lost(self, plane: str, kind: Kind, key: str) -> bool:
        """Whether the record knows that there is no such object."""
        return (plane, kind, key) not in self._now

    def held_in(self, planes: Container[str], namespaces: Container[str]) -> list[str]:
        """What is in these namespaces of these planes now and must not outlive its root; claims of
        subnets belong to the network, and nobody of ours may delete them.
        """
        return [
            f"{plane} {kind.name} {key}"
            for plane, kind, key in tuple(self._now)
            if plane in planes and kind is not SUBNET_CLAIM and key.rpartition("/")[0] in namespaces
        ]

    async def _follow(self, plane: str, client: Client, kind: Kind) -> None:
        resource = Resource(kind.group, kind.version, kind.plural, kind.name, kind.is_namespaced)
        async with aclosing(follow(client, resource)) as changes:
            async for seen in changes:
                # Elements of a list say neither kind nor version.
                whole = {"apiVersion": kind.api_version, "kind": kind.name, **seen.object}
                self._add(plane, kind, whole, is_gone=seen.is_gone)

    def _add(self, plane: str, kind: Kind, found: JsonObject, *, is_gone: bool) -> None:
        key, revision = key_of(found), int(version_of(found) or 0)
        spot = (plane, kind, key)
        before, raw = self._now.get(spot, b""), orjson.dumps(found)
        if is_gone:
            self._now.pop(spot, None)
        else:
            self._now[spot] = raw
        recorded = Recorded(
            datetime.now(UTC),
            plane,
            kind,
            key,
            revision,
            raw if is_gone else before,
            b"" if is_gone else raw,
        )
        self._versions.append(recorded)
        # Last: whoever waits for a revision then finds its version.
        self._revisions[spot] = revision


def key_of(found: JsonObject) -> str:
    namespace, name = namespace_of(found), name_of(found)
    return f"{namespace}/{name}" if namespace else name
