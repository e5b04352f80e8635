"""Kinds that are watched on demand: opened by a trigger object, closed some time after the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from types import MappingProxyType

import pytest
from simulated_operators.on_demand import (
    CACHED,
    IN_USE,
    NEEDED,
    OTHER,
    PROJECT,
    START,
    TRIGGER,
    OnDemandFixture,
    a_key,
    on_demand,
)

from compute_operator_kit.cache.lister import ServingState
from compute_operator_kit.client.rest import StreamingResponse, Transport
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Kind, Role
from compute_operator_kit.core.objects import Metadata, Unreadable
from compute_operator_kit.planes.delays import CLOSE_AFTER, FIRST_LIST_WITHIN
from compute_operator_kit.planes.engaged_plane import CachedKind, OnDemand, Plane
from compute_operator_kit.planes.registry import Planes, RegistryDeps
from compute_sim_planes.time.clock import VirtualClock, run

MOMENT = timedelta(seconds=1)
ALL = ["ConfigMap", "Secret", "ServiceAccount"]


@dataclass
class Counted:
    """Counts lists by resource, and answers those of some resources badly or never."""

    transport: Transport
    lists: list[str] = field(default_factory=list)
    hanging: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    garbled: set[str] = field(default_factory=set)

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> StreamingResponse:
        path, _, query = target.partition("?")
        resource = path.rpartition("/")[2]
        if method == "GET" and "watch=1" not in query:
            self.lists.append(resource)
            if resource in self.hanging:
                await asyncio.Event().wait()
            if resource in self.failing:
                raise OSError("no answer")
            if resource in self.garbled:
                return Garbled()
        return await self.transport.request(method, target, headers, body)


class Garbled:
    """An answer that is no JSON."""

    status = 200
    headers: Mapping[str, str] = MappingProxyType({"content-type": "application/json"})

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b'{"items": [}'

    async def close(self) -> None:
        pass


class Requests:
    """The requests of the operator of one run."""

    def __init__(self, *, hanging: str = "", failing: str = "", garbled: str = "") -> None:
        self.hanging, self.failing = {hanging} - {""}, {failing} - {""}
        self.garbled = {garbled} - {""}
        self.lists: list[str] = []

    def wrap(self, transport: Transport) -> Transport:
        return Counted(transport, self.lists, self.hanging, self.failing, self.garbled)


def play(
    scenario: Callable[[OnDemandFixture], Awaitable[None]],
    *objects: tuple[Kind, str],
    requests: Requests | None = None,
    cached: tuple[CachedKind, ...] = CACHED,
    seed: int = 1,
) -> None:
    async def main(clock: VirtualClock) -> None:
        chosen = requests or Requests()
        async with on_demand(clock, *objects, wrap=chosen.wrap, cached=cached) as fixture:
            await fixture.sleep(MOMENT)
            await scenario(fixture)

    run(main, seed=seed, start=START)


@pytest.mark.spec("RT-01")
def test_the_first_trigger_object_opens_and_ten_minutes_after_the_last_it_is_closed() -> None:
    async def scenario(world: OnDemandFixture) -> None:
        assert world.streams() == ["ConfigMap"]
        await world.make(TRIGGER, "web")
        await world.sleep(MOMENT)
        assert world.streams() == ALL
        await world.make(TRIGGER, "api")
        await world.remove(TRIGGER, "web")
        await world.sleep(CLOSE_AFTER * 2)
        assert world.streams() == ALL
        await world.remove(TRIGGER, "api")
        await world.sleep(CLOSE_AFTER - MOMENT)
        assert world.streams() == ALL
        await world.sleep(2 * MOMENT)
        assert world.streams() == ["ConfigMap"]
        assert world.planes.get(PROJECT).is_synced

    play(scenario)


@pytest.mark.spec("RT-01")
def test_a_plane_that_is_in_use_again_within_ten_minutes_lists_nothing_again() -> None:
    requests = Requests()

    async def scenario(world: OnDemandFixture) -> None:
        await world.make(TRIGGER, "web")
        await world.sleep(MOMENT)
        listed = [*requests.lists]
        for _ in range(5):
            await world.remove(TRIGGER, "web")
            await world.sleep(CLOSE_AFTER - 2 * MOMENT)
            await world.make(TRIGGER, "web")
            await world.sleep(MOMENT)
        assert world.streams() == ALL
        assert requests.lists == listed
        assert world.reconciled.seen["web"] == ("absent", "absent")

    play(scenario, requests=requests)


@pytest.mark.spec("RT-02")
def test_a_closed_kind_is_unreadable_and_never_absent() -> None:
    async def scenario(world: OnDemandFixture) -> None:
        await world.make(OTHER, "there")
        lister = world.planes.lister(PROJECT, OTHER)
        unreadable = Unreadable("NotWatched")
        assert lister.get("default", "there") == lister.get("default", "no") == unreadable
        assert lister.snapshots() == lister.by_index("any", "value") == unreadable
        assert (lister.plane, lister.kind) == (PROJECT, OTHER)
        assert not lister.is_synced
        assert lister.listing is None
        assert lister.serving is ServingState.UNKNOWN
        assert not lister.has_reached("1")
        assert lister.entry("default", "there") is None
        assert (lister.entries_by_index("any", "value"), lister.index_values("any")) == ((), ())
        assert world.planes.find_store(PROJECT, OTHER) is None
        with pytest.raises(InvariantError):
            world.planes.lister(PROJECT, Kind("", "v1", "pods", "Pod"))

    play(scenario)


@pytest.mark.spec("RT-02")
def test_a_key_that_needs_a_closed_kind_opens_it_and_waits_until_it_is_complete() -> None:
    async def scenario(world: OnDemandFixture) -> None:
        world.manager.enqueue("things", a_key(TRIGGER, "gone"))
        await world.sleep(MOMENT)
        assert world.reconciled.seen["gone"] == ("absent", "NotWatched")
        assert world.streams() == ["ConfigMap", "Secret"]
        await world.sleep(CLOSE_AFTER + MOMENT)
        assert world.streams() == ["ConfigMap"]

    play(scenario)


@pytest.mark.spec("RT-02")
def test_a_key_that_needs_a_kind_whose_list_fails_waits_and_runs_once_it_answers() -> None:
    requests = Requests(failing="secrets")

    async def scenario(world: OnDemandFixture) -> None:
        await world.make(TRIGGER, "web")
        await world.sleep(CLOSE_AFTER * 3)
        assert world.reconciled.seen == {}
        requests.failing.clear()
        await world.sleep(timedelta(minutes=2))
        assert world.reconciled.seen == {"web": ("absent", "absent")}

    play(scenario, requests=requests)


@pytest.mark.spec("RT-03")
def test_a_first_trigger_object_is_reconciled_once_with_complete_caches() -> None:
    async def scenario(world: OnDemandFixture) -> None:
        await world.make(OTHER, "web")
        await world.make(NEEDED, "web")
        await world.make(TRIGGER, "web")
        await world.sleep(MOMENT)
        assert world.reconciled.seen["web"] == ("there", "there")

    play(scenario)


@pytest.mark.spec("RT-03")
@pytest.mark.parametrize("way", ["hanging", "failing"])
def test_a_kind_that_is_not_needed_holds_a_key_back_for_five_seconds_at_most(way: str) -> None:
    requests = Requests(**{way: "serviceaccounts"})

    async def scenario(world: OnDemandFixture) -> None:
        await world.make(TRIGGER, "web")
        await world.sleep(FIRST_LIST_WITHIN + MOMENT)
        assert world.reconciled.seen == {"web": ("absent", "NotSynced")}

    play(scenario, requests=requests)


@pytest.mark.spec("RT-04")
def test_objects_that_were_left_behind_are_found_at_engagement_and_keep_the_kind_open() -> None:
    async def scenario(world: OnDemandFixture) -> None:
        assert world.streams() == ["ConfigMap", "Secret"]
        assert world.reconciled.seen == {"left": ("there", "NotWatched")}
        await world.sleep(CLOSE_AFTER * 3)
        assert world.streams() == ["ConfigMap", "Secret"]
        await world.remove(NEEDED, "left")
        await world.sleep(CLOSE_AFTER * 2)
        assert world.streams() == ["ConfigMap"]
        assert world.reconciled.seen == {"left": ("absent", "NotWatched")}

    play(scenario, (NEEDED, "left"), (OTHER, "not-looked-for"))


@pytest.mark.spec("RT-04")
def test_an_empty_plane_is_asked_for_one_object_that_may_be_left_and_for_nothing_else() -> None:
    requests = Requests()

    async def scenario(world: OnDemandFixture) -> None:
        await world.sleep(timedelta(hours=1))
        assert requests.lists == ["configmaps", "secrets"]

    play(scenario, requests=requests)


@pytest.mark.spec("RT-04")
@pytest.mark.parametrize("way", ["failing", "garbled"])
def test_a_look_for_left_objects_that_fails_opens_the_kind_instead(way: str) -> None:
    requests = Requests(**{way: "secrets"})

    async def scenario(world: OnDemandFixture) -> None:
        assert world.planes.get(PROJECT).is_open(NEEDED)
        requests.failing.clear()
        requests.garbled.clear()
        await world.sleep(timedelta(minutes=1))
        assert world.reconciled.seen == {"left": ("there", "NotWatched")}

    play(scenario, (NEEDED, "left"), requests=requests)


@pytest.mark.spec("RT-05")
def test_a_trigger_kind_that_cannot_be_listed_is_no_reason_to_close() -> None:
    async def scenario(world: OnDemandFixture) -> None:
        await world.make(TRIGGER, "web")
        await world.sleep(MOMENT)
        engaged = world.planes.get(PROJECT)
        await world.remove(TRIGGER, "web")
        await world.sleep(MOMENT)
        engaged.stores[TRIGGER].drop("CacheExhausted")
        await world.sleep(CLOSE_AFTER + MOMENT)
        assert world.streams() == ALL

    play(scenario)


@pytest.mark.spec("RT-05")
def test_a_trigger_kind_that_is_itself_on_demand_is_refused() -> None:
    by_other = OnDemand((OTHER,))
    cached = (
        CachedKind(Role.PROJECT, TRIGGER),
        CachedKind(Role.PROJECT, OTHER, on_demand=OnDemand((TRIGGER,))),
        CachedKind(Role.PROJECT, NEEDED, on_demand=by_other),
    )

    async def main(clock: VirtualClock) -> None:
        async with on_demand(clock) as world:
            deps = RegistryDeps(clock, clock.random("planes"))
            planes = Planes(lambda _plane, _lane: world.user, cached, deps)
            with pytest.raises(InvariantError, match="ServiceAccount"):
                planes.engage(Plane(PROJECT, Role.PROJECT))

    run(main, seed=1, start=START)


NAMES = ("a", "b", "c")


async def disturb(world: OnDemandFixture, random: Random) -> None:
    """One random change by a user, or time that passes."""
    kind = random.choice((TRIGGER, TRIGGER, NEEDED, OTHER))
    name = random.choice(NAMES)
    if name in await world.names(kind):
        await world.remove(kind, name)
    else:
        await world.make(kind, name)
    pauses = (0.0, 0.01, 1.0, 60.0, 599.9, 600.0, 600.1, 1300.0)
    await world.sleep(timedelta(seconds=random.choice(pauses)))


async def expect(world: OnDemandFixture) -> None:
    """What is needed is open, and every trigger object was reconciled with what there is now."""
    exist = {kind: await world.names(kind) for kind in (TRIGGER, NEEDED, OTHER)}
    needed = {"ConfigMap"}
    if exist[TRIGGER]:
        needed = {*ALL}
    assert needed <= {*world.streams()}
    for name in exist[TRIGGER]:
        seen = tuple("there" if name in exist[kind] else "absent" for kind in (NEEDED, OTHER))
        assert world.reconciled.seen[name] == seen, name


@pytest.mark.spec("RT-06")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_and_goes_what_is_needed_is_open_and_no_event_is_lost(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - nothing secret

    async def scenario(world: OnDemandFixture) -> None:
        for _ in range(12):
            for _ in range(random.randint(1, 5)):
                await disturb(world, random)
            await world.sleep(MOMENT)
            await expect(world)
        for kind in (TRIGGER, NEEDED, OTHER):
            for name in await world.names(kind):
                await world.remove(kind, name)
        await world.sleep(CLOSE_AFTER * 2 + MOMENT)
        assert world.streams() == ["ConfigMap"]

    play(scenario, seed=seed)


def index_by_annotation(metadata: Metadata, _: JsonObject) -> tuple[str, ...]:
    return tuple(metadata.annotations)


def test_only_a_trigger_object_with_a_value_in_the_index_opens_the_kind() -> None:
    by_index = OnDemand((TRIGGER,), index="annotated")
    cached = (
        CachedKind(Role.PROJECT, TRIGGER, indexes={"annotated": index_by_annotation}),
        CachedKind(Role.PROJECT, NEEDED, on_demand=IN_USE),
        CachedKind(Role.PROJECT, OTHER, on_demand=by_index),
    )

    async def scenario(world: OnDemandFixture) -> None:
        await world.make(TRIGGER, "web")
        await world.sleep(MOMENT)
        assert world.streams() == ["ConfigMap", "Secret"]
        await world.annotate(TRIGGER, "web", {"names": "one"})
        await world.sleep(MOMENT)
        assert world.streams() == ALL
        await world.annotate(TRIGGER, "web", {})
        await world.sleep(CLOSE_AFTER - MOMENT)
        assert world.streams() == ALL
        await world.sleep(2 * MOMENT)
        assert world.streams() == ["ConfigMap", "Secret"]

    play(scenario, cached=cached)
