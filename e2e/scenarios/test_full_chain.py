"""From a Workload to running Instances, seen in the project: one city, another, both."""

from __future__ import annotations

import pytest

from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    NAMESPACE,
    ORD,
    POLICY,
    WORKLOAD,
    Cell,
    Needs,
    World,
    a_placement,
    a_workload,
    condition_of,
    counters_of,
    gates_of,
    number_at,
    scenario,
    within,
)

CHAIN = within(60, real=120)


async def _runs(world: World, cell: Cell, wd: str) -> None:
    """Everything that holds once a Workload with one city and one replica runs."""
    project = world.project
    hub, member = await world.hub_of(project), await world.cell_of(cell, project)
    instance = f"{wd}-0"

    async def is_ready() -> None:
        await hub.get(POLICY, f"city-{cell.city.lower()}")
        assert gates_of(await member.get(INSTANCE, instance)) == []
        await hub.get(INSTANCE, instance)
        shown = await project.get(INSTANCE, instance)
        assert condition_of(shown, "Ready").status_and_reason == ("True", "Available")
        assert await project.names(CLAIM) == [f"instance-{instance}"]
        for plane in (hub, project):
            deployment = await plane.get(DEPLOYMENT, wd)
            assert counters_of(deployment) == (1, 1, 1, 1, 1), f"on {plane.name}"
            for name in ("ReplicasReady", "Ready"):
                assert condition_of(deployment, name).status_and_reason == (
                    "True",
                    "ReplicasAvailable",
                )
        workload = await project.get(WORKLOAD, "web")
        available = condition_of(workload, "Available")
        assert available.status_and_reason == ("True", "AvailablePlacementFound")
        assert condition_of(workload, "Ready").status_and_reason == ("True", "PlacementsReady")

    await world.eventually(is_ready, CHAIN)


@pytest.mark.spec("E-06")
@scenario(Needs(has_quota=True))
async def test_a_workload_runs_in_its_city(world: World) -> None:
    await world.project.create(a_workload("web"))
    await _runs(world, DFW, "web-default-dfw")
    cell = await world.cell_of(DFW, world.project)
    first = cell.versions(INSTANCE, "web-default-dfw-0")[0].object
    assert sorted(gates_of(first)) == ["Network", "Quota"]
    assert condition_of(first, "Ready").status != "True"


@pytest.mark.spec("E-07")
@scenario(Needs(cells=(DFW, ORD), has_quota=True))
async def test_a_workload_of_another_city_leaves_this_one_alone(world: World) -> None:
    await world.project.create(a_workload("web", a_placement("default", "ORD")))
    await _runs(world, ORD, "web-default-ord")
    other = await world.cell_of(DFW, world.project)
    assert await other.find(NAMESPACE, other.namespace)
    assert other.versions(DEPLOYMENT) == []
    assert other.versions(INSTANCE) == []


@pytest.mark.spec("E-08")
@scenario(Needs(cells=(DFW, ORD), has_quota=True))
async def test_one_workload_runs_in_two_cities_and_leaves_one(world: World) -> None:
    project = world.project
    texas, illinois = a_placement("tx", "DFW", replicas=2), a_placement("il", "ORD", replicas=2)
    await project.create(a_workload("web", texas, illinois))
    hub = await world.hub_of(project)

    async def both_run() -> None:
        assert await hub.names(DEPLOYMENT) == ["web-il-ord", "web-tx-dfw"]
        assert await hub.names(POLICY) == ["city-dfw", "city-ord"]
        for cell in (DFW, ORD):
            member = await world.cell_of(cell, project)
            assert len(await member.list(INSTANCE)) == 2
        shown = await project.list(INSTANCE)
        assert [condition_of(one, "Ready").status for one in shown] == ["True"] * 4
        workload = await project.get(WORKLOAD, "web")
        for counter in ("replicas", "desiredReplicas", "readyReplicas"):
            assert number_at(workload, "status", counter) == 4, counter

    await world.eventually(both_run, within(90, real=180))
    await project.patch(WORKLOAD, "web", {"spec": {"placements": [texas]}})

    async def one_is_left() -> None:
        assert await hub.names(DEPLOYMENT) == ["web-tx-dfw"]
        assert await hub.names(POLICY) == ["city-dfw"]
        left = ["web-tx-dfw-0", "web-tx-dfw-1"]
        assert await project.names(INSTANCE) == left
        assert await (await world.cell_of(DFW, project)).names(INSTANCE) == left
        assert await (await world.cell_of(ORD, project)).names(INSTANCE) == []
        assert await project.names(CLAIM) == [f"instance-{name}" for name in left]

    await world.eventually(one_is_left, within(60, real=120))
