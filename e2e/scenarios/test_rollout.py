"""Changes reach Instances one slot at a time, in order, and a failing one stops the rollout."""

from __future__ import annotations

from functools import partial

import pytest

from compute_api_types import labels, template_hash
from e2e.world.scenario import (
    BINDING,
    CLAIM,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    ORD,
    POLICY,
    WORKLOAD,
    JsonObject,
    JsonValue,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    a_placement,
    a_template,
    a_workload,
    annotations_of,
    condition_of,
    gates_of,
    is_deleting,
    name_of,
    number_at,
    scenario,
    text_at,
    uid_of,
    within,
)

WD = "test-rollout-wd"
QUOTA = Needs(has_quota=True)
ROLL = within(120, real=240)


def _names(count: int) -> list[str]:
    return [f"{WD}-{ordinal}" for ordinal in range(count)]


async def _are_ready(plane: Plane, *names: str) -> None:
    for name in names:
        instance = await plane.get(INSTANCE, name)
        assert condition_of(instance, "Ready").status == "True", name


async def _run(world: World, replicas: int, template: JsonObject | None = None) -> None:
    await world.project.create(a_bare_deployment(WD, replicas=replicas, template=template))
    await world.eventually(lambda: _are_ready(world.project, *_names(replicas)), ROLL)
    await world.settle()


async def _claims(project: Plane) -> dict[str, str]:
    return {name_of(one): uid_of(one) for one in await project.list(CLAIM)}


async def _restart(project: Plane, when: str) -> None:
    template: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: when}}}
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": template}})


async def _is_restarted(cell: Plane, when: str, *names: str) -> None:
    for name in names:
        instance = await cell.get(INSTANCE, name)
        assert annotations_of(instance).get(labels.RESTARTED_AT) == when, name
        assert condition_of(instance, "Ready").status == "True", name


def _ends(plane: Plane) -> list[str]:
    """Names of Instances in the order of their deletion."""
    return [name_of(one.object) for one in plane.versions(INSTANCE) if one.is_gone]


def _starts(plane: Plane) -> list[str]:
    """Names of Instances in the order of their creation."""
    seen: dict[str, str] = {}
    for one in plane.versions(INSTANCE):
        seen.setdefault(uid_of(one.object), name_of(one.object))
    return [*seen.values()]


@pytest.mark.spec("E-25")
@scenario(QUOTA)
async def test_a_restart_replaces_slots_from_the_highest_and_keeps_claims(world: World) -> None:
    project = world.project
    await _run(world, 3)
    cell = await world.cell_of(DFW, project)
    claims, started = await _claims(project), len(_starts(cell))
    hashes = {
        text_at(one, "spec", "controller", "templateHash") for one in await cell.list(INSTANCE)
    }
    await _restart(project, "2026-03-01T00:10:00Z")
    names = _names(3)
    await world.eventually(lambda: _is_restarted(cell, "2026-03-01T00:10:00Z", *names), ROLL)
    await world.eventually(lambda: _are_ready(project, *names))
    await world.settle()
    assert _ends(cell) == [f"{WD}-2", f"{WD}-1", f"{WD}-0"]
    assert _starts(cell)[started:] == [f"{WD}-2", f"{WD}-1", f"{WD}-0"]
    assert await _claims(project) == claims
    assert {text_at(one, "spec", "controller", "templateHash") for one in await cell.list(INSTANCE)}
    for one in await cell.list(INSTANCE):
        assert text_at(one, "spec", "controller", "templateHash") not in hashes
    assert _most_unready(cell, 3) == 1
    # `updatedReplicas` starts from zero with the restart and grows.
    updated = [
        number_at(one.object, "status", "updatedReplicas")
        for one in project.versions(DEPLOYMENT, WD)
    ]
    tail = updated[len(updated) - updated[::-1].index(0) - 1 :]
    assert tail == sorted(tail)
    assert {0, 3} <= set(tail)


def _most_unready(cell: Plane, replicas: int) -> int:
    """The largest number of slots not Ready at one moment, after all had been Ready."""
    ready: dict[str, bool] = {}
    all_ready, worst = False, 0
    for one in cell.versions(INSTANCE):
        is_up = condition_of(one.object, "Ready").status == "True"
        ready[name_of(one.object)] = is_up and not one.is_gone and not is_deleting(one.object)
        all_ready = all_ready or sum(ready.values()) == replicas
        if all_ready:
            worst = max(worst, replicas - sum(ready.values()))
    return worst


