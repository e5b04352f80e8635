"""The number of instances follows the load in each city, decided there (autoscaling.md).

A scenario sets a load. The number is written by the controller of autoscalers: Kubernetes' own on
real planes, from the metrics of Pods, and a simulated one elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from compute_api_types.conditions import AUTOSCALING, AUTOSCALING_LIMITED, AUTOSCALING_READY
from e2e.world.scenario import (
    AUTOSCALER,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    SINGLE,
    WORKLOAD,
    Cell,
    JsonObject,
    JsonValue,
    Needs,
    Plane,
    RefusedError,
    World,
    a_placement,
    a_template,
    a_workload,
    add_component,
    condition_of,
    generation_of,
    labels_of,
    number_at,
    object_at,
    objects_at,
    owners_of,
    scenario,
    text_at,
    uid_of,
    value_at,
    within,
)

WD: Final = "web-default-dfw"
COMPONENT: Final = "autoscaling/cell"
ON: Final[JsonObject] = {"autoscaling": {"mode": "on"}}
# A lower load is followed after ten seconds instead of a minute.
QUICK: Final[JsonObject] = {"autoscaling": {"mode": "on", "scaleDownStabilization": "10s"}}
NEEDS: Final = Needs(is_alone=True)
AT_NIGHT: Final = replace(NEEDS, is_slow=True)
CHAIN: Final = within(60, real=120)
SOON: Final = within(20, real=40)
CPU: Final[JsonObject] = {"resource": {"name": "cpu", "target": {"averageUtilization": 60}}}
MEMORY: Final[JsonObject] = {"resource": {"name": "memory", "target": {"averageValue": "512Mi"}}}


def scaled(least: int, most: int | None = None, *metrics: JsonObject) -> JsonObject:
    """A placement that is autoscaled where it has a largest number."""
    placement = a_placement("default", "DFW", replicas=least)
    settings = object_at(placement, "scaleSettings")
    if most is not None:
        entries: list[JsonValue] = [*(metrics or (CPU,))]
        settings |= {"maxReplicas": most, "metrics": entries}
    return placement


async def switch_on(world: World, cell: Cell = DFW, settings: JsonObject = QUICK) -> None:
    """The role of the component, the operator of the cell with autoscaling on, and metrics."""
    operator = world.operator_of(cell)
    await operator.stop()
    await add_component(world.cell(cell), COMPONENT)
    await operator.start(settings)
    await world.autoscalers.start_autoscalers(cell.name)


async def open_cell(world: World, settings: JsonObject = QUICK) -> Plane:
    await switch_on(world, settings=settings)
    return await world.cell_of(DFW, world.project)


async def rescale(world: World, placement: JsonObject) -> None:
    entries: list[JsonValue] = [placement]
    await world.project.patch(WORKLOAD, "web", {"spec": {"placements": entries}})


def load(world: World, replicas: int, cell: Cell = DFW) -> None:
    """From now on the load of the deployment asks for so many."""
    world.autoscalers.set_load(cell.name, WD, replicas)


async def asks_for(cell: Plane, replicas: int) -> None:
    """The number of the autoscaler."""
    assert number_at(await cell.get(DEPLOYMENT, WD), "spec", "replicas") == replicas


async def runs(world: World, cell: Plane, replicas: int) -> None:
    """So many run, as cell and project show it, and only the cell has the number."""
    assert await cell.names(INSTANCE) == [f"{WD}-{n}" for n in range(replicas)]
    for plane in (cell, world.project):
        deployment = await plane.get(DEPLOYMENT, WD)
        for counter in ("desiredReplicas", "readyReplicas"):
            assert number_at(deployment, "status", counter) == replicas, (plane.name, counter)
    workload = await world.project.get(WORKLOAD, "web")
    assert number_at(workload, "status", "desiredReplicas") == replicas
    assert number_at(workload, "status", "readyReplicas") == replicas


async def works(project: Plane) -> None:
    """The autoscaler has read the number and the metrics of Pods."""
    ready = condition_of(await project.get(WORKLOAD, "web"), "AutoscalingReady")
    assert (ready.status, ready.reason) == ("True", "AutoscalersReady"), ready.message


async def no_number(world: World) -> None:
    """Neither the project nor the hub ever held the number of the autoscaler."""
    for plane in (world.project, await world.hub_of(world.project)):
        for version in plane.versions(DEPLOYMENT, WD):
            assert value_at(version.object, "spec", "replicas") is None, plane.name


@pytest.mark.spec("AS-01", "AS-10")
@scenario(AT_NIGHT)
async def test_an_autoscaler_appears_follows_edits_and_goes(world: World) -> None:
    cell = await open_cell(world, ON)
    await world.project.create(a_workload("web", scaled(2, 10)))

    async def appears() -> JsonObject:
        return await cell.get(AUTOSCALER, WD)

    autoscaler = await world.eventually(appears, CHAIN)
    deployment = await cell.get(DEPLOYMENT, WD)
    owner = owners_of(autoscaler)[0]
    assert (owner["uid"], owner["controller"]) == (uid_of(deployment), True)
    assert labels_of(autoscaler) == {
        "services.miloapis.com/service-name": "compute.datumapis.com",
        "compute.datumapis.com/workload-deployment-uid": uid_of(deployment),
        "compute.datumapis.com/workload-deployment-name": WD,
        "compute.datumapis.com/workload-name": "web",
        "compute.datumapis.com/placement-name": "default",
        "compute.datumapis.com/city-code": "DFW",
    }
    assert object_at(autoscaler, "spec", "scaleTargetRef") == {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "WorkloadDeployment",
        "name": WD,
    }
    spec = object_at(autoscaler, "spec")
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 10)
    assert number_at(spec, "behavior", "scaleDown", "stabilizationWindowSeconds") == 60

    await world.eventually(lambda: asks_for(cell, 2), SOON)
    await world.eventually(lambda: works(world.project), CHAIN)
    await rescale(world, scaled(3, 12, MEMORY))

    async def follows() -> None:
        spec = object_at(await cell.get(AUTOSCALER, WD), "spec")
        assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 12)
        target = object_at(objects_at(spec, "metrics")[0], "resource", "target")
        assert target == {"type": "AverageValue", "averageValue": "512Mi"}

    await world.eventually(follows, CHAIN)
    await rescale(world, scaled(3))
    await world.eventually(lambda: cell.expect_gone(AUTOSCALER, WD), CHAIN)
    foreign: JsonObject = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": WD},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
            "minReplicas": 1,
            "maxReplicas": 2,
        },
    }
    made = await cell.create(foreign)
    world.backend.leave(cell.name, AUTOSCALER, f"{cell.namespace}/{WD}")
    await rescale(world, scaled(3, 12))

    async def is_refused() -> None:
        ready = condition_of(await world.project.get(DEPLOYMENT, WD), "AutoscalingReady")
        assert (ready.status, ready.reason) == ("False", "AutoscalerReconcileFailed")
        name = f"{cell.namespace}/{WD}"
        assert ready.message == (
            f"HPA {name} already exists and is not controlled by WorkloadDeployment {name}"
        )

    await world.eventually(is_refused, CHAIN)
    # Kubernetes writes the status of any autoscaler.
    kept = await cell.get(AUTOSCALER, WD)
    assert (uid_of(kept), kept["spec"]) == (uid_of(made), made["spec"])
    assert generation_of(kept) == generation_of(made)
    assert (labels_of(kept), owners_of(kept)) == ({}, [])


@pytest.mark.spec("AS-02", "AS-03", "AS-04", "AS-09")
@scenario(NEEDS)
async def test_the_number_follows_the_load_also_without_the_hub(world: World) -> None:
    cell = await open_cell(world)
    await world.project.create(a_workload("web", scaled(2, 6)))
    await world.eventually(lambda: runs(world, cell, 2), CHAIN)
    load(world, 4)
    await world.eventually(lambda: runs(world, cell, 4), CHAIN)
    load(world, 5)
    # Later, while the project is away, no slot can have a new claim.
    await world.eventually(lambda: runs(world, cell, 5), CHAIN)
    created = [text_at(one, "metadata", "creationTimestamp") for one in await cell.list(INSTANCE)]
    assert created == sorted(created)
    await world.cut_off(DFW)
    load(world, 3)

    async def shrinks() -> None:
        assert await cell.names(INSTANCE) == [f"{WD}-{n}" for n in range(3)]

    await world.eventually(shrinks, CHAIN)
    load(world, 5)

    async def grows() -> None:
        assert await cell.names(INSTANCE) == [f"{WD}-{n}" for n in range(5)]

    await world.eventually(grows, CHAIN)
    await world.reconnect(DFW)
    await world.project.patch(WORKLOAD, "web", {"spec": {"template": a_template("1.1")}})
    await world.eventually(lambda: runs(world, cell, 5), within(180, real=300))
    await asks_for(cell, 5)
    await rescale(world, scaled(2, 3))
    await world.eventually(lambda: runs(world, cell, 3), CHAIN)

    async def is_limited() -> None:
        limited = condition_of(await world.project.get(WORKLOAD, "web"), "AutoscalingLimited")
        assert (limited.status, limited.reason) == ("True", "TooManyReplicas")

    await world.eventually(is_limited, CHAIN)
    await no_number(world)


@pytest.mark.spec("AS-05")
@scenario(AT_NIGHT)
async def test_edits_from_the_hub_reset_no_number_and_lose_no_edit(world: World) -> None:
    cell = await open_cell(world)
    await world.project.create(a_workload("web", scaled(2, 6)))
    await world.eventually(lambda: runs(world, cell, 2), CHAIN)
    for number in range(30):
        await world.project.patch(
            WORKLOAD, "web", {"spec": {"template": a_template(f"1.{number}")}}
        )
        load(world, 3 + number // 10)
        await world.sleep(4, real=1)
    await world.eventually(lambda: runs(world, cell, 5), within(240, real=300))
    last = await cell.get(DEPLOYMENT, WD)
    (container,) = objects_at(last, "spec", "template", "spec", "runtime", "sandbox", "containers")
    assert text_at(container, "image").endswith("1.29")
    # 0: Karmada took the number away; 2 is the one before the first load.
    numbers = [number_at(one.object, "spec", "replicas") for one in cell.versions(DEPLOYMENT, WD)]
    held = numbers[next(at for at, number in enumerate(numbers) if number > 2) :]
    assert min(held) > 2, numbers
    assert len({*held}) > 1, "no number was written between the edits"


@pytest.mark.spec("AS-06", "AS-07", "AS-08")
@scenario(AT_NIGHT)
async def test_switching_autoscaling_on_and_off_gives_nothing_up_too_early(world: World) -> None:
    cell = await open_cell(world)
    await world.project.create(a_workload("web", scaled(5)))
    await world.eventually(lambda: runs(world, cell, 5), CHAIN)
    first = {uid_of(one) for one in await cell.list(INSTANCE)}
    stray: JsonObject = {"spec": {"replicas": 9}}  # the deployment is not autoscaled
    await cell.patch(DEPLOYMENT, WD, stray, subresource="scale")
    await rescale(world, scaled(1))
    await rescale(world, scaled(5))
    await world.eventually(lambda: runs(world, cell, 5), CHAIN)
    await cell.patch(DEPLOYMENT, WD, {"spec": {"replicas": None}})
    await world.settle()
    first = {uid_of(one) for one in await cell.list(INSTANCE)}
    await rescale(world, scaled(2, 10))

    async def is_on() -> None:
        await asks_for(cell, 5)
        for plane, kind, name in (
            (cell, DEPLOYMENT, WD),
            (world.project, DEPLOYMENT, WD),
            (world.project, WORKLOAD, "web"),
        ):
            document = await plane.get(kind, name)
            assert condition_of(document, AUTOSCALING_READY).status == "True", plane.name
            assert condition_of(document, AUTOSCALING_LIMITED).status == "False", plane.name

    await world.eventually(is_on, CHAIN)
    assert {uid_of(one) for one in await cell.list(INSTANCE)} == first
    await rescale(world, scaled(2))
    await world.eventually(lambda: runs(world, cell, 2), CHAIN)

    async def is_off() -> None:
        await cell.expect_gone(AUTOSCALER, WD)
        for plane in (cell, await world.hub_of(world.project), world.project):
            assert _without_conditions(await plane.get(DEPLOYMENT, WD)), plane.name
        workload = await world.project.get(WORKLOAD, "web")
        assert _without_conditions(workload)
        assert all(_without_conditions({"status": one}) for one in _placements(workload))

    await world.eventually(is_off, CHAIN)
    await no_number(world)


@pytest.mark.spec("AS-07")
@scenario(AT_NIGHT)
async def test_switched_on_with_a_new_image_it_starts_from_what_ran(world: World) -> None:
    cell = await open_cell(world)
    await world.project.create(a_workload("web", scaled(4)))
    await world.eventually(lambda: runs(world, cell, 4), CHAIN)
    entries: list[JsonValue] = [scaled(2, 10)]
    change: JsonObject = {"spec": {"placements": entries, "template": a_template("1.1")}}
    await world.project.patch(WORKLOAD, "web", change)
    await world.eventually(lambda: works(world.project), CHAIN)
    await world.eventually(lambda: runs(world, cell, 4), CHAIN)
    numbers = [number_at(one.object, "spec", "replicas") for one in cell.versions(DEPLOYMENT, WD)]
    assert {*numbers} == {0, 4}, numbers


def _without_conditions(document: JsonObject) -> bool:
    return not {text_at(one, "type") for one in objects_at(document, "status", "conditions")} & {
        *AUTOSCALING
    }


def _placements(workload: JsonObject) -> list[JsonObject]:
    return objects_at(workload, "status", "placements")


@pytest.mark.spec("AS-19")
@scenario(AT_NIGHT)
async def test_a_workload_that_scales_is_deleted_with_all_it_has(world: World) -> None:
    cell = await open_cell(world)
    await world.project.create(a_workload("web", scaled(1, 5)))
    await world.eventually(lambda: runs(world, cell, 1), CHAIN)
    load(world, 4)
    await world.eventually(lambda: asks_for(cell, 4), CHAIN)
    await world.project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        for kind in (AUTOSCALER, DEPLOYMENT, INSTANCE):
            assert await cell.names(kind) == []
        await world.project.expect_gone(WORKLOAD, "web")

    await world.eventually(is_gone, CHAIN)
    await world.settle()
    await is_gone()


@pytest.mark.spec("AS-14")
@scenario(replace(AT_NIGHT, has_quota=True, has_own_projects=True))
async def test_growth_under_short_quota_stops_at_one_waiting_instance(world: World) -> None:
    await world.grant(3)
    cell = await open_cell(world)
    await world.project.create(a_workload("web", scaled(2, 8)))
    await world.eventually(lambda: runs(world, cell, 2), CHAIN)
    load(world, 8)

    async def waits() -> None:
        assert await cell.names(INSTANCE) == [f"{WD}-{n}" for n in range(4)]
        deployment = await world.project.get(DEPLOYMENT, WD)
        assert condition_of(deployment, "Available").status == "True"
        assert condition_of(deployment, "Ready").reason == "QuotaNotGranted"

    await world.eventually(waits, CHAIN)
    await world.settle()
    await waits()
    # A rise of more than four takes a controller two periods of 15 s.
    await world.eventually(lambda: asks_for(cell, 8), CHAIN)
    await waits()
    # With a load of 3 the three that run are near enough to their target, and 8 stays.
    load(world, 2)
    await world.eventually(lambda: runs(world, cell, 2), CHAIN)


@pytest.mark.spec("AS-20")
@scenario(
    replace(AT_NIGHT, cells=(SINGLE,), has_networking=False, is_single=True),
)
async def test_the_workload_of_a_single_cluster_keeps_the_number(world: World) -> None:
    project = world.project
    await switch_on(world, SINGLE)
    await project.create(a_workload("web", scaled(1, 5)))
    await world.eventually(lambda: asks_for(project, 1), CHAIN)
    load(world, 3, SINGLE)

    async def follows() -> None:
        deployment = await project.get(DEPLOYMENT, WD)
        assert number_at(deployment, "spec", "replicas") == 3
        assert number_at(deployment, "status", "readyReplicas") == 3

    await world.eventually(follows, CHAIN)
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("1.1")}})
    await world.sleep(30, real=20)
    await world.eventually(follows, CHAIN)
    await world.settle()


@pytest.mark.spec("AS-17")
@scenario(AT_NIGHT)
async def test_scale_settings_that_cannot_be_used_are_refused_by_name(world: World) -> None:
    total: JsonObject = {"resource": {"name": "cpu", "target": {"value": "4"}}}
    for placement, field in (
        (scaled(1, 5, total), "target.value"),
        (scaled(1, 5, {"resource": {"name": "gpu", "target": {"averageUtilization": 1}}}), "name"),
        (scaled(5, 2), "maxReplicas"),
        (scaled(1, 1001), "maxReplicas"),
    ):
        with pytest.raises(RefusedError, match=field):
            await world.project.create(a_workload("web", placement))
