"""A Workload that cannot run is refused with the fields to correct; a valid one is admitted."""

from __future__ import annotations

import pytest

from e2e.world.scenario import (
    DEPLOYMENT,
    POLICY,
    WORKLOAD,
    JsonObject,
    Needs,
    Plane,
    RefusedError,
    World,
    a_placement,
    a_template,
    a_workload,
    finalizers_of,
    merge_of,
    objects_at,
    scenario,
    within,
)


async def _refusal(plane: Plane, document: JsonObject) -> RefusedError:
    """The refusal of a create; an admitted Workload fails the scenario."""
    try:
        await plane.create(document)
    except RefusedError as refused:
        return refused
    raise AssertionError("a Workload was admitted that must not be")


async def _refused_edit(plane: Plane, name: str, change: JsonObject) -> RefusedError:
    try:
        await plane.patch(WORKLOAD, name, change)
    except RefusedError as refused:
        return refused
    raise AssertionError("an edit was admitted that must not be")


@pytest.mark.spec("E-44")
@scenario(Needs(runs_cells=False))
async def test_invalid_workloads_are_refused_and_valid_ones_admitted(world: World) -> None:
    project = world.project
    unknown_city = await _refusal(project, a_workload("web", a_placement("default", "XYZ")))
    assert unknown_city.status == 422
    assert unknown_city.fields == ("spec.placements[0].cityCodes[0]",)
    twice = a_workload("web", a_placement("one", "DFW"), a_placement("one", "DFW"))
    # By the schema already, a map by name, which holds while the webhook is away.
    assert (await _refusal(project, twice)).fields == ("spec.placements[1]",)
    forged = a_template(annotations={"compute.datumapis.com/cell": "dfw-1"})
    assert (await _refusal(project, a_workload("web", template=forged))).status == 422

    begun = world.backend.now()
    await project.create(a_workload("web"))
    assert world.backend.now() - begun <= within(1).on(world.backend.name)
    admitted = await project.get(WORKLOAD, "web")
    await world.eventually(lambda: project.get(DEPLOYMENT, "web-default-dfw"))
    placements = [*objects_at(admitted, "spec", "placements"), a_placement("more", "XYZ")]
    refused = await _refused_edit(project, "web", {"spec": {"placements": [*placements]}})
    assert refused.status == 422
    assert refused.fields == ("spec.placements[1].cityCodes[0]",)
    scaled = [a_placement("default", "DFW", replicas=2)]
    await project.patch(WORKLOAD, "web", {"spec": {"placements": [*scaled]}})


@pytest.mark.spec("E-44")
@scenario(Needs(runs_cells=False, is_alone=True))
async def test_nothing_is_admitted_without_the_webhook(world: World) -> None:
    project = world.project
    await project.create(a_workload("web"))
    hub = await world.hub_of(project)
    await world.eventually(lambda: hub.get(POLICY, "city-dfw"))
    await world.backend.set_webhook(is_up=False)
    assert (await _refusal(project, a_workload("more"))).status == 500
    change: JsonObject = {"spec": {"placements": [a_placement("default", "DFW", replicas=2)]}}
    assert (await _refused_edit(project, "web", change)).status == 500

    # Existing objects are still reconciled: a deleted policy is created again.
    await hub.delete(POLICY, "city-dfw")
    await world.eventually(lambda: hub.get(POLICY, "city-dfw"))
    await world.backend.set_webhook(is_up=True)
    await project.delete(WORKLOAD, "web")
    await world.eventually(lambda: project.expect_gone(WORKLOAD, "web"), within(30, real=60))


@pytest.mark.spec("E-44")
@scenario(Needs(runs_cells=False, is_alone=True))
async def test_a_project_that_is_not_engaged_is_refused_but_gives_up_finalizers(
    world: World,
) -> None:
    await world.management.cut("late")
    late = await world.add_project("late")
    refused = await _refusal(late, a_workload("web"))
    assert refused.status == 500
    await world.management.heal("late")

    async def is_admitted() -> None:
        await late.create(a_workload("web"))

    await world.eventually(is_admitted, within(60, real=120))
    await world.eventually(lambda: late.get(DEPLOYMENT, "web-default-dfw"), within(60))
    assert finalizers_of(await late.get(WORKLOAD, "web"))
    await world.management.cut("late")
    await world.sleep(30)
    # An edit that leaves the spec unchanged is admitted without reading the Locations.
    await late.patch(WORKLOAD, "web", merge_of(finalizers=["example.net/hold"]))
    await late.patch(WORKLOAD, "web", merge_of(finalizers=[]))
    await late.delete(WORKLOAD, "web")
    await world.management.heal("late")
    await world.eventually(lambda: late.expect_gone(WORKLOAD, "web"), within(60, real=120))
