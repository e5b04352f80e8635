"""Everything below a deployment is owned by it and is deleted with it."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    NAMESPACE,
    PROJECT,
    JsonObject,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    a_namespace,
    an_instance,
    condition_of,
    labels_of,
    owners_of,
    scenario,
    uid_of,
    within,
)

WD = "test-fed-own-wd"
NAME = f"{WD}-0"


async def _run(world: World, project: Plane, name: str = WD) -> None:
    """Creates a bare deployment with one replica and waits until it is Ready in the project."""
    await project.create(a_bare_deployment(name))

    async def runs() -> None:
        shown = await project.get(INSTANCE, f"{name}-0")
        assert condition_of(shown, "Ready").status == "True"

    await world.eventually(runs, within(60, real=120))


@pytest.mark.spec("E-13")
@scenario(Needs(has_quota=True))
async def test_instances_belong_to_the_deployment_beside_them(world: World) -> None:
    await _run(world, world.project)
    for plane in (
        await world.hub_of(world.project),
        await world.cell_of(DFW, world.project),
    ):
        (owner,) = owners_of(await plane.get(INSTANCE, NAME))
        assert (owner["kind"], owner["name"]) == ("WorkloadDeployment", WD)
        assert owner["uid"] == uid_of(await plane.get(DEPLOYMENT, WD)), plane.name
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)


@pytest.mark.spec("E-14")
@scenario(Needs(has_quota=True))
async def test_a_copy_goes_with_its_hub_deployment_and_does_not_come_back(world: World) -> None:
    project = world.project
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    identity: JsonObject = {
        labels.UPSTREAM_CLUSTER_NAME: f"cluster-{project.name}",
        labels.UPSTREAM_NAMESPACE: project.namespace,
    }
    namespace = a_namespace(hub.namespace)
    namespace["metadata"] = {"name": hub.namespace, "labels": identity}
    await hub.create(namespace)
    await world.eventually(lambda: cell.get(NAMESPACE, cell.namespace))
    # Created by hand: no policy routes it and no project has it.
    made = await hub.create(a_bare_deployment(WD))
    instance = an_instance(made)
    instance["metadata"] = {
        "name": NAME,
        "namespace": cell.namespace,
        "labels": labels_of(instance),
    }
    # The claim of a slot stays as long as its Instance.
    world.backend.leave(cell.name, INSTANCE, f"{cell.namespace}/{NAME}")
    world.backend.leave(project.name, CLAIM, f"{project.namespace}/instance-{NAME}")
    await cell.create(instance)
    await world.eventually(lambda: hub.get(INSTANCE, NAME))
    await hub.delete(DEPLOYMENT, WD)
    await world.eventually(lambda: hub.expect_gone(INSTANCE, NAME), within(60, real=300))
    await world.stays(lambda: hub.expect_gone(INSTANCE, NAME), within(100))
    await cell.get(INSTANCE, NAME)
    # Otherwise its claim would be reported as one without a deployment.
    await cell.delete(INSTANCE, NAME)
    await world.eventually(lambda: project.expect_gone(CLAIM, f"instance-{NAME}"), within(60))


@pytest.mark.spec("E-15")
@scenario(Needs(has_quota=True, is_alone=True))
async def test_a_deployment_goes_although_its_cell_is_stopped(world: World) -> None:
    project = world.project
    await _run(world, project)
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    await world.operator_of(DFW).stop()
    await project.delete(DEPLOYMENT, WD)
    await world.eventually(lambda: project.expect_gone(DEPLOYMENT, WD), within(60))
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, WD), within(60))
    await world.eventually(lambda: hub.expect_gone(INSTANCE, NAME), within(120, real=300))
    await world.operator_of(DFW).start()
    await world.eventually(lambda: cell.expect_gone(INSTANCE, NAME), within(60))
    await world.eventually(lambda: project.expect_gone(CLAIM, f"instance-{NAME}"), within(60))
    await world.sleep(20)
    await hub.expect_gone(INSTANCE, NAME)
    await project.expect_gone(INSTANCE, NAME)


@pytest.mark.spec("E-16", "AT-12")
@scenario(Needs(has_quota=True))
async def test_a_namespace_goes_with_a_live_deployment_in_it(world: World) -> None:
    project = world.project
    await _run(world, project)
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    await project.delete(NAMESPACE, project.namespace)
    gone = within(120, real=300)
    await world.eventually(lambda: project.expect_gone(NAMESPACE, project.namespace), gone)
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, WD))
    await world.eventually(lambda: hub.expect_gone(NAMESPACE, hub.namespace), within(120))
    await world.eventually(lambda: cell.expect_gone(NAMESPACE, cell.namespace), within(60))


@pytest.mark.spec("E-17", "OU-07")
@scenario(Needs(projects=2, has_quota=True, is_alone=True, is_slow=True))
async def test_a_deleted_project_is_disengaged_by_all_operators(world: World) -> None:
    leaving, staying = world.projects
    for project in world.projects:
        await _run(world, project)
    hub, cell = await world.hub_of(leaving), await world.cell_of(DFW, leaving)
    await world.settle()
    untouched = len(world.writes(plane=staying.name))
    engaged = world.management.metric("compute_projects_engaged")
    await world.root.delete(PROJECT, leaving.name)
    await world.eventually(lambda: world.root.expect_gone(PROJECT, leaving.name), within(120))
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, WD), within(60))
    await world.eventually(lambda: cell.expect_gone(INSTANCE, NAME), within(60))

    async def is_disengaged() -> None:
        assert world.management.metric("compute_projects_engaged") == engaged - 1

    await world.eventually(is_disengaged)
    await world.eventually(lambda: hub.expect_gone(NAMESPACE, hub.namespace), within(120))
    await world.eventually(lambda: cell.expect_gone(NAMESPACE, cell.namespace), within(60))
    asked = len(world.requests(by="management", plane=leaving.name))
    # One more sweep for left claims: the sweep interval and five minutes.
    await world.sleep(15 * 60, real=1)
    by_cell = len(world.requests(by=DFW.name, plane=leaving.name))
    await world.sleep(20 * 60, real=120)
    assert len(world.requests(by="management", plane=leaving.name)) == asked
    if world.backend.name == "sim":
        assert len(world.requests(by=DFW.name, plane=leaving.name)) == by_cell
    assert len(world.writes(plane=staying.name)) == untouched
