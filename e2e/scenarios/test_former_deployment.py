"""A Workload with the name of an earlier one that is still being deleted on its cell."""

from __future__ import annotations

import pytest

from e2e.world.scenario import (
    DEPLOYMENT,
    DFW,
    INSTANCE,
    WORKLOAD,
    Kind,
    Needs,
    Plane,
    World,
    a_workload,
    condition_of,
    is_deleting,
    merge_of,
    scenario,
    uid_of,
    within,
)

WD = "web-default-dfw"
HOLD = "example.net/hold"
FORMER = 'The former deployment of this name is still being deleted in city "DFW"'
CHAIN = within(60, real=120)


async def _is_ready(project: Plane) -> None:
    assert condition_of(await project.get(WORKLOAD, "web"), "Ready").status == "True"


async def _names_the_former(project: Plane) -> None:
    for kind, name in ((DEPLOYMENT, WD), (WORKLOAD, "web")):
        ready = condition_of(await project.get(kind, name), "Ready")
        shown = (ready.status, ready.reason, ready.message)
        assert shown == ("False", "InstancesProvisioning", FORMER), kind.name


async def _hold_and_delete(world: World) -> None:
    """A foreign finalizer keeps the cell's copy; everything above it is deleted."""
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await cell.patch(DEPLOYMENT, WD, merge_of(finalizers=[HOLD]))
    await project.delete(WORKLOAD, "web")
    await world.eventually(lambda: project.expect_gone(WORKLOAD, "web"), CHAIN)
    await world.eventually(lambda: cell.expect_gone(INSTANCE, f"{WD}-0"), CHAIN)
    assert is_deleting(await cell.get(DEPLOYMENT, WD))


def _ready_over_time(plane: Plane, kind: Kind, name: str, uid: str) -> list[str]:
    """`Ready` in every version of the object with this UID."""
    return [
        condition_of(one.object, "Ready").status
        for one in plane.versions(kind, name)
        if uid_of(one.object) == uid and not one.is_gone
    ]


@pytest.mark.spec("OU-05", "E-60")
@scenario(Needs(has_quota=True))
async def test_a_workload_is_not_ready_by_the_status_of_its_former_deployment(
    world: World,
) -> None:
    project = world.project
    await project.create(a_workload("web"))
    await world.eventually(lambda: _is_ready(project), CHAIN)
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    await _hold_and_delete(world)
    workload = uid_of(await project.create(a_workload("web")))
    await world.eventually(lambda: _names_the_former(project), CHAIN)
    # Karmada has written the UID of the new one onto the terminating copy, and may do so again.
    await world.stays(lambda: _names_the_former(project), within(90, real=20))
    root = uid_of(await project.get(DEPLOYMENT, WD))
    copy = uid_of(await hub.get(DEPLOYMENT, WD))
    assert "True" not in _ready_over_time(project, WORKLOAD, "web", workload)
    assert "True" not in _ready_over_time(project, DEPLOYMENT, WD, root)
    assert "True" not in _ready_over_time(hub, DEPLOYMENT, WD, copy)
    await cell.patch(DEPLOYMENT, WD, merge_of(finalizers=[]))
    await world.eventually(lambda: _is_ready(project), CHAIN)
    assert uid_of(await project.get(WORKLOAD, "web")) == workload
    assert condition_of(await project.get(INSTANCE, f"{WD}-0"), "Ready").status == "True"


@pytest.mark.spec("OU-05", "E-60")
@scenario(Needs(has_quota=True, is_alone=True, is_slow=True))
async def test_the_last_status_of_a_former_deployment_does_not_count_either(world: World) -> None:
    """The cell operator is stopped, so nothing reports that the copy is being deleted."""
    project = world.project
    await project.create(a_workload("web"))
    await world.eventually(lambda: _is_ready(project), CHAIN)
    cell, operator = await world.cell_of(DFW, project), world.operator_of(DFW)
    await operator.kill()
    await cell.patch(DEPLOYMENT, WD, merge_of(finalizers=[HOLD]))
    await project.delete(WORKLOAD, "web")
    await world.eventually(lambda: project.expect_gone(WORKLOAD, "web"), CHAIN)
    workload = uid_of(await project.create(a_workload("web")))
    await world.eventually(lambda: _names_the_former(project), within(90, real=150))
    await operator.start()
    await world.eventually(lambda: cell.expect_gone(INSTANCE, f"{WD}-0"), CHAIN)
    assert "True" not in _ready_over_time(project, WORKLOAD, "web", workload)
    await cell.patch(DEPLOYMENT, WD, merge_of(finalizers=[]))
    await world.eventually(lambda: _is_ready(project), CHAIN)
