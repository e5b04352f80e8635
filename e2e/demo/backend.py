"""The protocol of planes that the demo's story runs on, embedded or real.

It offers two projects and two cities, requests of a user, and three actions: grant quota, cut a
city off, connect it again. Nothing here knows processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from compute_api_types.wire import JsonObject
from e2e.demo.picture import CityRow
from e2e.world.kinds import DEPLOYMENT, Kind, kind_of
from e2e.world.objects import (
    condition_of,
    generation_of,
    name_of,
    number_at,
    objects_at,
    text_at,
)
from e2e.world.port import DFW, ORD, Cell, PlaneRequest, PlaneResponse, ProjectNamespace

CELLS: Final = (DFW, ORD)
PROJECT_NAMESPACES: Final = (
    ProjectNamespace("acme", "default"),
    ProjectNamespace("beta", "default"),
)
MERGE: Final = "application/merge-patch+json"
TRIES: Final = 20
RETRY: Final = timedelta(milliseconds=500)
# A plane that has just started, or has no admission webhook yet, answers with these.
LATER: Final = frozenset({429, 500, 503})


class DemoError(Exception):
    """A step of the story failed; the message names what was expected."""


class DemoBackend(Protocol):
    """Planes and operators for one story."""

    @property
    def project_namespaces(self) -> Sequence[ProjectNamespace]:
        """Two projects: the first runs in both cities, the second reaches its quota."""
        ...

    @property
    def pace(self) -> float:
        """How many times longer than on embedded planes a step may take."""
        ...

    def check(self) -> None:
        """Raises if a process has ended."""
        ...

    async def send(self, plane: str, user: str, call: PlaneRequest) -> PlaneResponse: ...

    async def set_grant(self, project: str, instances: int) -> None: ...

    async def cut_off(self, cell: Cell) -> None: ...

    async def bring_back(self, cell: Cell) -> None: ...


@dataclass(frozen=True, slots=True)
class UserClient:
    """A user's requests to one plane."""

    backend: DemoBackend
    plane: str
    namespace: str = ""

    async def create(self, document: JsonObject) -> None:
        kind = kind_of(text_at(document, "apiVersion"), text_at(document, "kind"))
        await self._send(
            "creating", kind, PlaneRequest("POST", kind.path(self.namespace), document)
        )

    async def patch(self, kind: Kind, name: str, change: JsonObject) -> None:
        call = PlaneRequest("PATCH", kind.path(self.namespace, name), change, MERGE)
        await self._send("changing", kind, call)

    async def delete(self, kind: Kind, name: str) -> None:
        await self._send("deleting", kind, PlaneRequest("DELETE", kind.path(self.namespace, name)))

    async def list(self, kind: Kind) -> list[JsonObject]:
        call = PlaneRequest("GET", kind.path(self.namespace))
        return objects_at(await self._send("listing", kind, call), "items")

    async def _send(self, doing: str, kind: Kind, call: PlaneRequest) -> JsonObject:
        reply = PlaneResponse(0, {})
        for _ in range(TRIES):
            self.backend.check()
            reply = await self.backend.send(self.plane, "tenant", call)
            if reply.status not in LATER:
                break
            await asyncio.sleep(RETRY.total_seconds())
        if reply.status >= 400:
            message = text_at(reply.body, "message") or f"status {reply.status}"
            raise DemoError(f"{doing} {kind.name} on {self.plane}: {message}")
        return reply.body


async def read_rows(client: UserClient, workload: str) -> list[CityRow]:
    """A row per city of a Workload, as its project shows it."""
    return [
        row_of(one)
        for one in sorted(await client.list(DEPLOYMENT), key=name_of)
        if text_at(one, "spec", "workloadRef", "name") == workload
    ]


def row_of(deployment: JsonObject) -> CityRow:
    condition = condition_of(deployment, "Ready")
    return CityRow(
        city=text_at(deployment, "spec", "cityCode"),
        desired=number_at(deployment, "spec", "scaleSettings", "minReplicas"),
        ready=number_at(deployment, "status", "readyReplicas"),
        updated=number_at(deployment, "status", "updatedReplicas"),
        reason=condition.reason,
        is_ready=condition.status == "True" and is_observed(deployment),
    )


def is_observed(deployment: JsonObject) -> bool:
    """Whether the status is of the current generation."""
    return number_at(deployment, "status", "observedGeneration") == generation_of(deployment)
