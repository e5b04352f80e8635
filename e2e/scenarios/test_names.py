"""Names that are similar, very long or differ in case stay distinct, bounded and unchanged."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLUSTER,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    ORD,
    Needs,
    World,
    a_placement,
    a_workload,
    annotations_of,
    generation_of,
    labels_of,
    merge_of,
    name_of,
    scenario,
    text_at,
    uid_of,
)

LONG = "w" + "-x" * 126  # 253 characters, the longest name of an object


@pytest.mark.spec("E-12")
@scenario(Needs(runs_cells=False))
async def test_names_that_read_alike_give_two_deployments(world: World) -> None:
    project = world.project
    await project.create(a_workload("a-b", a_placement("c", "DFW")))
    await world.eventually(lambda: project.get(DEPLOYMENT, "a-b-c-dfw"))
    first = await project.get(DEPLOYMENT, "a-b-c-dfw")
    # Milo answers the first request for a kind in a new project with 429; it may be the scenario's.
    await world.settle()
    await project.create(a_workload("a", a_placement("b-c", "DFW")))

    async def are_two() -> None:
        deployments = await project.list(DEPLOYMENT)
        by_workload = {text_at(one, "spec", "workloadRef", "name"): one for one in deployments}
        assert sorted(by_workload) == ["a", "a-b"], [name_of(one) for one in deployments]
        assert name_of(by_workload["a"]) != name_of(by_workload["a-b"])

    await world.eventually(are_two)
    await world.settle()
    after = await project.get(DEPLOYMENT, "a-b-c-dfw")
    assert (uid_of(after), generation_of(after)) == (uid_of(first), generation_of(first))


@pytest.mark.spec("E-12")
@scenario(Needs(has_quota=False))
async def test_the_longest_name_is_shortened_everywhere(world: World) -> None:
    project = world.project
    await project.create(a_workload(LONG, a_placement("p" * 40, "DFW", replicas=1)))
    hub = await world.hub_of(project)
    cell = await world.cell_of(DFW, project)

    async def has_arrived() -> None:
        for plane in (project, hub, cell):
            deployments = await plane.list(DEPLOYMENT)
            assert len(deployments) == 1, f"{len(deployments)} deployments on {plane.name}"
        assert await cell.list(INSTANCE)

    await world.eventually(has_arrived)
    for plane in (project, hub, cell):
        for kind in (DEPLOYMENT, INSTANCE):
            for one in await plane.list(kind):
                # A deployment's name leaves room for the ordinal of the thousandth replica.
                room = len("-999") if kind is DEPLOYMENT else 0
                assert len(name_of(one)) + room <= 63, name_of(one)
                assert all(len(str(value)) <= 63 for value in labels_of(one).values())
    (instance,) = await cell.list(INSTANCE)
    assert annotations_of(instance)[labels.WORKLOAD_NAME] == LONG


@pytest.mark.spec("E-12")
@scenario(Needs(cells=(DFW, ORD), is_alone=True))
async def test_a_city_code_is_taken_literally(world: World) -> None:
    project = world.project
    await world.hub.patch(CLUSTER, ORD.name, merge_of(labels={labels.TOPOLOGY_CITY_CODE: "dfw"}))
    await project.create(a_workload("web", a_placement("default", "DFW")))
    right, wrong = await world.cell_of(DFW, project), await world.cell_of(ORD, project)
    await world.eventually(lambda: right.get(DEPLOYMENT, "web-default-dfw"))
    await world.sleep(10)
    assert not [one for one in wrong.versions(DEPLOYMENT) if not one.is_gone]
