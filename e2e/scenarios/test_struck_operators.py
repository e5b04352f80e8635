"""Operators are killed at chosen writes of create, roll and delete, and links cut at any moment.

A sample of the fault sweep (`docs/spec/faults.md` 1) for real planes: the sweep strikes every write
in virtual time, and this shows that processes and connections behave as the simulated ones. Every
round must end like the round without faults.
"""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import pytest

from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    WORKLOAD,
    JsonObject,
    Needs,
    Operator,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    gates_of,
    name_of,
    objects_at,
    scenario,
    text_at,
    uid_of,
    within,
)

NEEDS: Final = Needs(has_quota=True, is_alone=True, is_slow=True, expects_errors=True)
STRIKES: Final = 50
SIMULATED: Final = 6  # the sweep has all of them there
MISSED: Final = 5  # one strike in so many may come after its phase
GOAL: Final = within(300, real=300)
REPLICAS: Final = 2
NAMES: Final = [f"web-default-dfw-{ordinal}" for ordinal in range(REPLICAS)]
CUT: Final = 6.0  # seconds
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

State: TypeAlias = dict[str, str]
Act: TypeAlias = Callable[[], Awaitable[object]]
Goal: TypeAlias = Callable[[], Awaitable[State]]


@dataclass(slots=True)
class Story:
    """One Workload through create, roll and delete."""

    world: World

    @property
    def phases(self) -> Sequence[tuple[Act, Goal]]:
        """Each phase is an act of a user and the state in which it must end."""
        return (
            (self._create, partial(self._runs, "1.0")),
            (self._roll, partial(self._runs, "2.0")),
            (self._delete, self._is_gone),
        )

    async def _create(self) -> None:
        placed = a_placement("default", "DFW", replicas=REPLICAS)
        await self.world.eventually(partial(self.world.project.create, a_workload("web", placed)))

    async def _roll(self) -> None:
        change: JsonObject = {"spec": {"template": a_template("2.0")}}
        await self.world.eventually(partial(self.world.project.patch, WORKLOAD, "web", change))

    async def _delete(self) -> None:
        await self.world.eventually(partial(self.world.project.delete, WORKLOAD, "web"))

    async def _runs(self, tag: str) -> State:
        project = self.world.project
        cell, hub = await self.world.cell_of(DFW, project), await self.world.hub_of(project)
        for plane in (project, hub, cell):
            assert await plane.names(INSTANCE) == NAMES, plane.name
            for one in await plane.list(INSTANCE):
                assert gates_of(one) == [], (plane.name, name_of(one))
                assert condition_of(one, "Ready").status == "True", (plane.name, name_of(one))
                assert f":{tag}'" in str(one), (plane.name, name_of(one))
        assert await project.names(CLAIM) == [f"instance-{name}" for name in NAMES]
        workload = await project.get(WORKLOAD, "web")
        assert condition_of(workload, "Ready").status == "True"
        running = self.world.backend.running(DFW.name)
        assert running >= {uid_of(one) for one in await cell.list(INSTANCE)}
        return {
            f"{plane.name} {text_at(one, 'kind')} {name_of(one)}": state_of(one)
            for plane in (project, hub, cell)
            for kind in (WORKLOAD, DEPLOYMENT, INSTANCE)
            if kind is not WORKLOAD or plane is project
            for one in await plane.list(kind)
        }

    async def _is_gone(self) -> State:
        project = self.world.project
        for kind in (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM):
            assert await project.names(kind) == [], kind.name
        for plane in (await self.world.hub_of(project), await self.world.cell_of(DFW, project)):
            for kind in (DEPLOYMENT, INSTANCE):
                assert await plane.names(kind) == [], (plane.name, kind.name)
        return {}


def state_of(document: JsonObject) -> str:
    """What two rounds must agree in: the spec and the verdicts of the conditions."""
    verdicts = sorted(
        (text_at(one, "type"), text_at(one, "status"), text_at(one, "reason"))
        for one in objects_at(document, "status", "conditions")
    )
    return _UID.sub("<uid>", f"{document.get('spec')} {verdicts}")


@dataclass(frozen=True, slots=True)
class Round:
    """What the round without faults was like: the end of each phase, writes and seconds in it."""

    states: list[State]
    writes: list[dict[str, int]]
    seconds: list[float]


async def play_unstruck(world: World, operators: Sequence[Operator]) -> Round:
    """The second of two rounds: the first also writes what all rounds share, as namespaces."""
    await _play_once(world, operators)
    return await _play_once(world, operators)


async def _play_once(world: World, operators: Sequence[Operator]) -> Round:
    measured = Round([], [], [])
    for act, goal in Story(world).phases:
        before = {one.name: len(one.writes()) for one in operators}
        begun = world.backend.now()
        await act()
        measured.states.append(await world.eventually(goal, GOAL))
        measured.seconds.append((world.backend.now() - begun).total_seconds())
        measured.writes.append(
            {one.name: len(one.writes()) - before[one.name] for one in operators}
        )
    return measured


def count_strikes(world: World) -> int:
    return SIMULATED if world.backend.name == "sim" else STRIKES


def share(number: int, count: int, most: int) -> int:
    """Points 1 … `most`, spread over so many strikes."""
    return 1 + number * max(0, most - 1) // max(1, count - 1)


async def has_written(operator: Operator, since: int, count: int) -> None:
    assert len(operator.writes(since=since)) >= count


@pytest.mark.fault("A1", "A2")
@scenario(NEEDS)
async def test_an_operator_killed_at_any_write_ends_as_if_it_had_not_been(world: World) -> None:
    operators = (world.management, world.operator_of(DFW))
    reference = await play_unstruck(world, operators)
    count, struck, missed = count_strikes(world), 0, 0
    while struck < count:
        operator = operators[(struck // 3) % 2]
        for phase, (act, goal) in enumerate(Story(world).phases):
            most = max(1, reference.writes[phase][operator.name])
            nth = share(struck // 6, -(-count // 6), most)
            since = len(operator.writes())
            await act()
            try:
                await world.eventually(partial(has_written, operator, since, nth), within(20))
            except AssertionError:
                missed += 1
            await operator.kill()
            await operator.start()
            assert await world.eventually(goal, GOAL) == reference.states[phase], (phase, nth)
            struck += 1
    assert missed * MISSED <= struck, f"{missed} of {struck} kills came after their write"


@pytest.mark.fault("D1")
@scenario(NEEDS)
async def test_a_link_cut_at_any_moment_ends_as_if_it_had_not_been(world: World) -> None:
    operators = (world.management, world.operator_of(DFW))
    reference = await play_unstruck(world, operators)
    links = [(one, plane) for one in operators for plane in (HUB, world.project.name)]
    chance = random.Random("links")  # noqa: S311 -- nothing secret
    for number in range(-(-count_strikes(world) // 3)):
        operator, plane = links[number % len(links)]
        for phase, (act, goal) in enumerate(Story(world).phases):
            await act()
            await world.sleep(chance.random() * reference.seconds[phase])
            await operator.cut(plane)
            await world.sleep(CUT)
            await operator.heal(plane)
            ended = await world.eventually(goal, GOAL)
            assert ended == reference.states[phase], (operator.name, plane, phase)
