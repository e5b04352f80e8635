"""A compromised cell writes quota claims of other cells: other cities still get their quota, and
the platform is alerted with the name of the cell.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    DFW,
    INSTANCE,
    ORD,
    Needs,
    Plane,
    RefusedError,
    World,
    a_bare_deployment,
    a_claim,
    condition_of,
    labels_of,
    scenario,
    uid_of,
    within,
)

BOTH: Final = Needs(cells=(DFW, ORD), has_quota=True, is_alone=True)
# Sweeps are a quarter of an hour apart, on real planes too.
SLOW: Final = Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True)
REMOVED: Final = "compute_misplaced_claims_removed_total"
UNBACKED: Final = "compute_unbacked_claims"
MINUTE: Final = 60


async def _is_ready(project: Plane, name: str) -> None:
    assert condition_of(await project.get(INSTANCE, name), "Ready").status == "True"


def _longest_hold(cell: Plane, name: str) -> timedelta:
    """From the first report of the foreign claim to the grant, in the planes' time."""
    conditions = [
        (one.at, condition_of(one.object, "QuotaGranted"))
        for one in cell.versions(INSTANCE, name)
        if "QuotaGranted" in str(one.object)
    ]
    held = [at for at, condition in conditions if condition.reason == "QuotaMisconfigured"]
    granted = [at for at, condition in conditions if condition.status == "True"]
    assert held, "the squat was never seen"
    return granted[0] - held[0]


@pytest.mark.spec("AT-04")
@scenario(BOTH)
async def test_a_slot_taken_by_a_cell_of_another_city_is_granted_all_the_same(
    world: World,
) -> None:
    project = world.project
    await world.operator_of(DFW).kill()  # a genuine operator would release a claim without a slot
    rogue = project.as_user(f"compute:cell:{DFW.name}")
    with pytest.raises(RefusedError, match="403"):
        await rogue.create(a_claim(project.name, "web-ord-0", DFW.name))
    cell = await world.cell_of(ORD, project)
    for turn in range(2):
        name = f"slot{turn}"
        squat = uid_of(await rogue.create(a_claim(project.name, f"{name}-0", DFW.name)))
        await project.create(a_bare_deployment(name, "ORD"))
        await world.eventually(partial(_is_ready, project, f"{name}-0"), within(60, real=180))
        stands = await project.get(CLAIM, f"instance-{name}-0")
        assert uid_of(stands) != squat
        assert labels_of(stands)[labels.SOURCE_CLUSTER] == ORD.name
        if world.backend.name == "sim":
            assert _longest_hold(cell, f"{name}-0") <= timedelta(seconds=30)
        assert world.management.metric(REMOVED, cell=DFW.name) == turn + 1
    events = await world.hub.in_namespace("default").events(DFW.name, "MisplacedClaimRemoved")
    assert any(DFW.name in str(one.get("message")) for one in events)
    await world.operator_of(DFW).start()


@pytest.mark.spec("AT-04")
@scenario(BOTH)
async def test_a_claim_of_the_right_city_and_claims_of_others_stay(world: World) -> None:
    """Management does not remove backed claims, nor those of a tenant or another service."""
    project = world.project
    await project.create(a_bare_deployment("web", "ORD"))
    await world.eventually(partial(_is_ready, project, "web-0"), within(60, real=180))
    before = uid_of(await project.get(CLAIM, "instance-web-0"))
    manager = project.as_user("system:serviceaccount:compute-system:compute-management-operator")
    tenants = a_claim(project.name, "notes-0", DFW.name)
    tenants["metadata"] = {"name": "bucket-logs"}
    await project.create(tenants)
    with pytest.raises(RefusedError, match="403"):
        await manager.delete(CLAIM, "bucket-logs")
    await world.sleep(30)
    assert uid_of(await project.get(CLAIM, "instance-web-0")) == before
    assert world.management.metric(REMOVED, cell=ORD.name) == 0


@pytest.mark.spec("AT-07")
@scenario(SLOW)
async def test_claims_that_nothing_backs_are_found_and_named(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment("web", "ORD"))
    await world.eventually(partial(_is_ready, project, "web-0"), within(60, real=180))
    await world.operator_of(DFW).kill()
    rogue = project.as_user(f"compute:cell:{DFW.name}")
    for instance in ("nothing-0", "nothing-1"):
        await rogue.create(a_claim(project.name, instance, DFW.name))
        place = f"{project.namespace}/instance-{instance}"
        world.backend.leave(project.name, CLAIM, place)  # the operator that needs it is not running

    async def is_found() -> None:
        assert world.management.metric(UNBACKED, cell=DFW.name) == 2
        (event,) = await world.hub.in_namespace("default").events(DFW.name, "UnbackedClaims")
        for instance in ("nothing-0", "nothing-1"):
            assert f"{project.namespace}/instance-{instance}" in str(event.get("message"))

    await world.eventually(is_found, within(40 * MINUTE))
    assert world.management.metric(UNBACKED, cell=ORD.name) == 0
    assert await project.get(CLAIM, "instance-nothing-0"), "reported, never removed"
    await world.operator_of(DFW).start()

    async def is_over() -> None:
        assert world.management.metric(UNBACKED, cell=DFW.name) == 0

    await world.eventually(is_over, within(60 * MINUTE))
