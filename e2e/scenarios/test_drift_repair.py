"""Manual changes of our objects are repaired, and fields of other writers are kept."""

from __future__ import annotations

from functools import partial

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    DEPLOYMENT,
    DFW,
    INSTANCE,
    NAMESPACE,
    POLICY,
    JsonObject,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    annotations_of,
    condition_of,
    finalizers_of,
    labels_of,
    merge_of,
    number_at,
    object_at,
    scenario,
    text_at,
    uid_of,
    within,
)

WD = "test-drift-wd"
NAME = f"{WD}-0"
FOREIGN: JsonObject = {"example.net/foreign": "kept"}


@pytest.mark.spec("E-11")
@scenario(Needs(has_quota=True))
async def test_drift_is_repaired_and_foreign_marks_survive(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD))
    hub = await world.hub_of(project)

    async def runs() -> None:
        assert condition_of(await project.get(INSTANCE, NAME), "Ready").status == "True"

    await world.eventually(runs, within(60, real=120))
    await world.settle()
    marks = merge_of(labels=FOREIGN, annotations=FOREIGN)
    await hub.patch(DEPLOYMENT, WD, marks)
    await hub.patch(NAMESPACE, hub.namespace, marks)
    await project.patch(DEPLOYMENT, WD, marks)

    await _break_policy(world, hub)
    await hub.patch(DEPLOYMENT, WD, {"spec": {"scaleSettings": {"minReplicas": 5}}})

    async def spec_is_back() -> None:
        copy = await hub.get(DEPLOYMENT, WD)
        assert number_at(copy, "spec", "scaleSettings", "minReplicas") == 1

    await world.eventually(spec_is_back, within(30))

    stripped: JsonObject = dict.fromkeys(labels.IDENTITY_LABELS)
    await hub.patch(NAMESPACE, hub.namespace, merge_of(labels=stripped))

    async def identity_is_back() -> None:
        for plane in (hub, world.cell(DFW)):
            namespace_labels = labels_of(await plane.get(NAMESPACE, hub.namespace))
            assert (
                namespace_labels.get(labels.UPSTREAM_CLUSTER_NAME) == f"cluster-{project.name}"
            ), plane.name
            assert namespace_labels.get(labels.UPSTREAM_NAMESPACE) == project.namespace, plane.name

    await world.eventually(identity_is_back, within(30))

    await project.patch(INSTANCE, NAME, merge_of(labels={labels.CELL: "elsewhere"}))

    async def projection_is_right() -> None:
        shown, source = await project.get(INSTANCE, NAME), await hub.get(INSTANCE, NAME)
        assert labels_of(shown)[labels.CELL] == labels_of(source)[labels.CELL]
        assert object_at(shown, "spec") == object_at(source, "spec")

    await world.eventually(projection_is_right, within(30))
    await project.delete(INSTANCE, NAME)
    await world.eventually(projection_is_right, within(30))
    await hub.delete(INSTANCE, NAME)
    await world.eventually(projection_is_right, within(30))
    await project.patch(DEPLOYMENT, WD, merge_of(finalizers=[]))

    async def finalizer_is_back() -> None:
        assert labels.FEDERATION_FINALIZER in finalizers_of(await project.get(DEPLOYMENT, WD))

    await world.eventually(finalizer_is_back, within(30))
    for document in (
        await hub.get(DEPLOYMENT, WD),
        await hub.get(NAMESPACE, hub.namespace),
        await project.get(DEPLOYMENT, WD),
    ):
        assert labels_of(document)["example.net/foreign"] == "kept"
        assert annotations_of(document)["example.net/foreign"] == "kept"


async def _break_policy(world: World, hub: Plane) -> None:
    former = uid_of(await hub.get(POLICY, "city-dfw"))
    await hub.delete(POLICY, "city-dfw")

    async def policy_is_back() -> None:
        assert uid_of(await hub.get(POLICY, "city-dfw")) != former

    await world.eventually(policy_is_back, within(30))

    async def policy_is_right() -> None:
        policy = await hub.get(POLICY, "city-dfw")
        assert text_at(policy, "spec", "conflictResolution") == "Overwrite"

    async def is_reported(times: int) -> None:
        events = await hub.events("city-dfw", "PolicyRepaired")
        assert [number_at(one, "count") for one in events] == [times]

    for times in (1, 2):  # one Event counts both
        await hub.patch(POLICY, "city-dfw", {"spec": {"conflictResolution": "Abort"}})
        await world.eventually(policy_is_right, within(30))
        await world.eventually(partial(is_reported, times), within(30))
