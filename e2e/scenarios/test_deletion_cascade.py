"""A deleted deployment is deleted with all its dependents on every plane."""

from __future__ import annotations

import pytest

from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    POLICY,
    Needs,
    World,
    a_bare_deployment,
    condition_of,
    scenario,
    within,
)

WD = "test-federation-wd"


@pytest.mark.spec("E-02")
@scenario(Needs(has_quota=True))
async def test_a_deleted_deployment_leaves_nothing_behind(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD))
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)

    async def runs() -> None:
        shown = await project.get(INSTANCE, f"{WD}-0")
        assert condition_of(shown, "Ready").status == "True"

    await world.eventually(runs, within(60, real=120))
    assert await project.names(CLAIM) == [f"instance-{WD}-0"]
    await project.delete(DEPLOYMENT, WD)
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, WD), within(30))
    await world.eventually(lambda: project.expect_gone(DEPLOYMENT, WD), within(30))
    await world.eventually(lambda: hub.expect_gone(POLICY, "city-dfw"), within(30))
    await world.eventually(lambda: cell.expect_gone(DEPLOYMENT, WD), within(60))
    await world.eventually(lambda: cell.expect_gone(INSTANCE, f"{WD}-0"), within(60))
    await world.eventually(lambda: project.expect_gone(CLAIM, f"instance-{WD}-0"), within(60))
    await world.eventually(lambda: project.expect_gone(INSTANCE, f"{WD}-0"), within(60))
