"""During an outage running Instances continue, conditions name no internals, and all is caught
up.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    BINDING,
    CLAIM,
    CLUSTER,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    ORD,
    WORKLOAD,
    JsonObject,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    a_placement,
    a_workload,
    condition_of,
    finalizers_of,
    name_of,
    number_at,
    scenario,
    text_at,
    uid_of,
    within,
)

MIN_REPLICAS = ("spec", "scaleSettings", "minReplicas")
ALONE = Needs(has_quota=True, is_alone=True, is_slow=True)


async def _are_ready(plane: Plane, *names: str) -> None:
    for name in names:
        instance = await plane.get(INSTANCE, name)
        assert condition_of(instance, "Ready").status == "True", name


async def _run(world: World, name: str, city: str = "DFW", replicas: int = 1) -> None:
    await world.project.create(a_bare_deployment(name, city, replicas=replicas))
    names = [f"{name}-{ordinal}" for ordinal in range(replicas)]
    await world.eventually(lambda: _are_ready(world.project, *names), within(90, real=180))


def _replicas(count: int) -> JsonObject:
    return {"spec": {"scaleSettings": {"minReplicas": count}}}


@pytest.mark.spec("E-34")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True))
async def test_a_cell_that_is_away_runs_on_and_catches_up(world: World) -> None:
    project = world.project
    await _run(world, "stays", replicas=2)
    await _run(world, "goes")
    await _run(world, "other", "ORD")
    cell, other = await world.cell_of(DFW, project), await world.cell_of(ORD, project)
    await world.settle()
    running = {name_of(one): uid_of(one) for one in await cell.list(INSTANCE)}
    shown = len(project.versions(INSTANCE, "stays-0"))
    await world.cut_off(DFW)
    await project.patch(DEPLOYMENT, "stays", _replicas(3))
    await project.delete(DEPLOYMENT, "goes")
    await project.patch(DEPLOYMENT, "other", _replicas(2))
    await world.eventually(lambda: _are_ready(project, "other-1"), within(60, real=120))
    await world.sleep(300)
    assert {name_of(one): uid_of(one) for one in await cell.list(INSTANCE)} == running
    # One write states that the city is not heard (dark-sites.md 4), and none follows.
    assert len(project.versions(INSTANCE, "stays-0")) == shown + 1
    dark = condition_of(await project.get(INSTANCE, "stays-0"), "Ready")
    assert (dark.status, dark.reason) == ("Unknown", "CellUnreachable")
    assert condition_of(await project.get(INSTANCE, "other-0"), "Ready").status == "True"
    assert await other.names(INSTANCE) == ["other-0", "other-1"]
    await world.reconnect(DFW)

    async def has_caught_up() -> None:
        assert await cell.names(INSTANCE) == ["stays-0", "stays-1", "stays-2"]
        await _are_ready(project, "stays-0", "stays-1", "stays-2")
        await project.expect_gone(INSTANCE, "goes-0")

    await world.eventually(has_caught_up, within(60, real=120))
    for name in ("stays-0", "stays-1"):
        assert uid_of(await cell.get(INSTANCE, name)) == running[name]


@pytest.mark.spec("E-35")
@scenario(ALONE)
async def test_a_hub_that_is_away_is_no_users_business(world: World) -> None:
    project = world.project
    for name in ("edited", "deleted"):
        await _run(world, name)
    hub = await world.hub_of(project)
    await world.settle()
    for operator in (world.management, world.operator_of(DFW)):
        await operator.cut(HUB)
    await project.create(a_bare_deployment("created"))
    await project.patch(DEPLOYMENT, "edited", _replicas(2))
    await project.delete(DEPLOYMENT, "deleted")
    await world.sleep(600, real=180)
    assert world.management.metric("compute_plane_up", plane="hub") == 0
    held = await project.get(DEPLOYMENT, "deleted")
    assert labels.FEDERATION_FINALIZER in finalizers_of(held)
    for operator in (world.management, world.operator_of(DFW)):
        await operator.heal(HUB)

    async def has_caught_up() -> None:
        await project.expect_gone(DEPLOYMENT, "deleted")
        await hub.expect_gone(DEPLOYMENT, "deleted")
        await _are_ready(project, "created-0", "edited-0", "edited-1")

    await world.eventually(has_caught_up, within(60, real=120))


@pytest.mark.spec("E-36")
@scenario(Needs(projects=2, has_quota=True, is_alone=True, is_slow=True))
async def test_a_project_that_is_away_delays_no_other(world: World) -> None:
    slow, other = world.projects
    hub = await world.hub_of(other)
    # Milo answers the first request for a kind in a new project with 429; that is over now.
    await _time_to_hub(world, other, hub, "first")
    await world.settle()
    baseline = await _time_to_hub(world, other, hub, "before")
    await world.backend.slow("management", slow.name, timedelta(seconds=10))
    await slow.create(a_bare_deployment("late"))
    await world.sleep(5)
    during = await _time_to_hub(world, other, hub, "slow")
    await world.management.cut(slow.name)
    await world.sleep(60)
    away = await _time_to_hub(world, other, hub, "away")
    # The error of polling, which is in both times.
    poll = within(0.2, real=1).on(world.backend.name)
    assert max(during, away) <= 2 * baseline + poll
    await world.management.heal(slow.name)
    late = await world.hub_of(slow)
    await world.eventually(lambda: late.get(DEPLOYMENT, "late"), within(60))


async def _time_to_hub(world: World, project: Plane, hub: Plane, name: str) -> timedelta:
    begun = world.backend.now()
    await project.create(a_bare_deployment(name))
    await world.eventually(lambda: hub.get(DEPLOYMENT, name))
    return world.backend.now() - begun


@pytest.mark.spec("E-37")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True))
async def test_a_cell_that_is_lost_does_not_hold_a_workload(world: World) -> None:
    project = world.project
    await project.create(a_workload("web", a_placement("default", "DFW")))
    await world.eventually(lambda: _are_ready(project, "web-default-dfw-0"), within(60, real=120))
    hub = await world.hub_of(project)
    claim = "instance-web-default-dfw-0"
    await world.lose(DFW)
    await world.hub.delete(CLUSTER, DFW.name)
    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        await project.expect_gone(DEPLOYMENT, "web-default-dfw")
        await project.expect_gone(INSTANCE, "web-default-dfw-0")
        await hub.expect_gone(DEPLOYMENT, "web-default-dfw")
        await hub.expect_gone(INSTANCE, "web-default-dfw-0")

    await world.eventually(is_gone, within(120))
    await world.sleep(60)
    assert text_at(await project.get(CLAIM, claim), "metadata", "name") == claim
    done = await world.backend.decommission("--cell", DFW.name, "--execute")
    assert done.code == 0, done.output
    await project.expect_gone(CLAIM, claim)
    ends = [one for one in project.versions(CLAIM, claim) if one.is_gone]
    assert len(ends) == 1


@pytest.mark.spec("E-38")
@scenario(Needs(has_quota=True, is_alone=True))
async def test_management_killed_at_any_point_goes_on_where_it_was(world: World) -> None:
    project = world.project
    hub = await world.hub_of(project)
    await _run(world, "unchanged")
    await world.settle()
    quiet = len(_writes_about(world, "unchanged"))
    for name, is_so in (
        ("after-namespace", lambda: _has_finalizer(project, "after-namespace")),
        ("after-deployment", lambda: hub.get(DEPLOYMENT, "after-deployment")),
        ("after-policy", lambda: _run_is_visible(project, "after-policy-0")),
    ):
        await project.create(a_bare_deployment(name))
        await world.eventually(is_so)
        await world.management.kill()
        await world.management.start()
        await world.eventually(partial(_are_ready, project, f"{name}-0"), within(60, real=120))
    await world.settle()
    assert len(_writes_about(world, "unchanged")) == quiet
    created = [
        one.name
        for one in world.requests(by="management", plane=HUB, resource="workloaddeployments")
        if one.verb == "create" and one.status == 201
    ]
    assert len(created) == len(set(created))


@pytest.mark.spec("E-38")
@scenario(Needs(runs_cells=False, is_alone=True))
async def test_management_that_was_down_writes_what_changed_and_nothing_else(world: World) -> None:
    project = world.project
    hub = await world.hub_of(project)
    count = 1000 if world.backend.name == "sim" else 100
    names = [f"many-{number}" for number in range(count)]
    for name in names:
        # No cell serves this city; only the time to the hub is measured.
        await project.create(a_bare_deployment(name, "ORD"))

    async def are_federated() -> None:
        assert len(await hub.names(DEPLOYMENT)) == count

    await world.eventually(are_federated, within(120, real=240))
    await world.settle(within(300))
    await world.management.kill()
    edited = set(names[:: 100 // 3])
    for name in edited:
        await project.patch(DEPLOYMENT, name, _replicas(2))
    before = len(world.writes(by="management"))
    await world.management.start()

    async def is_caught_up() -> None:
        for name in edited:
            assert number_at(await hub.get(DEPLOYMENT, name), *MIN_REPLICAS) == 2, name

    await world.eventually(is_caught_up, within(30, real=60))
    await world.settle()
    # Status follows an edit; nothing is created, and unedited objects are not written.
    since = world.writes(by="management")[before:]
    assert {one.name for one in since if one.resource == DEPLOYMENT.plural} == edited
    assert [one for one in since if one.verb == "create" and one.resource != "events"] == []


def _writes_about(world: World, name: str) -> list[str]:
    return [one.name for one in world.writes(by="management") if one.name.startswith(name)]


async def _has_finalizer(project: Plane, name: str) -> None:
    assert labels.FEDERATION_FINALIZER in finalizers_of(await project.get(DEPLOYMENT, name))


async def _run_is_visible(project: Plane, name: str) -> None:
    await project.get(INSTANCE, name)


@pytest.mark.spec("E-39")
@scenario(Needs(has_quota=True, replicas=2, is_alone=True, expects_errors=True))
async def test_a_frozen_leader_is_replaced_and_writes_no_more(world: World) -> None:
    project = world.project
    await _run(world, "before")
    for name in ("management", DFW.name):
        await world.backend.freeze_leader(name)
    await project.create(a_bare_deployment("during"))
    hub = await world.hub_of(project)
    # The Lease expires and the other replica takes it: 17 s, and the time of a deployment to the
    # hub.
    await world.eventually(lambda: hub.get(DEPLOYMENT, "during"), within(19, real=25))
    await world.sleep(3)
    for name in ("management", DFW.name):
        await world.backend.thaw(name)
    await world.eventually(lambda: _are_ready(project, "during-0"), within(60, real=120))
    await world.sleep(20)
    for plane in (project, hub, await world.cell_of(DFW, project)):
        assert await plane.names(INSTANCE) == ["before-0", "during-0"], plane.name
    assert len(await project.list(CLAIM)) == 2


@pytest.mark.spec("E-40")
@scenario(Needs(has_networking=False, is_alone=True, is_slow=True))
async def test_kinds_that_come_late_are_taken_up(world: World) -> None:
    project = world.project
    # Without networking in the cell and without quota, everything else works.
    await project.create(a_bare_deployment("before"))
    await world.eventually(lambda: _are_ready(project, "before-0"), within(60, real=120))
    await world.backend.install_networking(DFW.name)
    await world.sleep(60, pods=60)
    await project.create(a_bare_deployment("after"))
    cell = await world.cell_of(DFW, project)

    async def is_networked() -> None:
        assert "after-net-0" in await cell.names(BINDING)
        await _are_ready(project, "after-0")

    # The operator had a minute to detect it; now only the usual time of a deployment is left.
    await world.eventually(is_networked)
    await _are_ready(project, "before-0")
