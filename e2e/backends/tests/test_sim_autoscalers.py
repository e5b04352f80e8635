"""The simulated controller of autoscalers drives a deployment through the operators, in hours of
virtual time that no real plane could be given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from compute_sim_planes.json_types import JsonObject
from e2e.backends.sim.scheduler import SimScheduler
from e2e.world.components import add_component, restart
from e2e.world.documents import a_placement, a_template, a_workload
from e2e.world.kinds import DEPLOYMENT, INSTANCE, WORKLOAD
from e2e.world.objects import name_of, number_at, text_at
from e2e.world.port import DFW, Backend, Needs
from e2e.world.scenario import Plane, World, condition_of, within

WD: Final = "web-default-dfw"
NEEDS: Final = Needs()
ON: Final[JsonObject] = {"autoscaling": {"mode": "on"}}
SOON: Final = within(120)


def _scaled(least: int, most: int) -> JsonObject:
    placement = a_placement("default", "DFW", replicas=least)
    metric: JsonObject = {"resource": {"name": "cpu", "target": {"averageUtilization": 60}}}
    settings = placement["scaleSettings"]
    assert isinstance(settings, dict)
    settings |= {"maxReplicas": most, "metrics": [metric]}
    return placement


async def _start(world: World) -> Plane:
    """An autoscaled Workload of two to six, with Kubernetes' side simulated."""
    await add_component(world.cell(DFW), "autoscaling/cell")
    await restart(world.operator_of(DFW), ON)
    await world.autoscalers.start_autoscalers(DFW.name)
    await world.project.create(a_workload("web", _scaled(2, 6)))
    return await world.cell_of(DFW, world.project)


async def _runs(cell: Plane, replicas: int) -> None:
    assert await cell.names(INSTANCE) == [f"{WD}-{n}" for n in range(replicas)]
    assert number_at(await cell.get(DEPLOYMENT, WD), "status", "readyReplicas") == replicas


def _play(name: str, body: Callable[[World], Awaitable[None]]) -> None:
    async def run(backend: Backend) -> None:
        await body(World(backend, NEEDS))

    SimScheduler().run(name, NEEDS, run)


@pytest.mark.spec("AS-02", "AS-03")
def test_the_number_follows_the_load_within_its_bounds() -> None:
    async def body(world: World) -> None:
        cell = await _start(world)
        await world.eventually(lambda: _runs(cell, 2), SOON)
        world.autoscalers.set_load(DFW.name, WD, 4)
        await world.eventually(lambda: _runs(cell, 4), SOON)
        world.autoscalers.set_load(DFW.name, WD, 9)
        await world.eventually(lambda: _runs(cell, 6), SOON)
        limited = condition_of(await world.project.get(WORKLOAD, "web"), "AutoscalingLimited")
        assert (limited.status, limited.reason) == ("True", "TooManyReplicas")
        world.autoscalers.set_load(DFW.name, WD, 1)
        await world.sleep(30)
        await _runs(cell, 6)  # the stabilisation
        await world.eventually(lambda: _runs(cell, 2), within(300))

    _play("load", body)


@pytest.mark.spec("AS-16", "AS-18")
def test_without_metrics_the_number_stands_and_nothing_is_written() -> None:
    async def body(world: World) -> None:
        cell = await _start(world)
        world.autoscalers.set_load(DFW.name, WD, 4)
        await world.eventually(lambda: _runs(cell, 4), SOON)
        world.autoscalers.set_pod_metrics(DFW.name, is_up=False)
        await world.sleep(3600)  # oracle O3 refuses every write of the operators at rest
        await _runs(cell, 4)
        for plane, kind, name in ((cell, DEPLOYMENT, WD), (world.project, WORKLOAD, "web")):
            ready = condition_of(await plane.get(kind, name), "AutoscalingReady")
            assert (ready.status, ready.reason) == ("False", "FailedGetResourceMetric")
        world.autoscalers.set_pod_metrics(DFW.name, is_up=True)
        world.autoscalers.set_load(DFW.name, WD, 5)
        await world.eventually(lambda: _runs(cell, 5), SOON)

    _play("no metrics", body)


@pytest.mark.spec("AS-15")
def test_growth_during_a_roll_comes_before_healthy_instances_are_rolled() -> None:
    async def body(world: World) -> None:
        cell = await _start(world)
        world.autoscalers.set_load(DFW.name, WD, 4)
        await world.eventually(lambda: _runs(cell, 4), SOON)
        world.autoscalers.set_load(DFW.name, WD, 6)
        await cell.patch(DEPLOYMENT, WD, {"spec": {"replicas": 6}}, subresource="scale")
        await world.project.patch(WORKLOAD, "web", {"spec": {"template": a_template("1.1")}})
        await world.sleep(300)
        await _runs(cell, 6)
        created = {
            name_of(one): text_at(one, "metadata", "creationTimestamp")
            for one in await cell.list(INSTANCE)
        }
        rolled = [created[f"{WD}-{n}"] for n in range(4)]
        assert max(created[f"{WD}-4"], created[f"{WD}-5"]) <= min(rolled)

    _play("roll", body)
