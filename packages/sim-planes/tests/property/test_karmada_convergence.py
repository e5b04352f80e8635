"""Convergence of Karmada: after any actions, each member has a copy of every object of its city.

The copies equal the hub's objects, and there are no others. The expected state is derived from the
actions, not from what Karmada wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeAlias

from hypothesis import example, given, settings
from hypothesis import strategies as st
from karmada_builders.documents import CITY, GADGETS, a_gadget, a_policy
from karmada_builders.fixture import size_of
from karmada_builders.stack import MEMBERS
from karmada_builders.virtual import CITIES, NS, World, open_world

from compute_sim_planes.json_types import JsonObject, JsonValue, string_at
from compute_sim_planes.karmada.kinds import BINDINGS, POLICIES, WORKS
from compute_sim_planes.karmada.options import real_plane_options
from compute_sim_planes.time.clock import VirtualClock, run

START: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
NAMES: Final = ("a", "b")
SETTLE: Final = 120.0  # ten times every threshold and the longest delay
PAUSES: Final = (0.0, 0.005, 0.02, 3.0)


@dataclass(frozen=True, slots=True)
class Make:
    name: str
    city: str


@dataclass(frozen=True, slots=True)
class Edit:
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Remove:
    name: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Edits or deletes a copy in a member."""

    member: str
    name: str
    is_deletion: bool


@dataclass(frozen=True, slots=True)
class Move:
    member: str
    city: str | None


@dataclass(frozen=True, slots=True)
class Cut:
    member: str
    is_healed: bool


@dataclass(frozen=True, slots=True)
class Restart:
    pass


Deed: TypeAlias = Make | Edit | Remove | Drift | Move | Cut | Restart

names = st.sampled_from(NAMES)
members = st.sampled_from(MEMBERS)
cities = st.sampled_from(CITIES)
deeds: st.SearchStrategy[Deed] = st.one_of(
    st.builds(Make, names, cities),
    st.builds(Make, names, cities),
    st.builds(Edit, names, st.integers(2, 9)),
    st.builds(Remove, names),
    st.builds(Drift, members, names, st.booleans()),
    st.builds(Move, members, st.one_of(cities, st.none())),
    st.builds(Cut, members, st.booleans()),
    st.builds(Restart),
)


@dataclass(slots=True)
class Wanted:
    """The expected final state: objects by name, and the state of each member."""

    objects: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    stands: dict[str, str | None] = field(
        default_factory=lambda: dict[str, str | None](zip(MEMBERS, CITIES, strict=True))
    )

    def copies(self, member: str) -> dict[str, JsonValue]:
        stand = self.stands[member]
        return {name: size for name, (city, size) in self.objects.items() if city == stand}


async def carry_out(world: World, deed: Deed, desired: Wanted) -> None:
    match deed:
        case Make(name, city):
            if name not in desired.objects:
                desired.objects[name] = (city, 1)
                await world.hub.create(GADGETS, a_gadget(NS, name, city))
        case Edit(name, size):
            if name in desired.objects:
                desired.objects[name] = (desired.objects[name][0], size)
                await world.hub.patch(GADGETS, name, {"spec": {"size": size}}, namespace=NS)
        case Remove(name):
            desired.objects.pop(name, None)
            await world.hub.delete(GADGETS, name, namespace=NS)
        case Drift(member, name, is_deletion):
            await drift(world, member, name, is_deletion=is_deletion)
        case Move(member, city):
            desired.stands[member] = city
            await world.karmada.label(member, {CITY: city})
        case Cut(member, is_healed):
            (world.karmada.heal if is_healed else world.karmada.cut)(member)
        case Restart():
            await world.karmada.stop()
            world.karmada.start()


async def drift(world: World, member: str, name: str, *, is_deletion: bool) -> None:
    if await world.copy(member, name) is None:
        return
    if is_deletion:
        await world.clients[member].delete(GADGETS, name, namespace=NS)
    else:
        patch: JsonObject = {"spec": {"size": 99}}
        await world.clients[member].patch(GADGETS, name, patch, namespace=NS)


async def copies_in(world: World, member: str) -> dict[str, JsonValue]:
    listing = await world.clients[member].list(GADGETS)
    return {string_at(one, "metadata", "name"): size_of(one) for one in listing.items}


async def begin(world: World) -> None:
    """Create a policy per city and a first object in each, so that members' copies are watched:
    Karmada does not notice changes to the very first copy before that.
    """
    for city in CITIES:
        matched: JsonObject = {"matchLabels": {CITY: city}}
        spec: JsonObject = {
            "resourceSelectors": [
                {
                    "apiVersion": GADGETS.api_version,
                    "kind": GADGETS.kind,
                    "labelSelector": matched,
                }
            ],
            "placement": {"clusterAffinity": {"labelSelector": matched}},
        }
        await world.hub.create(POLICIES, a_policy(NS, f"city-{city.lower()}", spec))
        await world.hub.create(GADGETS, a_gadget(NS, f"first-{city.lower()}", city))
    await world.settle()
    for city in CITIES:
        await world.hub.delete(GADGETS, f"first-{city.lower()}", namespace=NS)
    await world.settle()


CUT_AND_RESTARTED: Final[list[tuple[Deed, float]]] = [
    (Cut("dfw-1", is_healed=False), 0.0),
    (Restart(), 3.0),
    (Make("b", "DFW"), 0.02),
    (Restart(), 3.0),
    (Restart(), 3.0),
    (Restart(), 0.005),
    (Cut("dfw-1", is_healed=True), 0.005),
    (Remove("a"), 0.02),
    (Edit("b", 3), 0.0),
]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**16),
    scenario=st.lists(st.tuples(deeds, st.sampled_from(PAUSES)), max_size=14),
)
# An informer that was cancelled while its watch broke once ran for ever.
@example(seed=720, scenario=CUT_AND_RESTARTED)
def test_members_converge_to_what_the_hub_wants(
    seed: int, scenario: list[tuple[Deed, float]]
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with open_world(clock, real_plane_options()) as world:
            desired = Wanted()
            await begin(world)
            for deed, pause in scenario:
                await carry_out(world, deed, desired)
                await world.settle(pause)
            for member in MEMBERS:
                world.karmada.heal(member)
            await world.settle(SETTLE)
            for member in MEMBERS:
                assert await copies_in(world, member) == desired.copies(member), member
            works = await world.hub.list(WORKS)
            kept = [one for one in works.items if "first" in string_at(one, "metadata", "name")]
            assert kept == []
            assert len((await world.hub.list(BINDINGS)).items) == len(desired.objects)
            before = world.versions()
            await world.settle(SETTLE)
            assert world.versions() == before

    run(main, seed=seed, start=START)
