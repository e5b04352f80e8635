"""A project is suspended and resumes: what ran stops, nothing is lost, and the same comes back."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    ADMIN,
    BINDING,
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    SINGLE,
    WORKLOAD,
    ConditionView,
    JsonObject,
    Kind,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    a_placement,
    a_template,
    a_workload,
    annotations_of,
    condition_of,
    merge_of,
    name_of,
    objects_at,
    scenario,
    uid_of,
    value_at,
    within,
)

WD: Final = "web-default-dfw"
SLOTS: Final = (f"{WD}-0", f"{WD}-1")
CHAIN: Final = within(60, real=120)
SOON: Final = within(10, real=30)
OWN: Final = Needs(has_quota=True, has_own_projects=True)
SLOW: Final = Needs(has_quota=True, has_own_projects=True, is_slow=True)
UNCONFIRMED: Final = "compute_suspension_unconfirmed"
READY: Final = ("False", "Suspended", "Instance is suspended due to project suspension.")
AVAILABLE: Final = ("False", "Suspended", "Instance is suspended and not serving traffic.")


def _words(condition: ConditionView) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message


async def _run(world: World, replicas: int = 2) -> None:
    await world.project.create(a_workload("web", a_placement("default", "DFW", replicas=replicas)))
    await world.eventually(lambda: _is_ready(world, replicas), CHAIN)


async def _is_ready(world: World, replicas: int = 2) -> None:
    """The Workload runs, as its project shows it."""
    workload = await world.project.get(WORKLOAD, "web")
    assert condition_of(workload, "Ready").status == "True"
    assert await world.project.names(INSTANCE) == [f"{WD}-{n}" for n in range(replicas)]
    for one in await world.project.list(INSTANCE):
        assert condition_of(one, "Ready").status == "True", name_of(one)


async def _is_stopped(world: World, cell: Plane, *names: str) -> None:
    """These Instances exist, are suspended, and nothing of them runs."""
    deployment = await cell.get(DEPLOYMENT, WD)
    assert annotations_of(deployment).get(labels.SUSPENDED) == "true"
    assert value_at(deployment, "status", "suspended") is True
    instances = await cell.list(INSTANCE)
    assert [name_of(one) for one in instances] == list(names)
    for one in instances:
        assert value_at(one, "status", "suspended") is True, name_of(one)
    assert not {uid_of(one) for one in instances} & world.backend.running(cell.name)


async def _objects(plane: Plane, *kinds: Kind) -> dict[str, JsonObject]:
    return {f"{kind.name}/{name_of(one)}": one for kind in kinds for one in await plane.list(kind)}


async def _uids(plane: Plane, *kinds: Kind) -> dict[str, str]:
    return {name: uid_of(one) for name, one in (await _objects(plane, *kinds)).items()}


@pytest.mark.spec("SU-05", "SU-06")
@scenario(OWN)
async def test_a_suspended_project_stops_and_comes_back_as_it_was(world: World) -> None:
    await _run(world)
    project, hub = world.project, await world.hub_of(world.project)
    cell = await world.cell_of(DFW, project)
    await world.settle()
    kept = await _uids(cell, INSTANCE, BINDING), await _uids(project, CLAIM, INSTANCE)
    frozen = await _objects(project, WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM)
    await world.suspend()
    await world.eventually(lambda: _is_stopped(world, cell, *SLOTS), SOON)
    assert annotations_of(await hub.get(DEPLOYMENT, WD))[labels.SUSPENDED] == "true"
    await world.eventually(lambda: _is_shown(hub), SOON)
    await world.sleep(60, real=15)
    await _is_stopped(world, cell, *SLOTS)
    assert await _objects(project, WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM) == frozen
    await world.resume()
    await world.eventually(lambda: _is_resumed(world, hub, cell), CHAIN)
    await world.eventually(lambda: _is_ready(world), CHAIN)
    assert (await _uids(cell, INSTANCE, BINDING), await _uids(project, CLAIM, INSTANCE)) == kept


async def _is_shown(hub: Plane) -> None:
    """Karmada has aggregated what the cell reports, and the copies show it."""
    deployment = await hub.get(DEPLOYMENT, WD)
    assert value_at(deployment, "status", "suspended") is True
    assert condition_of(deployment, "Ready").reason == "Suspended"
    for name in SLOTS:
        instance = await hub.get(INSTANCE, name)
        assert _words(condition_of(instance, "Ready")) == READY
        assert _words(condition_of(instance, "Available")) == AVAILABLE


async def _is_resumed(world: World, hub: Plane, cell: Plane) -> None:
    for plane in (hub, cell):
        deployment = await plane.get(DEPLOYMENT, WD)
        assert labels.SUSPENDED not in annotations_of(deployment), plane.name
        assert value_at(deployment, "status", "suspended") is None, plane.name
    for one in await cell.list(INSTANCE):
        assert value_at(one, "status", "suspended") is None
        assert condition_of(one, "Ready").status == "True"
        assert uid_of(one) in world.backend.running(cell.name)


@pytest.mark.spec("SU-07", "SU-08", "SU-12")
@scenario(SLOW)
async def test_a_tenant_who_stops_a_deployment_reads_why_on_all_planes(world: World) -> None:
    await _run(world)
    project, hub = world.project, await world.hub_of(world.project)
    cell = await world.cell_of(DFW, project)
    stop = merge_of(annotations={labels.SUSPENDED: "true"})
    await project.patch(DEPLOYMENT, WD, stop)
    await world.eventually(lambda: _is_stopped(world, cell, *SLOTS), SOON)
    message = "The project is suspended; 2 instance(s) are suspended"

    async def is_shown() -> None:
        for plane in (cell, hub, project):
            for name in SLOTS:
                instance = await plane.get(INSTANCE, name)
                assert _words(condition_of(instance, "Ready")) == READY, plane.name
                assert _words(condition_of(instance, "Available")) == AVAILABLE, plane.name
                assert value_at(instance, "status", "suspended") is True, plane.name
            deployment = await plane.get(DEPLOYMENT, WD)
            assert value_at(deployment, "status", "suspended") is True, plane.name
            for kind in ("Available", "ReplicasReady", "Ready"):
                shown = _words(condition_of(deployment, kind))
                assert shown == ("False", "Suspended", message), (plane.name, kind)
        workload = await project.get(WORKLOAD, "web")
        placements: list[JsonObject] = [
            {"status": one} for one in objects_at(workload, "status", "placements")
        ]
        for one in (workload, *placements):
            for kind in ("Available", "Ready"):
                assert _words(condition_of(one, kind)) == ("False", "Suspended", message)

    await world.eventually(is_shown, CHAIN)
    await project.patch(DEPLOYMENT, WD, merge_of(annotations={labels.SUSPENDED: None}))
    await world.eventually(lambda: _is_ready(world), CHAIN)


@pytest.mark.spec("SU-09")
@scenario(SLOW)
async def test_what_is_ordered_of_a_suspended_project_waits_and_what_goes_goes(
    world: World,
) -> None:
    await _run(world)
    project = world.project
    exempt = project.as_user(ADMIN)  # the platform's own way past the refusal
    cell = await world.cell_of(DFW, project)
    before = await _uids(cell, INSTANCE)
    await world.suspend()
    await world.eventually(lambda: _is_stopped(world, cell, *SLOTS), SOON)
    template = a_template("2.0")
    template["metadata"] = {"annotations": {labels.RESTARTED_AT: "once"}}
    change: JsonObject = {"spec": {"template": template, "scaleSettings": {"minReplicas": 3}}}
    await exempt.patch(DEPLOYMENT, WD, change)

    async def has_arrived() -> None:
        deployment = await cell.get(DEPLOYMENT, WD)
        assert value_at(deployment, "spec", "scaleSettings", "minReplicas") == 3

    await world.eventually(has_arrived, CHAIN)
    await world.stays(lambda: _is_stopped(world, cell, *SLOTS), within(120, real=10))
    await cell.delete(INSTANCE, SLOTS[0])  # a slot without its Instance
    await world.eventually(lambda: cell.expect_gone(INSTANCE, SLOTS[0]), CHAIN)
    await world.stays(lambda: _is_stopped(world, cell, SLOTS[1]), within(120, real=10))
    assert (await _uids(cell, INSTANCE)).items() <= before.items()
    await exempt.patch(DEPLOYMENT, WD, {"spec": {"scaleSettings": {"minReplicas": 1}}})
    await world.eventually(lambda: cell.expect_gone(INSTANCE, *SLOTS), CHAIN)
    await project.delete(WORKLOAD, "web")  # by the tenant: a DELETE passes

    async def is_gone() -> None:
        for kind in (WORKLOAD, DEPLOYMENT, INSTANCE, CLAIM):
            assert await project.names(kind) == [], kind.name
        assert await cell.names(DEPLOYMENT) == []

    await world.eventually(is_gone, CHAIN)


@pytest.mark.spec("SU-13")
@scenario(Needs(has_quota=True, has_own_projects=True, is_alone=True, is_slow=True))
async def test_a_cell_that_was_cut_off_before_the_order_is_reported_until_it_acts(
    world: World,
) -> None:
    await _run(world)
    cell = await world.cell_of(DFW, world.project)
    await world.cut_off(DFW)
    await world.suspend()

    async def is_unconfirmed(cause: str, number: int) -> None:
        assert world.management.metric(UNCONFIRMED, cause=cause) == number, cause

    await world.eventually(lambda: is_unconfirmed("cell_unreachable", 1), within(300, real=300))
    for one in await cell.list(INSTANCE):
        assert uid_of(one) in world.backend.running(cell.name), "it has not heard the order"
    assert world.management.metric("compute_suspended_deployments") >= 1
    await world.reconnect(DFW)
    await world.eventually(lambda: _is_stopped(world, cell, *SLOTS), within(180, real=240))
    # Its Cluster may be Ready again before Karmada has gathered what the cell reports.
    for cause in ("cell_unreachable", "not_acted"):
        await world.eventually(partial(is_unconfirmed, cause, 0), CHAIN)
    await world.resume()
    await world.eventually(lambda: _is_ready(world), CHAIN)


@pytest.mark.spec("SU-19")
@scenario(Needs(cells=(SINGLE,), has_networking=False, is_single=True, is_alone=True, is_slow=True))
async def test_in_a_single_cluster_the_annotation_suffices(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment("web"))

    async def is_ready(status: str, reason: str) -> None:
        shown = condition_of(await project.get(DEPLOYMENT, "web"), "Ready")
        assert (shown.status, shown.reason) == (status, reason)

    await world.eventually(lambda: is_ready("True", "ReplicasAvailable"), CHAIN)
    before = await _uids(project, INSTANCE)
    await project.patch(DEPLOYMENT, "web", merge_of(annotations={labels.SUSPENDED: "true"}))
    await world.eventually(lambda: is_ready("False", "Suspended"), SOON)
    (instance,) = await project.list(INSTANCE)
    assert _words(condition_of(instance, "Ready")) == READY
    await project.patch(DEPLOYMENT, "web", merge_of(annotations={labels.SUSPENDED: None}))
    await world.eventually(lambda: is_ready("True", "ReplicasAvailable"), CHAIN)
    assert await _uids(project, INSTANCE) == before
