"""`kubectl compute why` names the stage at which a Workload is stopped, for each of the twelve.

Each scenario stops one stage by what brings it about, looks, lets go, and waits until all is Ready.
The look is one read of the planes; where later stages are on other planes, it is repeated without
them.
"""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    ADMIN,
    CLUSTER,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    POLICY,
    WORKLOAD,
    JsonObject,
    Needs,
    Plane,
    World,
    a_placement,
    a_template,
    a_workload,
    condition_of,
    finalizers_of,
    generation_of,
    merge_of,
    number_at,
    objects_at,
    scenario,
    text_at,
    uid_of,
    value_at,
    within,
)

ALONE = Needs(has_quota=True, is_alone=True, is_slow=True)
SOON = within(60, real=180)
WEB = "web"
WD = "web-default-dfw"
SLOT = f"{WD}-0"
LATE = "late-default-dfw"
HOLD = "example.com/hold"
ONLY_PROJECT = ("--planes", "project")
WITHOUT_CELLS = ("--planes", "project,hub")


async def _why(world: World, *words: str, name: str = WEB) -> JsonObject:
    """The answer; its exit code is that of its verdict."""
    result = await world.compute("why", name, "-o", "json", *words)
    try:
        answer: JsonObject = json.loads(result.output)
    except ValueError:
        raise AssertionError(f"exit {result.code}: {result.output}") from None
    expected = {"ready": 0, "waiting": 1, "deleting": 1, "not visible": 3}
    assert result.code == expected[text_at(answer, "verdict")], result.output
    return answer


async def _stands_at(world: World, stage: int, *words: str, name: str = WEB) -> JsonObject:
    answer = await _why(world, *words, name=name)
    (city,) = objects_at(answer, "cities")
    assert number_at(city, "stage") == stage, json.dumps(answer, indent=1)
    assert text_at(answer, "verdict") == "waiting"
    assert text_at(city, "owner")
    assert objects_at(city, "evidence")
    return answer


async def _is_ready(world: World, *names: str) -> None:
    for name in names or (WEB,):
        answer = await _why(world, name=name)
        assert text_at(answer, "verdict") == "ready", json.dumps(answer, indent=1)
        assert objects_at(answer, "contradictions") == []


async def _run(world: World, name: str = WEB) -> None:
    await world.project.create(a_workload(name))
    await _ends_well(world, name)


async def _ends_well(world: World, *names: str) -> None:
    """The status of the Workload is asked first, because a command costs more than a request."""
    for name in names or (WEB,):
        await world.eventually(partial(_shows_ready, world, name), SOON)
    await world.eventually(lambda: _is_ready(world, *names))


async def _shows_ready(world: World, name: str) -> None:
    one = await world.project.get(WORKLOAD, name)
    assert condition_of(one, "Ready").status == "True"


def _placed(replicas: int) -> JsonObject:
    return {"spec": {"placements": [a_placement(replicas=replicas)]}}


def _hold(document: JsonObject) -> None:
    """Adds a finalizer that nothing removes by itself."""
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    metadata["finalizers"] = [*finalizers_of(document), HOLD]


def _release(document: JsonObject) -> None:
    metadata = document["metadata"]
    assert isinstance(metadata, dict)
    metadata["finalizers"] = [one for one in finalizers_of(document) if one != HOLD]


