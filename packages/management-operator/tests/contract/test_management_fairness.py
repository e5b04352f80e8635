"""Tenants beside each other: what one of them does costs another nothing (management.md 10)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from management_builders.documents import a_workload_document
from management_builders.world import World, play

from compute_management_operator.planes import WORKLOAD
from compute_operator_kit.core.json import JsonObject
from compute_sim_planes.history import Commit

EDITS = 40


async def place_each(world: World, project: str) -> None:
    """Creates a Workload every so often, as a user does."""
    for number in range(EDITS):
        await world.create(project, a_workload_document(f"web-{number:02}"))
        await world.sleep(0.25)


def latencies(world: World, project: str) -> list[float]:
    """From each Workload's creation to its deployment's, on that plane."""
    made: dict[str, datetime] = {}
    took: list[float] = []
    for commit in world.history.of(Commit):
        if commit.plane != project or commit.type != "ADDED":
            continue
        if commit.kind == "Workload":
            made[commit.key] = commit.at
        elif commit.kind == "WorkloadDeployment" and (root := commit.key.removesuffix("-us-dfw")):
            took.append((commit.at - made[root]).total_seconds())
    return sorted(took)


def p99(took: list[float]) -> float:
    assert len(took) == EDITS
    return took[int(len(took) * 0.99)]


async def prepare(world: World) -> None:
    for name in ("quiet", "noisy"):
        await world.add_project(name, cities=("DFW",))
    # A plane that answers in no time at all would hide a wait.
    world.links["quiet"].slow(timedelta(milliseconds=5))


def alone() -> float:
    async def scenario(world: World) -> None:
        await prepare(world)
        world.process().start()
        await world.sleep(1)
        await place_each(world, "quiet")
        await world.sleep(5)

    return p99(latencies(play(scenario).world, "quiet"))


@pytest.mark.spec("M-83")
@pytest.mark.fault("D2")
@pytest.mark.parametrize("seconds", [5, 10])
def test_a_project_that_answers_in_seconds_leaves_another_as_quick_as_alone(seconds: int) -> None:
    async def scenario(world: World) -> None:
        await prepare(world)
        world.links["noisy"].slow(timedelta(seconds=seconds))
        for number in range(200):
            await world.create("noisy", a_workload_document(f"slow-{number:03}"))
        world.process().start()
        await world.sleep(1)
        await place_each(world, "quiet")
        await world.sleep(5)

    assert p99(latencies(play(scenario).world, "quiet")) <= 2 * alone()


@pytest.mark.spec("M-83")
@pytest.mark.fault("G8")
@pytest.mark.fault("S17")
@pytest.mark.parametrize("keys", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_project_with_thousands_of_keys_leaves_another_as_quick_as_alone(keys: int) -> None:
    async def scenario(world: World) -> None:
        await prepare(world)
        for number in range(keys):
            await world.create("noisy", a_workload_document(f"many-{number:05}", {"us": ("LHR",)}))
        world.links["noisy"].slow(timedelta(milliseconds=5))
        world.process().start()
        await world.sleep(1)
        await place_each(world, "quiet")
        await world.sleep(5)

    assert p99(latencies(play(scenario).world, "quiet")) <= 2 * alone()


@pytest.mark.fault("G8")
@pytest.mark.fault("S17")
def test_a_hundred_edits_a_second_leave_another_project_as_quick_as_alone() -> None:
    async def edit(world: World) -> None:
        for number in range(1000):
            noted: JsonObject = {"annotations": {"n": f"{number}"}}
            body: JsonObject = {"spec": {"template": {"metadata": noted}}}
            await world.patch("noisy", WORKLOAD, f"w-{number % 10}", body)
            await world.sleep(0.01)

    async def scenario(world: World) -> None:
        await prepare(world)
        world.links["noisy"].slow(timedelta(milliseconds=5))
        for number in range(10):
            await world.create("noisy", a_workload_document(f"w-{number}"))
        world.process().start()
        await world.sleep(2)
        async with asyncio.TaskGroup() as both:
            both.create_task(edit(world), name="noise")
            both.create_task(place_each(world, "quiet"), name="quiet")
        await world.sleep(5)

    assert p99(latencies(play(scenario).world, "quiet")) <= 2 * alone()