@pytest.mark.spec("E-26")
@scenario(QUOTA)
async def test_a_bad_image_stops_at_its_first_slot_and_is_mended(world: World) -> None:
    project = world.project
    await _run(world, 2)
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template("image-unavailable")}})

    async def stops() -> None:
        bad = await project.get(INSTANCE, f"{WD}-1")
        assert condition_of(bad, "Ready").reason == "ImageUnavailable"
        await _are_ready(project, f"{WD}-0")
        root = await project.get(DEPLOYMENT, WD)
        assert condition_of(root, "Available").status == "True"
        assert condition_of(root, "Ready").status_and_reason == ("False", "ImageUnavailable")

    await world.eventually(stops)
    await world.stays(stops, within(30))
    bad = uid_of(await (await world.cell_of(DFW, project)).get(INSTANCE, f"{WD}-1"))
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template("2.0")}})
    cell = await world.cell_of(DFW, project)

    async def is_replaced() -> None:
        assert uid_of(await cell.get(INSTANCE, f"{WD}-1")) != bad

    await world.eventually(is_replaced, within(30))
    await world.eventually(lambda: _runs_image(project, "2.0", *_names(2)), ROLL)
    assert _ends(cell) == [f"{WD}-1", f"{WD}-1", f"{WD}-0"]


async def _runs_image(project: Plane, tag: str, *names: str) -> None:
    await _are_ready(project, *names)
    for name in names:
        instance = str(await project.get(INSTANCE, name))
        assert f":{tag}'" in instance, name


@pytest.mark.spec("E-27")
@scenario(QUOTA)
async def test_an_instance_that_never_was_ready_is_replaced(world: World) -> None:
    project = world.project
    await project.create(a_bare_deployment(WD, template=a_template("image-unavailable")))
    cell = await world.cell_of(DFW, project)

    async def fails() -> None:
        instance = await project.get(INSTANCE, f"{WD}-0")
        assert condition_of(instance, "Ready").reason == "ImageUnavailable"

    await world.eventually(fails, within(60))
    bad = uid_of(await cell.get(INSTANCE, f"{WD}-0"))
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template("2.0")}})

    async def is_replaced() -> None:
        assert uid_of(await cell.get(INSTANCE, f"{WD}-0")) != bad

    await world.eventually(is_replaced, within(30))
    await world.eventually(lambda: _runs_image(project, "2.0", f"{WD}-0"), within(60))


@pytest.mark.spec("E-28")
@scenario(Needs(has_quota=True, is_alone=True, is_slow=True))
async def test_a_cell_rolls_offline_on_the_grants_it_holds(world: World) -> None:
    project, operator = world.project, world.operator_of(DFW)
    await _run(world, 3)
    cell = await world.cell_of(DFW, project)
    claims, names = await _claims(project), _names(3)
    for when, plane in (("2026-03-01T01:00:00Z", HUB), ("2026-03-01T02:00:00Z", project.name)):
        await operator.cut(plane)
        await _restart(project, when)
        await world.eventually(partial(_is_restarted, cell, when, *names), ROLL)
    assert _most_unready(cell, 3) == 1
    await operator.kill()
    await operator.start()
    await _restart(project, "2026-03-01T03:00:00Z")

    async def stops() -> None:
        held = await cell.get(INSTANCE, f"{WD}-2")
        assert "Quota" in gates_of(held)
        granted = condition_of(held, "QuotaGranted").status_and_reason
        assert granted == ("False", "QuotaBackendUnavailable")
        await _are_ready(cell, f"{WD}-0", f"{WD}-1")

    await world.eventually(stops, within(60))
    await world.stays(stops, within(30))
    await operator.heal(HUB, project.name)
    last = "2026-03-01T03:00:00Z"
    await world.eventually(lambda: _is_restarted(cell, last, *names), within(60))
    await world.eventually(lambda: _are_adopted(project, cell, claims), within(60))


async def _are_adopted(project: Plane, cell: Plane, claims: dict[str, str]) -> None:
    """Every claim is the first one of its slot and names the running Instance."""
    assert await _claims(project) == claims
    for one in await project.list(CLAIM):
        instance = await cell.get(INSTANCE, name_of(one).removeprefix("instance-"))
        assert annotations_of(one).get(labels.INSTANCE_UID) == uid_of(instance), name_of(one)


@pytest.mark.spec("E-29")
@scenario(Needs(has_quota=True, is_alone=True, is_slow=True))
async def test_an_upgrade_of_the_operators_rolls_nothing(world: World) -> None:
    project = world.project
    await _run(world, 2)
    cell = await world.cell_of(DFW, project)
    before = _starts(cell), _ends(cell)
    with pytest.MonkeyPatch.context() as patch:
        if world.backend.name == "sim":
            # The operators share this interpreter: the started release uses a new hash algorithm.
            patch.setattr(template_hash, "ALGORITHMS", (*template_hash.ALGORITHMS, _hash_anew))
        for operator in (world.management, world.operator_of(DFW)):
            await operator.stop()
            await operator.start()
        await world.sleep(60)
        assert (_starts(cell), _ends(cell)) == before
        deployment = await project.get(DEPLOYMENT, WD)
        assert number_at(deployment, "status", "updatedReplicas") == 2


