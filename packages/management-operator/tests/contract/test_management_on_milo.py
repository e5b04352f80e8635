"""The operator on a simulated Milo: projects that are made, used and deleted as there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from management_builders.documents import (
    a_document,
    a_network_document,
    a_workload_document,
)
from management_builders.world import Run, World, condition_of, play

from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE, PROJECT, ROOT, WORKLOAD
from compute_operator_kit.core.errors import InvalidSpecError
from compute_operator_kit.core.keys import PlaneName, Role
from compute_sim_planes.faults.links import Link
from compute_sim_planes.history import Request


@pytest.mark.spec("M-80", "M-87")
@pytest.mark.fault("D3")
def test_a_project_is_served_from_ready_to_gone_and_its_end_touches_no_other() -> None:
    async def scenario(world: World) -> None:
        await world.start_milo()
        process = world.process()
        process.start()
        await world.add_milo_project("acme", "DFW")
        await world.add_milo_project("beta", "DFW")
        for name in ("acme", "beta"):
            await world.create(name, a_workload_document())
        await world.sleep(90)
        for name in ("acme", "beta"):
            assert await world.exists(name, DEPLOYMENT, "web-us-dfw")
        before = len(world.writes(plane="beta"))
        await world.delete(ROOT, PROJECT, "acme")
        await world.eventually(lambda: world.is_gone(ROOT, PROJECT, "acme"), within=120)
        await world.sleep(10)
        assert process.operator.planes.planes(Role.PROJECT) == ("beta",)
        assert len(world.writes(plane="beta")) == before
        assert len(await world.listed(HUB, DEPLOYMENT)) == 1

    done = play(scenario)
    created = [one for one in done.world.writes(plane="acme", verb="create") if one.status == 201]
    assert len(created) == 1


async def place_in_team(world: World, *workloads: str) -> None:
    """Workloads that are placed, in a namespace of a project of Milo's."""
    await world.start_milo()
    await world.add_milo_project("acme", "DFW")
    world.process(writes_events=True).start()
    await world.create("acme", a_document(NAMESPACE, "team", ""))
    await world.create("acme", a_network_document(namespace="team"))
    for name in workloads:
        await world.create("acme", a_workload_document(name, namespace="team"))
    await world.sleep(60)
    assert len(await world.listed("acme", DEPLOYMENT, "team")) == len(workloads)


def refused_events(done: Run) -> list[Request]:
    written = done.world.writes(kind="Event")
    assert any(one.status == 201 for one in written)
    return [one for one in written if one.status == 403]


@pytest.mark.spec("FS-06")
def test_no_event_is_written_into_a_project_that_goes() -> None:
    async def scenario(world: World) -> None:
        await place_in_team(world, "web")
        await world.delete(ROOT, PROJECT, "acme")
        await world.eventually(lambda: world.is_gone(ROOT, PROJECT, "acme"), within=120)

    assert refused_events(play(scenario)) == []


@pytest.mark.spec("FS-06")
def test_a_namespace_that_goes_refuses_one_event_and_is_sent_no_other() -> None:
    async def scenario(world: World) -> None:
        await place_in_team(world, "api", "db", "web")
        await world.delete("acme", NAMESPACE, "team", "")
        await world.eventually(lambda: world.is_gone("acme", NAMESPACE, "team", ""), within=120)

    assert len(refused_events(play(scenario))) <= 1


@pytest.mark.spec("M-98", "OU-02")
def test_a_fresh_project_answers_at_once_and_is_engaged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        milo = await world.start_milo()
        # As on any network: the first answer is not there before the other lists are sent.
        world.links.setdefault("acme", Link()).slow(timedelta(milliseconds=1))
        process = world.process()
        process.start()
        await milo.add_project("acme")
        await world.sleep(5)
        existing = process.operator.planes.get(PlaneName("acme"))
        assert existing.is_synced
        asked = [one for one in world.requests() if one.address.plane == "acme"]
        assert asked
        assert not [one for one in asked if one.status == 429]

    play(scenario)
    assert [one.getMessage() for one in caplog.records if one.levelname != "INFO"] == []


@pytest.mark.spec("M-85")
def test_the_project_of_a_request_is_the_one_that_milo_sets() -> None:
    async def scenario(world: World) -> None:
        await world.start_milo()
        process = world.process()
        process.start(leads=False)
        await world.add_milo_project("acme", "DFW")
        await world.add_milo_project("beta", "LHR")
        await world.sleep(5)
        await world.ask_for_admission(ROOT, process)
        london = a_workload_document("web", {"eu": ("LHR",)})
        await world.create("beta", london)
        with pytest.raises(InvalidSpecError):
            await world.create("acme", london)

    play(scenario)


@pytest.mark.spec("M-23")
def test_a_workload_goes_although_milo_never_collects_its_deployments() -> None:
    """Milo's collector knows no kind that came after it: we delete what we made ourselves."""

    async def scenario(world: World) -> None:
        await world.start_milo()
        world.process().start()
        await world.add_milo_project("acme", "DFW")
        await world.create("acme", a_workload_document())
        await world.sleep(10)
        assert await world.exists("acme", DEPLOYMENT, "web-us-dfw")
        await world.delete("acme", WORKLOAD, "web")
        await world.eventually(lambda: world.is_gone("acme", WORKLOAD, "web"))
        assert await world.names("acme", DEPLOYMENT) == []

    play(scenario)


@pytest.mark.spec("M-82")
@pytest.mark.fault("D2")
def test_a_project_that_is_away_for_minutes_is_served_when_it_is_back() -> None:
    async def scenario(world: World) -> None:
        milo = await world.start_milo()
        world.process().start()
        await world.add_milo_project("acme", "DFW")
        await world.add_milo_project("beta", "DFW")
        await world.create("acme", a_workload_document())
        await world.create("beta", a_workload_document())
        await world.sleep(5)
        milo.make_unavailable("acme")
        await world.sleep(300)
        await world.create("beta", a_workload_document("more"))
        await world.eventually(lambda: world.exists("beta", DEPLOYMENT, "more-us-dfw"), within=2)
        milo.make_available("acme")
        await world.create("acme", a_workload_document("late"))
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "late-us-dfw"), within=60)
        await world.sleep(1)
        existing = await world.get("acme", WORKLOAD, "late")
        assert condition_of(existing, "Ready")[1] == "InstancesProvisioning"

    play(scenario)
