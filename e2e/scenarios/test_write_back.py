"""A cell writes its Instances back to the hub, and only those with linking labels."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    JsonObject,
    Needs,
    World,
    a_bare_deployment,
    an_instance,
    annotations_of,
    labels_of,
    object_at,
    owners_of,
    scenario,
    uid_of,
    within,
)

WD = "test-write-back-wd"
NAME = f"{WD}-7"


@pytest.mark.spec("E-05")
@scenario()
async def test_an_instance_of_a_cell_is_copied_to_the_hub(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD))
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    await world.eventually(lambda: hub.get(INSTANCE, f"{WD}-0"))
    root = await hub.get(DEPLOYMENT, WD)

    async def is_copied() -> None:
        source, copy = await cell.get(INSTANCE, f"{WD}-0"), await hub.get(INSTANCE, f"{WD}-0")
        for key in labels.LINKING_LABELS:
            assert labels_of(copy)[key] == labels_of(source)[key], key
        assert labels_of(copy)[labels.UPSTREAM_CLUSTER_NAME] == f"cluster-{project.name}"
        assert labels_of(copy)[labels.UPSTREAM_NAMESPACE] == project.namespace
        assert labels_of(copy)[labels.CELL] == DFW.name
        assert annotations_of(copy)[labels.INSTANCE_UID] == uid_of(source)
        (owner,) = owners_of(copy)
        assert (owner["kind"], owner["uid"]) == ("WorkloadDeployment", uid_of(root))
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
        assert object_at(copy, "status") == object_at(source, "status")

    await world.eventually(is_copied)


@pytest.mark.spec("E-05")
@scenario(Needs(is_alone=True, is_slow=True))
async def test_an_instance_without_linking_labels_gets_no_copy(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD))
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    owner = await world.eventually(lambda: cell.get(DEPLOYMENT, WD))
    await world.settle()
    refusals = "compute_writeback_refusals_total"
    before = world.operator_of(DFW).metric(refusals)
    stranger = an_instance(owner, 7)
    stranger["metadata"] = {"name": NAME, "namespace": cell.namespace}
    # With an unknown gate, so that no provider runs it and it does not change.
    gated: JsonObject = {"templateHash": "v1-0", "schedulingGates": [{"name": "Example"}]}
    stranger["spec"] = {**object_at(stranger, "spec"), "controller": gated}
    world.backend.leave(cell.name, INSTANCE, f"{cell.namespace}/{NAME}")
    # With quota, its slot has a claim, which stays as long.
    world.backend.leave(project.name, CLAIM, f"{project.namespace}/instance-{NAME}")
    await cell.create(stranger)

    async def is_counted() -> None:
        assert world.operator_of(DFW).metric(refusals, reason="missing_labels") > before

    await world.eventually(is_counted)
    reconciles = "controller_runtime_reconcile_total"
    reconciled = world.operator_of(DFW).metric(reconciles, controller="write-back")
    await world.stays(lambda: hub.expect_gone(INSTANCE, NAME), within(60, real=60))
    # The other Instance is at rest, so further reconciles are of the unlabelled one.
    assert world.operator_of(DFW).metric(reconciles, controller="write-back") - reconciled <= 2
