"""Claims of a suspended project: refused without an error, and requested after the resume."""

from __future__ import annotations

import logging

import pytest
from cell_builders.documents import PROJECT
from cell_builders.quota_scenes import (
    OFTEN,
    begin,
    claim_writes,
    claims,
    drop_claim,
    has_claims,
    is_gated,
    milo_of,
    open_cell,
    quota_of,
    says,
)
from cell_builders.world import World, play, uid_of

from compute_sim_planes.conditions import is_condition_true
from compute_sim_planes.milo.kinds import PROJECTS, SUSPENSIONS
from compute_sim_planes.milo.testing import a_suspension

WORKLOADS = ("web", "api", "db")
WAITING = (
    "Unknown",
    "PendingEvaluation",
    "Project is suspended; quota is asked for when it resumes",
)


async def suspend(world: World) -> None:
    await milo_of(world).milo.client().create(SUSPENSIONS, a_suspension(PROJECT))

    async def is_suspended() -> bool:
        project = await milo_of(world).milo.client().get(PROJECTS, PROJECT) or {}
        return is_condition_true(project, "Suspended")

    await world.eventually(is_suspended)


async def uids(world: World) -> dict[str, str]:
    return {name: uid_of(await world.instance(name)) for name in await world.instances()}


async def resume(world: World) -> None:
    await milo_of(world).milo.client().delete(SUSPENSIONS, "unpaid")


@pytest.mark.spec("SU-03")
def test_a_claim_that_a_suspended_project_refuses_waits_and_is_granted_after_the_resume(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(world: World) -> None:
        await open_cell(world)
        await suspend(world)
        for name in WORKLOADS:
            await world.deliver(name, 1)
        await world.eventually(says(world, "Unknown", "PendingEvaluation"))
        await world.sleep(10)
        for name in WORKLOADS:
            assert await quota_of(world, f"{name}-0") == WAITING
            assert await is_gated(world, f"{name}-0")
        before = await uids(world)
        sent = len(claim_writes(world))
        assert sent <= 3, "one for each of them that was in flight"
        await world.sleep(600)
        assert 7 <= len(claim_writes(world)) - sent <= 13, "one probe a minute"
        assert await quota_of(world) == WAITING
        assert await claims(world) == {}
        await resume(world)
        await world.eventually(
            has_claims(world, *(f"instance-{name}-0" for name in WORKLOADS)), within=80
        )
        await world.eventually(world.is_converged)
        assert await uids(world) == before, "without a new Instance"
        said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
        assert said == []

    play(scenario, has_networking=False)


@pytest.mark.spec("SU-03")
def test_a_started_instance_keeps_its_grant_when_its_lost_claim_cannot_be_made_again() -> None:
    async def scenario(world: World) -> None:
        await begin(world, quota=OFTEN)
        granted = await quota_of(world)
        await suspend(world)
        await drop_claim(world)
        await world.sleep(300)
        refused = [one for one in claim_writes(world, "create") if one.status == 403]
        assert 2 <= len(refused) <= 6
        assert await quota_of(world) == granted
        await resume(world)
        await world.eventually(has_claims(world, "instance-web-0"), within=120)

    play(scenario, has_networking=False)
