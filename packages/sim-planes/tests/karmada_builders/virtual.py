"""A hub and two members in this process, under virtual time, with Karmada beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeVar

from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.api_server.seeding import apply_manifests
from compute_sim_planes.client import Client
from compute_sim_planes.clock import VirtualClock, run
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.karmada.admission import karmada_amendments
from compute_sim_planes.karmada.kinds import CLUSTERS, CUSTOMIZATIONS, NAMESPACES, POLICIES
from compute_sim_planes.karmada.knobs import Knobs
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.milo.conditions import holds
from karmada_builders.documents import (
    CITY,
    GADGETS,
    a_customization,
    a_free_definition,
    a_gadget,
    a_namespace,
    a_policy,
)
from karmada_builders.hands import size_of
from karmada_builders.stack import MEMBERS

_T = TypeVar("_T")
Story: TypeAlias = "Callable[[World], Coroutine[object, object, None]]"
START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
NS = "ns-1"
CITIES = ("DFW", "ORD")
_POLL = 0.01
_PATIENCE = timedelta(seconds=60)


class World:
    """Planes by name, a client of each, and Karmada."""

    def __init__(self, clock: VirtualClock, knobs: Knobs, *, has_admission: bool) -> None:
        self.clock = clock
        self.planes: dict[str, Plane] = {}
        for name in ("hub", *MEMBERS):
            parts = PlaneParts(clock=clock, identities=clock)
            if name == "hub" and has_admission:
                parts.amendments = karmada_amendments(clock)
            self.planes[name] = Plane(name, parts)
        self.clients = {
            name: Client(plane.connect(), manager="test") for name, plane in self.planes.items()
        }
        self.hub = self.clients["hub"]
        self.karmada = Karmada(self.planes["hub"].connect(), KarmadaParts(clock, clock, knobs))

    async def open(self, definitions: Iterable[JsonObject]) -> None:
        for name, plane in self.planes.items():
            own = load_crds("karmada") if name == "hub" else []
            await apply_manifests(plane.connect(), [*own, *definitions])
        self.karmada.start()
        for member, city in zip(MEMBERS, CITIES, strict=True):
            await self.karmada.join(member, self.planes[member].connect(), {CITY: city})
        await self.hub.create(NAMESPACES, a_namespace(NS))
        await self.settle()

    async def close(self) -> None:
        await self.karmada.stop()
        for plane in self.planes.values():
            await plane.close()

    async def settle(self, seconds: float = 2) -> None:
        await asyncio.sleep(seconds)

    async def copy(self, member: str = "dfw-1", name: str = "web") -> JsonObject | None:
        return await self.clients[member].get(GADGETS, name, NS)

    async def eventually(
        self,
        look: Callable[[], Awaitable[_T]],
        is_so: Callable[[_T], bool],
        within: timedelta = _PATIENCE,
    ) -> timedelta:
        """How long it took until a look showed what it should."""
        began = self.clock.now()
        while True:
            found = await look()
            if is_so(found):
                return self.clock.now() - began
            assert self.clock.now() - began < within, f"after {within} still: {found!r}"
            await asyncio.sleep(_POLL)

    def versions(self) -> dict[str, int]:
        """How often each plane was written to."""
        return {name: plane.state.store.revision for name, plane in self.planes.items()}


@asynccontextmanager
async def open_world(
    clock: VirtualClock,
    knobs: Knobs | None = None,
    *,
    has_admission: bool = True,
    definitions: Iterable[JsonObject] = (a_free_definition(GADGETS),),
) -> AsyncGenerator[World]:
    world = World(clock, knobs or Knobs(), has_admission=has_admission)
    try:
        await world.open(definitions)
        yield world
    finally:
        await world.close()


# a story ------------------------------------------------------------------------------------------


def play(story: Story, knobs: Knobs | None = None, *, has_admission: bool = True) -> None:
    """Tells a story in a world of its own."""

    async def main(clock: VirtualClock) -> None:
        async with open_world(clock, knobs, has_admission=has_admission) as world:
            await story(world)

    run(main, seed=1, start=START)


async def deliver(world: World) -> None:
    """A policy and an object, until its copy is in the member."""
    await world.hub.create(POLICIES, a_policy(NS))
    await world.hub.create(GADGETS, a_gadget(NS))
    await world.settle()
    assert await world.copy() is not None


async def interpret(world: World, **scripts: str) -> None:
    await world.hub.create(CUSTOMIZATIONS, a_customization("c", scripts))


def is_ready(world: World, member: str = "dfw-1") -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = await world.hub.get(CLUSTERS, member)
        return found is not None and holds(found, "Ready")

    return look


def has_size(size: int) -> Callable[[JsonObject | None], bool]:
    return lambda found: found is not None and size_of(found) == size
