"""Projects and cells with similar names, or with hostile credentials, stay isolated."""

from __future__ import annotations

from functools import partial

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    NAMESPACE,
    ORD,
    POLICY,
    WORKLOAD,
    JsonObject,
    Kind,
    Needs,
    Plane,
    RefusedError,
    World,
    a_bare_deployment,
    a_hub_instance,
    a_workload,
    annotations_of,
    condition_of,
    labels_of,
    merge_of,
    scenario,
    version_of,
    within,
)


async def _is_ready(plane: Plane, name: str) -> None:
    assert condition_of(await plane.get(INSTANCE, name), "Ready").status == "True"


@pytest.mark.spec("E-41")
@scenario(Needs(projects=2, has_quota=True))
async def test_two_projects_with_the_same_names_never_meet(world: World) -> None:
    leaving, staying = world.projects
    for project in world.projects:
        await world.grant(1, project=project)
        await project.create(a_workload("web"))
    for project in world.projects:
        await world.eventually(
            partial(_is_ready, project, "web-default-dfw-0"), within(60, real=120)
        )
        assert await project.names(CLAIM) == ["instance-web-default-dfw-0"]
    assert await world.hub_namespace(leaving) != await world.hub_namespace(staying)
    for project in world.projects:
        shown = labels_of(await project.get(INSTANCE, "web-default-dfw-0"))
        assert shown[labels.UPSTREAM_CLUSTER_NAME] == f"cluster-{project.name}"
    await world.settle()
    hub = await world.hub_of(staying)
    before = (
        len(world.writes(plane=staying.name)),
        version_of(await hub.get(DEPLOYMENT, "web-default-dfw")),
    )
    await leaving.delete(WORKLOAD, "web")
    await world.eventually(lambda: leaving.expect_gone(WORKLOAD, "web"), within(60))
    await world.sleep(30)
    after = (
        len(world.writes(plane=staying.name)),
        version_of(await hub.get(DEPLOYMENT, "web-default-dfw")),
    )
    assert after == before


async def _refused(plane: Plane, kind: Kind, name: str, change: JsonObject | None) -> int:
    """The status code that refuses a patch, or a delete if there is no change."""
    try:
        if change is None:
            await plane.delete(kind, name)
        else:
            await plane.patch(kind, name, change)
    except RefusedError as refused:
        return refused.status
    raise AssertionError(f"{plane.user} was let near {kind.name} {name}")


@pytest.mark.spec("E-43")
@scenario(Needs(cells=(DFW, ORD), is_alone=True, expects_errors=True))
async def test_a_cell_cannot_touch_what_is_another_ones(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment("theirs", "ORD"))
    await project.create(a_bare_deployment("ours", "DFW"))
    hub = await world.hub_of(project)
    for name in ("theirs-0", "ours-0"):
        await world.eventually(partial(_is_ready, project, name), within(60, real=120))
    await world.settle()
    rogue = hub.as_user(f"compute:cell:{DFW.name}")
    mark = merge_of(annotations={"example.net/was": "here"})
    assert await _refused(rogue, INSTANCE, "theirs-0", mark) == 403
    assert await _refused(rogue, INSTANCE, "theirs-0", None) == 403
    stolen = merge_of(labels={labels.CELL: DFW.name})
    assert await _refused(rogue, INSTANCE, "theirs-0", stolen) == 403
    assert await _refused(rogue, DEPLOYMENT, "ours", mark) == 403
    assert await _refused(rogue, NAMESPACE, hub.namespace, mark) == 403
    with pytest.raises(RefusedError, match="403"):
        await rogue.list(POLICY)
    root = await hub.get(DEPLOYMENT, "theirs")
    namespace_labels = labels_of(await hub.get(NAMESPACE, hub.namespace))
    identity = {key: namespace_labels[key] for key in labels.IDENTITY_LABELS}
    with pytest.raises(RefusedError, match="403"):
        await rogue.create(a_hub_instance(root, identity, ORD.name, 5))

    # With its own label it may write but is quarantined, as the city belongs to another cell. A
    # genuine operator would delete such a copy, so it is killed.
    await world.operator_of(DFW).kill()
    await rogue.create(a_hub_instance(root, identity, DFW.name, 6))
    name = "theirs-6"

    async def is_quarantined() -> None:
        noted = annotations_of(await hub.get(INSTANCE, name))
        assert noted.get(labels.QUARANTINE_REASON) == "cell_city_mismatch"
        assert len(await hub.events(name, "QuarantinedCellCityMismatch")) == 1

    await world.eventually(is_quarantined)
    await world.stays(lambda: project.expect_gone(INSTANCE, name), within(20))
    await world.operator_of(DFW).start()
    await world.eventually(lambda: hub.expect_gone(INSTANCE, name), within(60))