def _hash_anew(template: JsonValue) -> str:
    del template
    return "0123456789abcdef"


@pytest.mark.spec("E-30")
@scenario(QUOTA)
async def test_scaling_up_goes_one_by_one_and_fills_gaps_first(world: World) -> None:
    project = world.project
    await _run(world, 1)
    cell = await world.cell_of(DFW, project)
    await project.patch(DEPLOYMENT, WD, {"spec": {"scaleSettings": {"minReplicas": 4}}})
    await world.eventually(lambda: _are_ready(project, *_names(4)), ROLL)
    assert _starts(cell) == _names(4)
    _check_one_by_one(cell)
    await cell.delete(INSTANCE, f"{WD}-1")
    await project.patch(DEPLOYMENT, WD, {"spec": {"scaleSettings": {"minReplicas": 5}}})
    await world.eventually(lambda: _are_ready(project, *_names(5)), ROLL)
    assert _starts(cell)[4:] == [f"{WD}-1", f"{WD}-4"]


def _check_one_by_one(cell: Plane) -> None:
    """When an Instance was created, all earlier ones were Ready."""
    ready: dict[str, bool] = {}
    for one in cell.versions(INSTANCE):
        name = name_of(one.object)
        if name not in ready:
            assert all(ready.values()), f"{name} at {one.at}: {ready}"
        ready[name] = condition_of(one.object, "Ready").status == "True"


@pytest.mark.spec("E-31")
@scenario(QUOTA)
async def test_scaling_down_takes_the_highest_without_waiting(world: World) -> None:
    project = world.project
    # A slowly booting image: a slot with a new Instance is not Ready for a while.
    await _run(world, 4, a_template("slow-10"))
    cell, hub = await world.cell_of(DFW, project), await world.hub_of(project)
    first = uid_of(await cell.get(INSTANCE, f"{WD}-0"))
    await cell.delete(INSTANCE, f"{WD}-0")

    async def is_booting() -> None:
        instance = await cell.get(INSTANCE, f"{WD}-0")
        assert uid_of(instance) != first
        assert condition_of(instance, "Ready").status != "True"

    await world.eventually(is_booting)
    await project.patch(DEPLOYMENT, WD, {"spec": {"scaleSettings": {"minReplicas": 1}}})

    async def is_small() -> None:
        for plane in (cell, hub, project):
            assert await plane.names(INSTANCE) == [f"{WD}-0"], plane.name
        assert list(await _claims(project)) == [f"instance-{WD}-0"]

    await world.eventually(is_small, within(60))
    assert _ends(cell)[1:] == [f"{WD}-3", f"{WD}-2", f"{WD}-1"]
    begun = next(one.at for one in cell.versions(INSTANCE, f"{WD}-3") if is_deleting(one.object))
    was_ready = [
        condition_of(one.object, "Ready").status == "True"
        for one in cell.versions(INSTANCE, f"{WD}-0")
        if uid_of(one.object) != first and one.at <= begun
    ]
    assert was_ready
    assert not any(was_ready)


@pytest.mark.spec("E-32")
@scenario(Needs(cells=(DFW, ORD), has_quota=True))
async def test_a_placement_moves_to_another_city(world: World) -> None:
    project = world.project
    await project.create(a_workload("web", a_placement("default", "DFW")))
    await world.eventually(lambda: _are_ready(project, "web-default-dfw-0"), within(60, real=120))
    moved: JsonObject = {"spec": {"placements": [a_placement("default", "ORD")]}}
    await project.patch(WORKLOAD, "web", moved)
    hub, left = await world.hub_of(project), await world.cell_of(DFW, project)
    await world.eventually(lambda: project.get(DEPLOYMENT, "web-default-ord"))

    async def has_moved() -> None:
        await project.expect_gone(DEPLOYMENT, "web-default-dfw")
        await hub.expect_gone(POLICY, "city-dfw")
        await project.expect_gone(CLAIM, "instance-web-default-dfw-0")
        # The subnet claim is not ours; it ends with its network context.
        for kind in (DEPLOYMENT, INSTANCE, BINDING):
            assert await left.names(kind) == []

    await world.eventually(has_moved, within(60))
    await world.eventually(lambda: _are_ready(project, "web-default-ord-0"), within(60, real=120))