async def _exists(plane: Plane, name: str) -> None:
    await plane.get(DEPLOYMENT, name)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_management_operator_far_from_the_project_stops_stage_1(world: World) -> None:
    project = world.project
    await _run(world)
    await world.settle()
    # Slow instead of cut, and an edit: admission asks the project about new Workloads.
    await world.backend.slow(world.management.name, project.name, timedelta(seconds=30))
    await project.patch(WORKLOAD, WEB, _placed(2))
    for words in ((), ONLY_PROJECT):
        answer = await _stands_at(world, 1, *words)
        assert text_at(answer, "actionability") == "transient"
    await world.sleep(6)
    answer = await _stands_at(world, 1)
    assert text_at(answer, "actionability") == "stalled"
    await world.management.heal(project.name)
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_deployment_that_federation_has_not_taken_up_stands_at_stage_2(
    world: World,
) -> None:
    project = world.project.as_user(ADMIN)
    await _run(world)
    await world.settle()
    await world.management.cut(project.name)
    await project.patch(DEPLOYMENT, WD, merge_of(finalizers=None))
    for words in ((), ONLY_PROJECT):
        await _stands_at(world, 2, *words)
    await world.management.heal(project.name)
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_hub_that_management_does_not_reach_stops_stage_3(world: World) -> None:
    await _run(world)
    await world.settle()
    await world.management.cut(HUB)
    await world.project.patch(WORKLOAD, WEB, _placed(2))

    async def stands() -> None:
        for words in ((), WITHOUT_CELLS):
            answer = await _stands_at(world, 3, *words)
            assert "generation" in json.dumps(objects_at(answer, "cities"))

    await world.eventually(stands)
    await world.management.heal(HUB)
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_policy_that_is_being_deleted_stops_stage_4(world: World) -> None:
    await _run(world)
    hub = await world.hub_of(world.project)
    await hub.edit(POLICY, "city-dfw", _hold)
    await hub.delete(POLICY, "city-dfw")
    await world.project.create(a_workload("late"))
    wanted = await world.eventually(lambda: world.project.get(DEPLOYMENT, LATE))
    # Management makes no copy before the policy; one by hand stands for a policy that went later.
    await world.management.cut(HUB)
    copied: JsonObject = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.name,
        "metadata": {
            "name": LATE,
            "annotations": {labels.PROJECT_GENERATION: str(generation_of(wanted))},
        },
        "spec": wanted["spec"],
    }
    await hub.create(copied)
    for words in ((), WITHOUT_CELLS):
        await world.eventually(partial(_stands_at, world, 4, *words, name="late"))
    await hub.delete(DEPLOYMENT, LATE)
    await world.eventually(lambda: hub.expect_gone(DEPLOYMENT, LATE))
    await hub.edit(POLICY, "city-dfw", _release)
    await world.management.heal(HUB)
    await _ends_well(world, WEB, "late")


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_city_without_a_cluster_stops_stage_5(world: World) -> None:
    city: JsonObject = {labels.TOPOLOGY_CITY_CODE: None}
    await world.hub.patch(CLUSTER, DFW.name, merge_of(labels=city))
    await world.project.create(a_workload())

    async def stands() -> None:
        for words in ((), WITHOUT_CELLS):
            answer = await _stands_at(world, 5, *words)
            assert text_at(answer, "actionability") == "platform"

    await world.eventually(stands)
    again: JsonObject = {labels.TOPOLOGY_CITY_CODE: "DFW"}
    await world.hub.patch(CLUSTER, DFW.name, merge_of(labels=again))
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_member_that_karmada_does_not_reach_stops_stage_6(world: World) -> None:
    await _run(world)
    await world.settle()
    await world.backend.cut_member(DFW.name)
    await world.project.patch(WORKLOAD, WEB, _placed(2))

    async def stands() -> None:
        for words in ((), WITHOUT_CELLS):
            answer = await _stands_at(world, 6, *words)
            assert text_at(answer, "object", "kind") == "Cluster"

    await world.eventually(stands, SOON)
    await world.backend.heal_member(DFW.name)
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_karmada_that_delivers_nothing_stops_stage_7(world: World) -> None:
    await _run(world)
    hub = await world.hub_of(world.project)
    await hub.patch(POLICY, "city-dfw", {"spec": {"suspension": {"dispatching": True}}})
    await world.settle()
    await world.project.patch(WORKLOAD, WEB, _placed(2))
    await world.eventually(lambda: _stands_at(world, 7))
    await hub.patch(POLICY, "city-dfw", {"spec": {"suspension": None}})
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_cell_operator_that_is_down_stops_stage_8(world: World) -> None:
    await world.operator_of(DFW).stop()
    await world.project.create(a_workload())
    cell = await world.cell_of(DFW, world.project)
    await world.eventually(lambda: _exists(cell, WD))
    await world.eventually(lambda: _stands_at(world, 8))
    await world.operator_of(DFW).start()
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_quota_service_that_does_not_answer_stops_stage_9(world: World) -> None:
    await world.backend.pause_quota()
    await world.project.create(a_workload())
    await world.eventually(lambda: _stands_at(world, 9))
    answer = await world.eventually(lambda: _stands_at(world, 9, *ONLY_PROJECT))
    assert text_at(answer, "object", "kind") == "Instance"
    await world.backend.resume_quota()
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_provider_that_starts_nothing_stops_stage_10(world: World) -> None:
    await world.project.create(a_workload(template=a_template("hang")))
    await world.eventually(lambda: _stands_at(world, 10))
    await world.eventually(lambda: _stands_at(world, 10, *ONLY_PROJECT))
    await world.project.patch(WORKLOAD, WEB, {"spec": {"template": a_template("2.0")}})
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_write_back_that_is_cut_stops_stage_11(world: World) -> None:
    operator = world.operator_of(DFW)
    await operator.cut(HUB)
    await world.project.create(a_workload())
    await world.eventually(lambda: _stands_at(world, 11), SOON)
    await operator.heal(HUB)
    await _ends_well(world)


@pytest.mark.spec("WY-02")
@scenario(ALONE)
async def test_a_projection_that_is_behind_stops_stage_12(world: World) -> None:
    project = world.project
    await _run(world)
    await world.settle()
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    former = uid_of(await cell.get(INSTANCE, SLOT))
    await world.management.cut(project.name)
    await cell.delete(INSTANCE, SLOT)

    async def is_replaced() -> None:
        copy = await hub.get(INSTANCE, SLOT)
        source = value_at(copy, "metadata", "annotations", labels.INSTANCE_UID)
        assert source not in {None, former}

    await world.eventually(is_replaced, SOON)
    await world.eventually(lambda: _stands_at(world, 12))
    await world.management.heal(project.name)
    await _ends_well(world)
