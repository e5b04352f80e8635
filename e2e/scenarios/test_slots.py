"""A slot keeps its claim, a lost cell is cleaned up by a command, a city with two cells is
reported.
"""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    CLUSTER,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    ORD,
    Cell,
    JsonObject,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    a_placement,
    a_workload,
    condition_of,
    counters_of,
    gates_of,
    merge_of,
    name_of,
    scenario,
    uid_of,
    version_of,
    within,
)

# Its operator has no city setting and accepts every deployment it is given.
UNTOLD = Cell("ord-1", "ORD", has_city_setting=False)


async def _are_ready(plane: Plane, *names: str) -> None:
    for name in names:
        instance = await plane.get(INSTANCE, name)
        assert condition_of(instance, "Ready").status == "True", name


async def _claims(project: Plane, prefix: str) -> dict[str, str]:
    return {
        name_of(one): uid_of(one)
        for one in await project.list(CLAIM)
        if name_of(one).startswith(f"instance-{prefix}-")
    }


@pytest.mark.spec("E-46")
@scenario(Needs(has_quota=True, has_own_projects=True, is_slow=True))
async def test_a_slot_keeps_its_claim_until_it_is_given_up(world: World) -> None:
    project = world.project
    await world.grant(3)
    await project.create(a_bare_deployment("first", replicas=3))
    names = ("first-0", "first-1", "first-2")
    await world.eventually(lambda: _are_ready(project, *names), within(120, real=240))
    await project.create(a_bare_deployment("second"))

    async def waits() -> None:
        instance = await project.get(INSTANCE, "second-0")
        assert "Quota" in gates_of(instance)
        assert condition_of(instance, "QuotaGranted").reason == "QuotaExceeded"

    await world.eventually(waits, within(60))
    await world.settle(within(60))
    claims, cell = await _claims(project, "first"), await world.cell_of(DFW, project)
    first = uid_of(await cell.get(INSTANCE, "first-0"))
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(DEPLOYMENT, "first", {"spec": {"template": restart}})

    async def is_restarted() -> None:
        assert uid_of(await cell.get(INSTANCE, "first-0")) != first
        await _are_ready(project, *names)

    await world.eventually(is_restarted, within(120, real=240))
    killed = uid_of(await cell.get(INSTANCE, "first-1"))
    await cell.delete(INSTANCE, "first-1")

    async def is_back() -> None:
        assert uid_of(await cell.get(INSTANCE, "first-1")) != killed
        await _are_ready(project, *names)

    await world.eventually(is_back, within(60, real=120))
    await waits()
    assert await _claims(project, "first") == claims
    await project.patch(DEPLOYMENT, "first", {"spec": {"scaleSettings": {"minReplicas": 2}}})
    await world.eventually(lambda: project.expect_gone(CLAIM, "instance-first-2"), within(60))
    # quota.md B6: a denied claim is tried again after at most five minutes.
    await world.eventually(lambda: _are_ready(project, "second-0"), within(360))


@pytest.mark.spec("E-47")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_alone=True))
async def test_a_lost_cell_is_decommissioned_at_a_word(world: World) -> None:
    project = world.project
    placements = (a_placement("tx", "DFW"), a_placement("il", "ORD"))
    await project.create(a_workload("web", *placements))
    names = ("web-tx-dfw-0", "web-il-ord-0")
    await world.eventually(lambda: _are_ready(project, *names), within(90, real=180))
    hub = await world.hub_of(project)
    await world.lose(DFW)
    await world.settle()
    other = version_of(await hub.get(INSTANCE, "web-il-ord-0"))
    arguments = ("--cell", DFW.name)
    refused = await world.backend.decommission(*arguments, "--execute")
    assert refused.code == 2, refused.output
    await world.hub.delete(CLUSTER, DFW.name)
    await world.eventually(lambda: world.hub.expect_gone(CLUSTER, DFW.name), within(60))
    user_named = "person:decommissioning"
    written = len(world.writes(by=user_named))
    listed = await world.backend.decommission(*arguments)
    assert listed.code == 0, listed.output
    assert len(world.writes(by=user_named)) == written
    for name in ("web-tx-dfw-0", "instance-web-tx-dfw-0"):
        assert name in listed.output
    done = await world.backend.decommission(*arguments, "--execute")
    assert done.code == 0, done.output
    await hub.expect_gone(INSTANCE, "web-tx-dfw-0")
    await project.expect_gone(CLAIM, "instance-web-tx-dfw-0")
    await world.eventually(lambda: project.expect_gone(INSTANCE, "web-tx-dfw-0"), within(60))
    last = await world.backend.decommission(*arguments)
    assert last.code == 0, last.output
    assert "web-tx-dfw-0" not in last.output
    assert version_of(await hub.get(INSTANCE, "web-il-ord-0")) == other
    assert {one.status for one in world.requests(by=user_named)} <= {200, 404}


@pytest.mark.spec("E-48")
@scenario(Needs(cells=(DFW, UNTOLD), has_quota=True, is_alone=True, is_slow=True))
async def test_two_cells_in_one_city_are_reported_and_harm_nothing(world: World) -> None:
    project = world.project
    await project.create(a_workload("web", a_placement("default", "DFW")))
    name, wd = "web-default-dfw-0", "web-default-dfw"
    await world.eventually(lambda: _are_ready(project, name), within(60, real=120))
    hub = await world.hub_of(project)
    cell, second = await world.cell_of(DFW, project), await world.cell_of(UNTOLD, project)
    await world.settle()

    async def versions() -> list[str]:
        return [
            version_of(await cell.get(INSTANCE, name)),
            version_of(await hub.get(INSTANCE, name)),
            version_of(await project.get(CLAIM, f"instance-{name}")),
        ]

    before = await versions()
    city = labels.TOPOLOGY_CITY_CODE
    await world.hub.patch(CLUSTER, UNTOLD.name, merge_of(labels={city: "DFW"}))

    async def is_reported() -> None:
        assert world.management.metric("compute_federation_ambiguous_cities") == 1
        assert len(await hub.events("city-dfw", "AmbiguousCity")) == 1
        held = await second.get(INSTANCE, name)
        assert condition_of(held, "QuotaGranted").reason == "QuotaMisconfigured"
        assert "Quota" in gates_of(held)
        refusals = "compute_writeback_refusals_total"
        assert world.operator_of(UNTOLD).metric(refusals, reason="other_cell") > 0
        for plane in (hub, project):
            deployment = await plane.get(DEPLOYMENT, wd)
            assert counters_of(deployment)[0] == 2, plane.name
            assert condition_of(deployment, "Available").status == "True"

    await world.eventually(is_reported, within(60, real=120))
    assert await versions() == before
    await world.hub.patch(CLUSTER, UNTOLD.name, merge_of(labels={city: "ORD"}))

    async def is_over() -> None:
        assert world.management.metric("compute_federation_ambiguous_cities") == 0
        for kind in (DEPLOYMENT, INSTANCE):
            assert await second.names(kind) == []

    await world.eventually(is_over, within(60, real=120))
    assert await versions() == before
    assert len(world.requests(plane=HUB)) > 0
