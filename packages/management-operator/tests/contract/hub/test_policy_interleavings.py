"""One deployment of a city goes while another comes, in every order their requests can take.

Every request of the operator about deployments and policies on the hub, and the user's own, are
held until the explorer lets one go. Which of those that are held together goes next is a choice;
all choices are tried, depth first. Whatever the order, no live copy is ever without a live policy,
and in the end the one that came is delivered. (Requests to the project are not held: they add
orders, 197 instead of those here, and no new outcome.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from management_builders.documents import a_cluster_document, a_deployment_document
from management_builders.hub_script import PROJECT
from management_builders.world import World, play, uid_of

from compute_api_types import labels
from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE, POLICY
from compute_operator_kit.client.rest import StreamingResponse, Transport
from compute_operator_kit.core.json import member_object

HELD = ("/workloaddeployments", "/propagationpolicies")
GOING, COMING = "going-us-dfw", "coming-us-dfw"
MOST_RUNS = 400


@dataclass(slots=True)
class Held:
    """One request that waits to be let go."""

    label: str
    gate: asyncio.Event = field(default_factory=asyncio.Event)


class Explorer:
    """Holds requests, and lets them go in the order that the choices say."""

    def __init__(self, choices: tuple[int, ...]) -> None:
        self._choices = list(choices)
        self.is_holding = False
        self.waiting: list[Held] = []
        self.taken: list[tuple[int, int]] = []  # which one, out of how many
        self.story: list[str] = []

    def wrap(self, plane: str, transport: Transport) -> Transport:
        return Gate(self, transport) if plane == HUB else transport

    async def hold(self, label: str) -> None:
        held = Held(label)
        self.waiting.append(held)
        await held.gate.wait()

    def let_one_go(self) -> None:
        self.waiting.sort(key=lambda held: held.label)
        place = len(self.taken)
        choice = self._choices[place] if place < len(self._choices) else 0
        self.taken.append((choice, len(self.waiting)))
        held = self.waiting.pop(choice)
        self.story.append(held.label)
        held.gate.set()


@dataclass(frozen=True, slots=True)
class Gate:
    """The operator's way to a plane."""

    explorer: Explorer
    inner: Transport

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> StreamingResponse:
        is_held = self.explorer.is_holding and "watch=" not in target
        if is_held and any(part in target for part in HELD):
            await self.explorer.hold(f"{method} {target}")
        return await self.inner.request(method, target, headers, body)


async def find_uncovered(world: World, place: str) -> list[str]:
    """Live copies in a city without a live policy."""
    policies = [
        one
        for one in await world.listed(HUB, POLICY, place)
        if "deletionTimestamp" not in member_object(one, "metadata")
    ]
    covered = {str(one["spec"]) for one in policies}
    uncovered: list[str] = []
    for copy in await world.listed(HUB, DEPLOYMENT, place):
        metadata = member_object(copy, "metadata")
        code = member_object(metadata, "labels")[labels.TOPOLOGY_CITY_CODE]
        is_live = "deletionTimestamp" not in metadata
        if is_live and not any(f"'{code}'" in spec for spec in covered):
            uncovered.append(str(metadata["name"]))
    return uncovered


async def come(world: World, explorer: Explorer) -> None:
    """The user's part: the other deployment, at any moment."""
    await explorer.hold("user")
    await world.create(PROJECT, a_deployment_document(COMING))


def explore(choices: tuple[int, ...]) -> Explorer:
    """One run with these first choices, and the first of all afterwards."""
    explorer = Explorer(choices)

    async def scenario(world: World) -> None:
        world.between = explorer.wrap
        await world.add_project(PROJECT)
        await world.create(HUB, a_cluster_document("dfw-1"))
        world.process().start()
        await world.create(PROJECT, a_deployment_document(GOING))
        await world.sleep(5)
        place = f"ns-{uid_of(await world.get(PROJECT, NAMESPACE, 'default'))}"
        assert await world.names(HUB, DEPLOYMENT, place) == [GOING]
        explorer.is_holding = True
        await world.delete(PROJECT, DEPLOYMENT, GOING)
        user = asyncio.create_task(come(world, explorer), name="user")
        quiet = 0
        while quiet < 5:
            # Everything that can happen without these requests happens in a moment of virtual
            # time; without any, it takes timers, of which the longest that matter are steps of 1 s.
            await world.sleep(0.05 if explorer.waiting else 2)
            if not explorer.waiting:
                quiet += 1
                continue
            quiet = 0
            explorer.let_one_go()
            await world.sleep(0.01)
            assert await find_uncovered(world, place) == [], explorer.story
        await user
        assert await world.names(HUB, DEPLOYMENT, place) == [COMING], explorer.story
        assert await world.names(HUB, POLICY, place) == ["city-dfw"], explorer.story
        assert await world.names(PROJECT, DEPLOYMENT) == [COMING], explorer.story

    play(scenario)
    return explorer


def next_choices(taken: list[tuple[int, int]]) -> tuple[int, ...] | None:
    """The next path in depth-first order; None after the last."""
    path = list(taken)
    while path:
        choice, number = path.pop()
        if choice + 1 < number:
            return (*(one for one, _ in path), choice + 1)
    return None


@pytest.mark.spec("M-45")
@pytest.mark.fault("A6")
def test_no_order_of_requests_leaves_a_copy_without_its_policy() -> None:
    choices: tuple[int, ...] | None = ()
    orders: set[tuple[str, ...]] = set()
    while choices is not None:
        explored = explore(choices)
        orders.add(tuple(explored.story))
        choices = next_choices(explored.taken)
        assert len(orders) <= MOST_RUNS, "more orders than this test was made for"
    assert len(orders) > 10, "nothing was interleaved: the test shows nothing"
