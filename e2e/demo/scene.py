"""What the story may do and see, on whatever planes it is told.

A scene is two projects and two cities, requests as a user makes them, and three things only the
world itself can do: grant quota, cut a city off, bring it back. Nothing here knows processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from compute_api_types.wire import JsonObject
from e2e.backends.port import DFW, ORD, Call, Cell, Place, Reply
from e2e.demo.picture import Row
from e2e.kinds import DEPLOYMENT, Kind, kind_of
from e2e.objects import (
    condition_of,
    generation_of,
    name_of,
    number_at,
    objects_at,
    text_at,
)

CELLS: Final = (DFW, ORD)
PLACES: Final = (Place("acme", "default"), Place("beta", "default"))
MERGE: Final = "application/merge-patch+json"
TRIES: Final = 20
RETRY: Final = timedelta(milliseconds=500)
# A plane that has just started, or whose admission is not there yet, asks to come later.
LATER: Final = frozenset({429, 500, 503})


class DemoError(Exception):
    """The story cannot go on; the message says what was not as it must be."""


class Scene(Protocol):
    """One world for a story."""

    @property
    def places(self) -> Sequence[Place]:
        """Two projects: the first runs in both cities, the second meets its quota."""
        ...

    @property
    def pace(self) -> float:
        """How many times longer than on embedded planes things may take."""
        ...

    def check(self) -> None:
        """Raises when something that must run has ended."""
        ...

    async def send(self, plane: str, who: str, call: Call) -> Reply: ...

    async def set_grant(self, project: str, instances: int) -> None: ...

    async def cut_off(self, cell: Cell) -> None: ...

    async def bring_back(self, cell: Cell) -> None: ...


@dataclass(frozen=True, slots=True)
class Hands:
    """A user at one plane."""

    scene: Scene
    plane: str
    namespace: str = ""

    async def create(self, document: JsonObject) -> None:
        kind = kind_of(text_at(document, "apiVersion"), text_at(document, "kind"))
        await self._send("creating", kind, Call("POST", kind.path(self.namespace), document))

    async def patch(self, kind: Kind, name: str, change: JsonObject) -> None:
        call = Call("PATCH", kind.path(self.namespace, name), change, MERGE)
        await self._send("changing", kind, call)

    async def delete(self, kind: Kind, name: str) -> None:
        await self._send("deleting", kind, Call("DELETE", kind.path(self.namespace, name)))

    async def list(self, kind: Kind) -> list[JsonObject]:
        call = Call("GET", kind.path(self.namespace))
        return objects_at(await self._send("listing", kind, call), "items")

    async def _send(self, doing: str, kind: Kind, call: Call) -> JsonObject:
        reply = Reply(0, {})
        for _ in range(TRIES):
            self.scene.check()
            reply = await self.scene.send(self.plane, "tenant", call)
            if reply.status not in LATER:
                break
            await asyncio.sleep(RETRY.total_seconds())
        if reply.status >= 400:
            said = text_at(reply.body, "message") or f"status {reply.status}"
            raise DemoError(f"{doing} {kind.name} on {self.plane}: {said}")
        return reply.body


async def read_rows(hands: Hands, workload: str) -> list[Row]:
    """A row per city of a Workload, as its project shows it."""
    return [
        row_of(one)
        for one in sorted(await hands.list(DEPLOYMENT), key=name_of)
        if text_at(one, "spec", "workloadRef", "name") == workload
    ]


def row_of(deployment: JsonObject) -> Row:
    said = condition_of(deployment, "Ready")
    return Row(
        city=text_at(deployment, "spec", "cityCode"),
        desired=number_at(deployment, "spec", "scaleSettings", "minReplicas"),
        ready=number_at(deployment, "status", "readyReplicas"),
        updated=number_at(deployment, "status", "updatedReplicas"),
        reason=said.reason,
        is_ready=said.status == "True" and is_observed(deployment),
    )


def is_observed(deployment: JsonObject) -> bool:
    """Whether its status is about its present spec."""
    return number_at(deployment, "status", "observedGeneration") == generation_of(deployment)
