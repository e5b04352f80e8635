"""A hub and two members in this process in virtual time, with Karmada."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeVar

from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.client.rest import Client
from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.crds import load_crds
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.karmada.kinds import CLUSTERS, CUSTOMIZATIONS, NAMESPACES, POLICIES
from compute_sim_planes.karmada.options import KarmadaOptions
from compute_sim_planes.karmada.policies.admission import karmada_amendments
from compute_sim_planes.karmada.simulation import Karmada, KarmadaParts
from compute_sim_planes.time.clock import VirtualClock, run
from karmada_builders.documents import (
    CITY,
    GADGETS,
    a_customization,
    a_free_definition,
    a_gadget,
    a_namespace,
    a_policy,
)
from karmada_builders.fixture import size_of
from karmada_builders.stack import MEMBERS

_T = TypeVar("_T")
Scenario: TypeAlias = "Callable[[World], Coroutine[object, object, None]]"
START = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
NS = "ns-1"
CITIES = ("DFW", "ORD")
_POLL = 0.01
_PATIENCE = timedelta(seconds=60)


class World:
    """Planes by name, a client of each, and Karmada."""

    def __init__(
        self, clock: VirtualClock, options: KarmadaOptions, *, has_admission: bool
    ) -> None:
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
        self.karmada = Karmada(self.planes["hub"].connect(), KarmadaParts(clock, clock, options))

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
        read: Callable[[], Awaitable[_T]],
        predicate: Callable[[_T], bool],
        within: timedelta = _PATIENCE,
    ) -> timedelta:
        """How long it took until a read returned the expected value."""
        began = self.clock.now()
        while True:
            value = await read()
            if predicate(value):
                return self.clock.now() - began
            assert self.clock.now() - began < within, f"after {within} still: {value!r}"
            await asyncio.sleep(_POLL)

    def versions(self) -> dict[str, int]:
        """The resourceVersion of each plane."""
        return {name: plane.state.store.revision for name, plane in self.planes.items()}


@asynccontextmanager
async def open_world(
    clock: VirtualClock,
    options: KarmadaOptions | None = None,
    *,
    has_admission: bool = True,
    definitions: Iterable[JsonObject] = (a_free_definition(GADGETS),),
) -> AsyncGenerator[World]:
    world = World(clock, options or KarmadaOptions(), has_admission=has_admission)
    try:
        await world.open(definitions)
        yield world
    finally:
        await world.close()


# running a test ----------------------------------------------------------------------------------


def run_scenario(
    scenario: Scenario, options: KarmadaOptions | None = None, *, has_admission: bool = True
) -> None:
    """Run a coroutine with a new `World` in virtual time."""

    async def main(clock: VirtualClock) -> None:
        async with open_world(clock, options, has_admission=has_admission) as world:
            await scenario(world)

    run(main, seed=1, start=START)


async def deliver(world: World) -> None:
    """Create a policy and an object, and wait for the copy in the member."""
    await world.hub.create(POLICIES, a_policy(NS))
    await world.hub.create(GADGETS, a_gadget(NS))
    await world.settle()
    assert await world.copy() is not None


async def interpret(world: World, **scripts: str) -> None:
    await world.hub.create(CUSTOMIZATIONS, a_customization("c", scripts))


def is_ready(world: World, member: str = "dfw-1") -> Callable[[], Awaitable[bool]]:
    async def read() -> bool:
        existing = await world.hub.get(CLUSTERS, member)
        return existing is not None and is_condition_true(existing, "Ready")

    return read


def has_size(size: int) -> Callable[[JsonObject | None], bool]:
    return lambda existing: existing is not None and size_of(existing) == size
