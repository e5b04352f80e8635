"""Which optional kinds count on a plane: turned on by one list, off by two answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import cast

import pytest

from compute_operator_kit.cache.lister import Caches, Lister
from compute_operator_kit.cache.optional_kinds import Off, OptionalKindsMode, OptionalKindsReader
from compute_operator_kit.cache.store import Store
from compute_operator_kit.client.interface import FieldOwner, KubeClient, NotServed, Page
from compute_operator_kit.core.errors import TransientError
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.objects import Unreadable
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.optional_kinds import (
    CONFIRM_AFTER,
    KindState,
    OptionalKinds,
    TrackedKinds,
)
from compute_operator_kit.testing.fakes import FakeCaches, FakeClock, a_store

ACME = PlaneName("acme")
PLANE = Plane(ACME, Role.PROJECT)
LOCATION = Kind("networking.datumapis.com", "v1alpha", "locations", "Location", namespaced=False)
OTHER = Kind("example.com", "v1", "things", "Thing")
TRACKED = TrackedKinds(Role.PROJECT, (LOCATION,), FieldOwner("networking", "test"))
AUTO = OptionalKindsMode.AUTO


def synced() -> Store:
    return a_store(ACME, LOCATION)


def not_served() -> Store:
    store = Store(ACME, LOCATION)
    assert list(store.mark_unserved()) == []
    return store


def unlisted() -> Store:
    return Store(ACME, LOCATION)


@dataclass
class Access:
    """The store of the one kind, and the answers of its server."""

    store: Store
    answers: list[Page | NotServed | TransientError] = field(
        default_factory=list[Page | NotServed | TransientError]
    )
    on_list: Callable[[], object] = lambda: None
    owners: list[FieldOwner] = field(default_factory=list[FieldOwner])
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    @property
    def caches(self) -> Caches:
        return FakeCaches([self.store], {ACME: Role.PROJECT})

    def kube(self, plane: PlaneName, owner: FieldOwner, /) -> KubeClient:
        assert plane == ACME
        self.owners.append(owner)
        return cast("KubeClient", self)

    async def list(self, kind: Kind, *, limit: int) -> Page | NotServed:
        assert (kind, limit) == (LOCATION, 1)
        self.on_list()
        answer = self.answers.pop(0)
        if isinstance(answer, TransientError):
            raise answer
        return answer

    def start(self, work: Coroutine[object, object, None], name: str, /) -> None:
        assert name == "Location of acme"
        self.tasks.append(asyncio.create_task(_run(work)))


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def _run(work: Coroutine[object, object, None]) -> None:
    await work


class World:
    """The tracker over one kind of one plane."""

    def __init__(self, store: Store, mode: OptionalKindsMode = AUTO) -> None:
        self.access = Access(store)
        self.clock = FakeClock()
        self.kinds = OptionalKinds(mode, TRACKED, self.access, self.clock)
        self.calls: list[PlaneName] = []
        self.kinds.add_listener(self.calls.append)

    def report(self, store: Store) -> KindState:
        self.access.store = store
        self.kinds.synced(PLANE, LOCATION)
        return self.state

    @property
    def state(self) -> KindState:
        return self.kinds.state(ACME, LOCATION)

    def read(self) -> Lister | Unreadable | Off:
        return self.kinds.reader.read(self.access.caches, ACME, LOCATION)

    async def confirm(self, *answers: Page | NotServed | TransientError) -> None:
        """Lets each confirming read get its answer, after its delay."""
        for answer in (*answers, None):
            self.access.answers += [] if answer is None else [answer]
            await _settle()
            self.clock.pass_time(CONFIRM_AFTER)
            await _settle()
            assert self.access.answers == []


def test_a_kind_is_unknown_until_the_plane_has_listed_it_or_refused() -> None:
    world = World(unlisted())
    assert world.state is KindState.UNKNOWN
    assert world.read() == Unreadable("NotSynced")
    assert world.report(synced()) is KindState.ON
    assert world.calls == [ACME]
    assert isinstance(world.read(), Store)


def test_a_kind_that_was_never_served_is_off_at_once_and_on_when_it_comes() -> None:
    world = World(unlisted())
    assert world.report(not_served()) is KindState.OFF
    assert world.read() == Off()
    assert world.report(synced()) is KindState.ON
    assert world.calls == [ACME, ACME]


async def test_a_kind_that_is_gone_is_off_after_a_second_answer() -> None:
    world = World(synced())
    world.report(synced())
    assert world.report(not_served()) is KindState.UNCERTAIN
    assert world.read() == Unreadable("NotSynced")
    await world.confirm(TransientError("Timeout", "listing: no answer"), NotServed())
    assert world.state is KindState.OFF
    assert all(task.done() for task in world.access.tasks)
    assert world.read() == Off()
    assert world.calls == [ACME, ACME, ACME]
    assert world.access.owners == [TRACKED.owner] * 2


async def test_a_kind_that_is_listed_again_meanwhile_stays_on() -> None:
    world = World(synced())
    world.report(synced())
    world.report(not_served())
    world.access.on_list = lambda: world.report(synced())
    await world.confirm(NotServed())
    assert world.state is KindState.ON
    assert world.report(not_served()) is KindState.UNCERTAIN
    assert world.report(synced()) is KindState.ON
    await world.confirm()


def test_other_kinds_and_other_roles_are_ignored() -> None:
    world = World(synced())
    world.kinds.synced(PLANE, OTHER)
    world.kinds.synced(Plane(ACME, Role.HUB), LOCATION)
    assert (world.state, world.calls) == (KindState.UNKNOWN, [])


def test_a_disengaged_plane_is_forgotten() -> None:
    world = World(synced())
    world.report(synced())
    world.kinds.disengaged(PLANE)
    assert world.state is KindState.UNKNOWN


def test_the_setting_on_confirms_nothing_and_reads_no_kind_that_is_missing() -> None:
    world = World(synced(), OptionalKindsMode.ON)
    world.report(synced())
    world.report(not_served())
    assert world.access.tasks == []
    assert world.read() == Unreadable("NotSynced")


@pytest.mark.parametrize(
    ("mode", "is_watched"),
    [(AUTO, True), (OptionalKindsMode.ON, True), (OptionalKindsMode.OFF, False)],
)
def test_off_watches_and_reads_nothing(mode: OptionalKindsMode, *, is_watched: bool) -> None:
    assert World(synced(), mode).kinds.are_watched is is_watched
    result = OptionalKindsReader(mode).read(
        FakeCaches([synced()], {ACME: Role.PROJECT}), ACME, LOCATION
    )
    assert (result == Off()) is not is_watched


async def test_a_kind_that_is_closed_while_uncertain_counts_as_served_until_it_is_listed() -> None:
    world = World(synced())
    assert world.report(synced()) is KindState.ON
    assert world.report(not_served()) is KindState.UNCERTAIN
    world.kinds.closed(PLANE, LOCATION)
    assert world.state is KindState.ON
    await world.confirm()
    assert all(task.done() for task in world.access.tasks), "no more confirming reads"


def test_only_an_answer_of_the_server_makes_a_kind_known() -> None:
    reader = OptionalKindsReader(AUTO)
    for store, is_known in ((unlisted(), False), (synced(), True), (not_served(), True)):
        caches = FakeCaches([store], {ACME: Role.PROJECT})
        assert reader.has_answer(caches, ACME, LOCATION) is is_known
