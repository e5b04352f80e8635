"""A tenant that names another tenant's hub namespace on a deployment reaches only its own."""

from __future__ import annotations

from functools import partial

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    DEPLOYMENT,
    NAMESPACE,
    POLICY,
    Needs,
    World,
    a_bare_deployment,
    merge_of,
    scenario,
    version_of,
    within,
)


@pytest.mark.spec("E-18")
@scenario(Needs(projects=2, runs_cells=False))
async def test_a_forged_federation_namespace_affects_no_other_project(world: World) -> None:
    mallory, victim = world.projects
    for project in world.projects:
        await project.create(a_bare_deployment("web"))
    own, foreign = await world.hub_of(mallory), await world.hub_of(victim)
    for hub in (own, foreign):
        await world.eventually(partial(hub.get, DEPLOYMENT, "web"))
        await world.eventually(partial(hub.get, POLICY, "city-dfw"))
    await world.settle()

    async def strangers_versions() -> list[str]:
        objects = [
            await foreign.get(NAMESPACE, foreign.namespace),
            *await foreign.list(DEPLOYMENT),
            *await foreign.list(POLICY),
        ]
        return [version_of(one) for one in objects]

    before = await strangers_versions()
    forged = merge_of(annotations={labels.FEDERATION_NAMESPACE: foreign.namespace})
    await mallory.patch(DEPLOYMENT, "web", forged)
    await mallory.delete(DEPLOYMENT, "web")
    await world.eventually(lambda: mallory.expect_gone(DEPLOYMENT, "web"), within(30, real=60))
    await world.eventually(lambda: own.expect_gone(DEPLOYMENT, "web"))
    await world.eventually(lambda: own.expect_gone(POLICY, "city-dfw"))
    await world.sleep(10)
    assert await strangers_versions() == before
