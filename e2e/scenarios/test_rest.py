"""A settled installation is at rest: no operator writes and nothing changes."""

from __future__ import annotations

import pytest

from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    NAMESPACE,
    ORD,
    POLICY,
    ROOT,
    WORKLOAD,
    Needs,
    Plane,
    World,
    a_placement,
    a_workload,
    condition_of,
    name_of,
    scenario,
    version_of,
    within,
)

KINDS = (NAMESPACE, WORKLOAD, DEPLOYMENT, INSTANCE, POLICY, CLAIM)


@pytest.mark.spec("E-10")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True))
async def test_a_settled_world_makes_no_mutating_request(world: World) -> None:
    project = world.project
    placements = (a_placement("tx", "DFW", replicas=2), a_placement("il", "ORD", replicas=2))
    await project.create(a_workload("web", *placements))

    async def is_ready() -> None:
        workload = await project.get(WORKLOAD, "web")
        assert condition_of(workload, "Ready").status == "True"

    await world.eventually(is_ready, within(90, real=180))
    await world.settle()
    writes, versions = len(world.writes()), await _versions(world)
    await world.sleep(600, real=120)
    assert world.writes()[writes:] == []
    assert await _versions(world) == versions


async def _versions(world: World) -> dict[str, str]:
    """Every object of our kinds on every plane."""
    planes = (ROOT, world.project.name, HUB, DFW.name, ORD.name)
    return {
        f"{plane} {kind.name} {name_of(one)}": version_of(one)
        for plane in planes
        for kind in KINDS
        for one in await Plane(world.backend, plane).list(kind, everywhere=True)
    }
