"""A suspended project on a simulated Milo: what it refuses is no error, and is written after it."""

from __future__ import annotations

import logging

import pytest
from management_builders.documents import a_workload_document
from management_builders.world import Process, World, condition_of, play

from compute_api_types import labels
from compute_management_operator.planes import DEPLOYMENT, HUB, PROJECT, ROOT, WORKLOAD
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_sim_planes.faults.links import Link, LinkState
from compute_sim_planes.history import Request
from compute_sim_planes.milo.kinds import SUSPENSIONS
from compute_sim_planes.milo.testing import a_suspension

ERRORS = "controller_runtime_reconcile_errors_total"
RETRIES = "workqueue_retries_total"
SUSPENDED = ("compute_planes", (("plane", "project"), ("state", "suspended")))


async def suspend(world: World) -> None:
    assert world.milo is not None
    await world.milo.client().create(SUSPENSIONS, a_suspension("acme"))
    await world.eventually(lambda: is_suspended(world, "True"))


async def resume(world: World) -> None:
    assert world.milo is not None
    await world.milo.client().delete(SUSPENSIONS, "unpaid")
    await world.eventually(lambda: is_suspended(world, "False"))


async def is_suspended(world: World, status: str) -> bool:
    project = await world.find(ROOT, PROJECT, "acme", "")
    return project is not None and condition_of(project, "Suspended")[0] == status


def refused(world: World) -> list[Request]:
    return [one for one in world.writes(plane="acme") if one.status == 403]


@pytest.mark.spec("SU-01")
def test_a_suspended_project_is_probed_once_a_minute_and_complete_after_the_resume(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(world: World) -> None:
        await world.start_milo()
        process = world.process(writes_events=True)
        process.start()
        await world.add_milo_project("acme", "DFW")
        await world.create("acme", a_workload_document("before"))
        await world.sleep(60)
        await suspend(world)
        # By an administrator, who is exempt: five Workloads that the operator cannot touch.
        for number in range(5):
            await world.create("acme", a_workload_document(f"new-{number}"))
        await world.sleep(10)
        assert 1 <= len(refused(world)) <= 5, "those in flight before the first refusal"
        first = len(refused(world))
        await world.sleep(600)
        assert 8 <= len(refused(world)) - first <= 13
        lines = [one for one in caplog.records if one.levelno >= logging.WARNING]
        assert lines == []
        assert process.measures.total(ERRORS) == 0
        assert process.measures.total(RETRIES) == 0
        assert process.measures.gauges[SUSPENDED] == 1
        said = [one for one in caplog.records if one.getMessage() == "Project is suspended"]
        assert len(said) == 1
        assert len(await world.listed("acme", DEPLOYMENT)) == 1
        await resume(world)
        await world.sleep(5)
        assert len(await world.listed("acme", DEPLOYMENT)) == 6
        assert len(await world.listed(HUB, DEPLOYMENT)) == 6

    play(scenario)


@pytest.mark.spec("SU-01")
def test_a_workload_deleted_while_suspended_goes_as_ever() -> None:
    async def scenario(world: World) -> None:
        await world.start_milo()
        world.process().start()
        await world.add_milo_project("acme", "DFW")
        await world.create("acme", a_workload_document())
        await world.sleep(60)
        assert len(await world.listed(HUB, DEPLOYMENT)) == 1
        await suspend(world)
        await world.create("acme", a_workload_document("other"))  # its refusal suspends the writes
        await world.sleep(5)
        await world.delete("acme", WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone("acme", WORKLOAD, "web"), within=120)
        assert await world.listed(HUB, DEPLOYMENT) == []

    play(scenario)


# --- the hub --------------------------------------------------------------------------------------


async def annotations_on_hub(world: World) -> list[str | None]:
    return [
        read_annotation(document, labels.SUSPENDED)
        for document in await world.listed(HUB, DEPLOYMENT)
    ]


def read_annotation(document: JsonObject, key: str) -> str | None:
    value = member_object(member_object(document, "metadata"), "annotations").get(key)
    return value if isinstance(value, str) else None


async def annotate(world: World, name: str, value: str | None) -> None:
    change: JsonObject = {"metadata": {"annotations": {labels.SUSPENDED: value}}}
    await world.patch("acme", DEPLOYMENT, name, change)


async def federate(world: World, count: int = 1) -> Process:
    await world.start_milo()
    process = world.process()
    process.start()
    await world.add_milo_project("acme", "DFW")
    for number in range(count):
        await world.create("acme", a_workload_document(f"web-{number}"))
    await world.sleep(60)
    assert await annotations_on_hub(world) == [None] * count
    return process


def test_a_suspension_reaches_the_hub_and_goes_with_the_project_condition() -> None:
    async def scenario(world: World) -> None:
        await federate(world, 3)
        await suspend(world)
        await world.sleep(5)
        assert await annotations_on_hub(world) == ["true"] * 3
        before = len(world.writes(plane=HUB))
        await world.sleep(600)
        assert len(world.writes(plane=HUB)) == before
        await resume(world)
        await world.sleep(5)
        assert await annotations_on_hub(world) == [None] * 3

    play(scenario)


def test_a_tenant_may_stop_his_own_and_cannot_lift_the_projects_suspension() -> None:
    async def scenario(world: World) -> None:
        await federate(world)
        (name,) = [
            member_text(member_object(one, "metadata"), "name")
            for one in await world.listed("acme", DEPLOYMENT)
        ]
        await annotate(world, name, "true")
        await world.sleep(5)
        assert await annotations_on_hub(world) == ["true"]
        await suspend(world)
        # By an administrator: a tenant's own update would be refused.
        await annotate(world, name, None)
        await world.sleep(90)
        assert await annotations_on_hub(world) == ["true"]
        await resume(world)
        await world.sleep(5)
        assert await annotations_on_hub(world) == [None]

    play(scenario)


def test_a_hub_that_is_away_gets_the_suspension_at_its_return() -> None:
    async def scenario(world: World) -> None:
        await federate(world, 2)
        link = world.links.setdefault(HUB, Link())
        link.cut(LinkState.REFUSED)
        await suspend(world)
        await world.sleep(120)
        link.heal()
        await world.sleep(60)
        assert await annotations_on_hub(world) == ["true"] * 2

    play(scenario)


@pytest.mark.spec("SU-15")
def test_without_the_root_a_suspension_stays_as_the_hub_has_it_also_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        process = await federate(world, 2)
        await suspend(world)
        await world.sleep(10)
        assert await annotations_on_hub(world) == ["true"] * 2
        link = world.links.setdefault(ROOT, Link())
        link.cut(LinkState.REFUSED)
        await world.sleep(300)
        assert await annotations_on_hub(world) == ["true"] * 2
        await process.kill()
        world.process("second").start()
        await world.sleep(300)
        assert await annotations_on_hub(world) == ["true"] * 2
        link.heal()
        await world.sleep(60)
        assert await annotations_on_hub(world) == ["true"] * 2
        await resume(world)
        await world.sleep(10)
        assert await annotations_on_hub(world) == [None] * 2

    play(scenario)
