"""One plain cluster is enough: no Karmada, no quota, no networking."""

from __future__ import annotations

from functools import partial

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    CLUSTER,
    DEPLOYMENT,
    INSTANCE,
    POLICY,
    SINGLE,
    WORKLOAD,
    JsonObject,
    Needs,
    Plane,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    gates_of,
    scenario,
    uid_of,
    within,
)

NAME = "web-default-dfw-0"


async def _is_replaced(project: Plane, first: str) -> None:
    assert uid_of(await project.get(INSTANCE, NAME)) != first


@pytest.mark.spec("E-45")
@scenario(Needs(cells=(SINGLE,), has_networking=False, is_single=True, is_alone=True))
async def test_a_workload_lives_its_life_on_one_plain_cluster(world: World) -> None:
    project = world.project
    await project.create(a_workload("web"))

    async def runs() -> None:
        instance = await project.get(INSTANCE, NAME)
        assert condition_of(instance, "Ready").status == "True"
        assert condition_of(instance, "QuotaGranted").reason == "QuotaDisabled"
        workload = await project.get(WORKLOAD, "web")
        assert condition_of(workload, "Ready").status == "True"

    await world.eventually(runs, within(60))
    assert all("Network" not in gates_of(one.object) for one in project.versions(INSTANCE, NAME))
    first = uid_of(await project.get(INSTANCE, NAME))
    changes: tuple[JsonObject, ...] = (
        {"template": a_template("2.0")},
        {"template": a_template("2.0", annotations={labels.RESTARTED_AT: "now"})},
    )
    for change in changes:
        await project.patch(WORKLOAD, "web", {"spec": change})
        await world.eventually(partial(_is_replaced, project, first), within(60))
        await world.eventually(runs, within(60))
        first = uid_of(await project.get(INSTANCE, NAME))
    scaled: JsonObject = {"spec": {"placements": [a_placement("default", "DFW", replicas=2)]}}
    await project.patch(WORKLOAD, "web", scaled)
    await world.eventually(lambda: project.get(INSTANCE, "web-default-dfw-1"))
    for kind in (CLAIM, CLUSTER, POLICY):
        assert await project.list(kind, everywhere=True) == []
    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        await project.expect_gone(WORKLOAD, "web")
        for kind in (DEPLOYMENT, INSTANCE):
            assert await project.list(kind) == []

    await world.eventually(is_gone, within(60))
