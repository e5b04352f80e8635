"""Operators need no rights beyond the shipped ones."""

from __future__ import annotations

import pytest

from e2e.world.scenario import (
    DEPLOYMENT,
    DFW,
    INSTANCE,
    WORKLOAD,
    Needs,
    Plane,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    scenario,
    within,
)


async def _is_ready(project: Plane) -> None:
    assert condition_of(await project.get(WORKLOAD, "web"), "Ready").status == "True"


@pytest.mark.spec("E-42")
@scenario(Needs(has_quota=True))
async def test_a_whole_life_meets_no_refusal(world: World) -> None:
    """`e2e.harness.deploy.rights_report` evaluates the records of the whole suite."""
    project = world.project
    await project.create(a_workload("web", a_placement("default", "DFW", replicas=2)))
    await world.eventually(lambda: _is_ready(project), within(90, real=180))
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("2.0")}})
    await world.settle()
    await world.eventually(lambda: _is_ready(project), within(90, real=180))
    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        cell = await world.cell_of(DFW, project)
        assert await cell.names(INSTANCE) == []
        assert await project.names(DEPLOYMENT) == []
        await project.expect_gone(WORKLOAD, "web")

    await world.eventually(is_gone, within(60, real=120))
    refused = [
        one
        for one in world.requests()
        if one.status == 403 and one.user in {"management", DFW.name}
    ]
    assert refused == []
