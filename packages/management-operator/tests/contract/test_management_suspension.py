"""A suspended project on a simulated Milo: what it refuses is no error, and is written after it."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from management_builders.documents import (
    a_cluster_document,
    a_deployment_document,
    a_workload_document,
)
from management_builders.world import Process, World, condition_of, play

from compute_api_types import labels
from compute_management_operator.hub.metrics import (
    SUSPENDED_DEPLOYMENTS,
    SUSPENDED_PROJECTS,
    SUSPENSION_UNCONFIRMED,
)
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, PROJECT, ROOT, WORKLOAD
from compute_operator_kit.core.json import (
    JsonObject,
    decode_json_object,
    member_object,
    member_text,
)
from compute_sim_planes.faults.links import Link, LinkState
from compute_sim_planes.history import Commit, Request
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


@pytest.mark.spec("SU-08")
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


@pytest.mark.spec("SU-14")
def test_the_first_write_to_a_hub_that_was_away_carries_the_suspension() -> None:
    async def scenario(world: World) -> None:
        await federate(world, 2)
        link = world.links.setdefault(HUB, Link())
        link.cut(LinkState.REFUSED)
        await suspend(world)
        for document in await world.listed("acme", DEPLOYMENT):
            # By an administrator, who is exempt: there is other work to do too.
            name = member_text(member_object(document, "metadata"), "name")
            change: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 5}}}
            await world.patch("acme", DEPLOYMENT, name, change)
        await world.sleep(120)
        before = len(copies_written(world))
        link.heal()
        await world.sleep(60)
        written = copies_written(world)[before:]
        assert len({commit.key for commit in written}) == 2
        for commit in written:
            document = decode_json_object(commit.after)
            assert read_annotation(document, labels.SUSPENDED) == "true"
        assert await annotations_on_hub(world) == ["true"] * 2

    play(scenario)


def copies_written(world: World) -> list[Commit]:
    return [
        one
        for one in world.history.of(Commit)
        if one.plane == HUB and one.kind == DEPLOYMENT.kind and one.after
    ]


MANY = 1000


@pytest.mark.spec("SU-16")
def test_a_thousand_deployments_are_suspended_within_seconds_and_others_do_not_wait() -> None:
    async def scenario(world: World) -> None:
        await world.start_milo()
        world.process().start()
        for name in ("acme", "quiet"):
            await world.add_milo_project(name, "DFW")
        # Planes that answer in no time at all would hide a wait.
        for name in ("quiet", HUB):
            world.links.setdefault(name, Link()).slow(timedelta(milliseconds=5))
        for number in range(MANY):
            await world.create("acme", a_deployment_document(f"many-{number:04}"))
        await world.sleep(60)
        assert len(latest_copies(world)) == MANY
        alone = await place(world, "before")
        await suspend(world)
        ordered = world.clock.now()
        beside = await place(world, "during")
        await world.sleep(10)
        for key, written in latest_copies(world).items():
            is_ours = "many-" in key
            order = read_annotation(decode_json_object(written.after), labels.SUSPENDED)
            assert (order == "true") is is_ours, key
            assert not is_ours or written.at - ordered <= timedelta(seconds=5)
        assert beside <= 2 * alone, (beside, alone)

    play(scenario)


def latest_copies(world: World) -> dict[str, Commit]:
    return {one.key: one for one in copies_written(world)}


async def place(world: World, name: str) -> timedelta:
    """How long a deployment of another project takes to the hub."""
    begun = world.clock.now()
    await world.create("quiet", a_deployment_document(name))

    await world.sleep(3)
    (made, *_) = [one.at for one in copies_written(world) if name in one.key]
    return made - begun


# --- gauges ---------------------------------------------------------------------------------------


def gauge(process: Process, name: str, cause: str = "") -> float:
    return process.measures.gauges[(name, (("cause", cause),) if cause else ())]


async def report(world: World, status: JsonObject) -> None:
    """As Karmada aggregates it."""
    for document in await world.listed(HUB, DEPLOYMENT):
        metadata = member_object(document, "metadata")
        name, namespace = member_text(metadata, "name"), member_text(metadata, "namespace")
        await world.set_status(HUB, DEPLOYMENT, name, status, namespace)


async def set_cluster_ready(world: World, status: str) -> None:
    ready: JsonObject = {
        "type": "Ready",
        "status": status,
        "reason": "ClusterReady",
        "message": "",
        "lastTransitionTime": "2026-06-20T08:00:00Z",
    }
    for document in await world.listed(HUB, CLUSTER):
        name = member_text(member_object(document, "metadata"), "name")
        await world.set_status(HUB, CLUSTER, name, {"conditions": [ready]}, "")


@pytest.mark.spec("SU-13")
def test_an_order_that_no_cell_confirms_is_counted_after_a_minute() -> None:
    async def scenario(world: World) -> None:
        process = await federate(world)
        await world.create(HUB, a_cluster_document("dfw-1"))
        await set_cluster_ready(world, "True")
        await report(world, {"replicas": 2, "observedGeneration": 1})
        await suspend(world)
        await world.sleep(50)
        assert gauge(process, SUSPENDED_PROJECTS) == 1
        assert gauge(process, SUSPENDED_DEPLOYMENTS) == 1
        assert gauge(process, SUSPENSION_UNCONFIRMED, "not_acted") == 0
        await world.sleep(30)
        assert gauge(process, SUSPENSION_UNCONFIRMED, "not_acted") == 1
        await set_cluster_ready(world, "False")
        await world.sleep(10)
        assert gauge(process, SUSPENSION_UNCONFIRMED, "cell_unreachable") == 1
        assert gauge(process, SUSPENSION_UNCONFIRMED, "not_acted") == 0
        await report(world, {"replicas": 2, "observedGeneration": 1, "suspended": True})
        await world.sleep(10)
        assert gauge(process, SUSPENSION_UNCONFIRMED, "cell_unreachable") == 0
        await resume(world)
        await world.sleep(90)
        assert gauge(process, SUSPENSION_UNCONFIRMED, "resume") == 1
        await report(world, {"replicas": 2, "observedGeneration": 1, "suspended": None})
        await world.sleep(10)
        assert gauge(process, SUSPENSION_UNCONFIRMED, "resume") == 0
        assert gauge(process, SUSPENDED_PROJECTS) == 0
        assert gauge(process, SUSPENDED_DEPLOYMENTS) == 0

    play(scenario)


def test_a_deployment_without_instances_has_nothing_to_confirm() -> None:
    async def scenario(world: World) -> None:
        process = await federate(world)
        await suspend(world)
        await world.sleep(120)
        assert gauge(process, SUSPENDED_DEPLOYMENTS) == 1
        for cause in ("cell_unreachable", "not_acted", "resume"):
            assert gauge(process, SUSPENSION_UNCONFIRMED, cause) == 0

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
