"""A cell that nobody hears: users read Unknown within 90 seconds, and nothing else happens."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLUSTER,
    DEPLOYMENT,
    DFW,
    EVENT,
    HUB,
    INSTANCE,
    ORD,
    WORKLOAD,
    ConditionView,
    JsonObject,
    Needs,
    Plane,
    World,
    a_placement,
    a_workload,
    annotations_of,
    condition_of,
    merge_of,
    number_at,
    objects_at,
    scenario,
    uid_of,
    value_at,
    within,
)

WD: Final = "web-default-ord"
OTHER: Final = "web-default-dfw"
BOTH: Final = Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True)
OWN: Final = Needs(
    cells=(DFW, ORD), has_quota=True, has_own_projects=True, is_alone=True, is_slow=True
)
CHAIN: Final = within(60, real=120)
SAID: Final = within(90, real=120)  # of the silence of the site
BACK: Final = within(60, real=120)
CELLS: Final = "compute_federation_cells"
UNKNOWN: Final = ("Unknown", "CellUnreachable")
DEPLOYMENT_MESSAGE: Final = 'City "ORD" has not been heard of; its instances may still run'
INSTANCE_MESSAGE: Final = 'City "ORD" has not been heard of; this instance may still run'
WAITING_MESSAGE: Final = (
    'City "ORD" has not been heard of; nothing can start there until it is back'
)


def _words(condition: ConditionView) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message


async def _run(world: World, replicas: int = 2) -> None:
    placements = (a_placement("default", "DFW", "ORD", replicas=replicas),)
    await world.project.create(a_workload("web", *placements))
    await world.eventually(lambda: _is_ready(world, replicas), CHAIN)
    await world.settle()


async def _is_ready(world: World, replicas: int = 2) -> None:
    workload = await world.project.get(WORKLOAD, "web")
    assert condition_of(workload, "Ready").status == "True"
    assert condition_of(workload, "Available").status == "True"
    for name in (WD, OTHER):
        deployment = await world.project.get(DEPLOYMENT, name)
        assert condition_of(deployment, "Ready").status == "True", name
        assert number_at(deployment, "status", "readyReplicas") == replicas, name
        for ordinal in range(replicas):
            instance = await world.project.get(INSTANCE, f"{name}-{ordinal}")
            assert condition_of(instance, "Ready").status == "True", (name, ordinal)


async def _is_dark(project: Plane, replicas: int = 2) -> None:
    """Everything of ORD is Unknown, everything of DFW as ever, and the Workload shows both."""
    deployment = await project.get(DEPLOYMENT, WD)
    for kind in ("Available", "ReplicasReady", "Ready"):
        assert _words(condition_of(deployment, kind)) == (*UNKNOWN, DEPLOYMENT_MESSAGE), kind
    assert number_at(deployment, "status", "readyReplicas") == 0
    assert number_at(deployment, "status", "replicas") == replicas
    for ordinal in range(replicas):
        instance = await project.get(INSTANCE, f"{WD}-{ordinal}")
        for kind in ("Available", "Ready"):
            assert _words(condition_of(instance, kind)) == (*UNKNOWN, INSTANCE_MESSAGE), kind
        assert condition_of(instance, "QuotaGranted").status == "True"
        other = await project.get(INSTANCE, f"{OTHER}-{ordinal}")
        assert condition_of(other, "Ready").status == "True"
    workload = await project.get(WORKLOAD, "web")
    assert condition_of(workload, "Available").status == "True"
    assert _words(condition_of(workload, "Ready")) == (*UNKNOWN, DEPLOYMENT_MESSAGE)
    (placement,) = objects_at(workload, "status", "placements")
    shown: JsonObject = {"status": placement}
    assert _words(condition_of(shown, "Ready"))[:2] == UNKNOWN
    assert number_at(workload, "status", "readyReplicas") == replicas


async def _uids(plane: Plane) -> dict[str, str]:
    listed = await plane.list(INSTANCE)
    return {str(value_at(one, "metadata", "name")): uid_of(one) for one in listed}


async def _is_back(world: World) -> None:
    await _is_ready(world)
    assert world.management.metric(CELLS, state="dark") == 0


def _versions(project: Plane) -> dict[str, int]:
    names = [*(f"{WD}-{n}" for n in range(2))]
    counted = {name: len(project.versions(INSTANCE, name)) for name in names}
    return {**counted, WD: len(project.versions(DEPLOYMENT, WD))}


@pytest.mark.spec("DS-03", "DS-08", "DS-16")
@scenario(BOTH)
async def test_a_site_that_died_is_unknown_and_comes_back_as_it_was(world: World) -> None:
    await _run(world)
    project, hub = world.project, await world.hub_of(world.project)
    cell = await world.cell_of(ORD, project)
    kept, copies = await _uids(cell), await _uids(hub)
    before, on_hub = _versions(project), len(world.writes(by="management", plane=HUB))
    await world.operator_of(ORD).kill()
    await world.backend.cut_member(ORD.name)
    await world.eventually(lambda: _is_dark(project), SAID)
    assert world.management.metric(CELLS, state="dark") == 1
    since = condition_of(await project.get(DEPLOYMENT, WD), "Ready").since
    await world.settle()
    dark = _versions(project)
    assert {name: dark[name] - before[name] for name in dark} == dict.fromkeys(dark, 1)
    await world.sleep(600, real=60)
    await _is_dark(project)
    assert _versions(project) == dark
    shown = condition_of(await project.get(DEPLOYMENT, WD), "Ready")
    assert shown.since == since
    assert len(world.writes(by="management", plane=HUB)) == on_hub
    assert (await _uids(cell), await _uids(hub)) == (kept, copies)
    await world.backend.heal_member(ORD.name)
    await world.operator_of(ORD).start()
    await world.eventually(lambda: _is_back(world), BACK)
    await world.settle()
    after = _versions(project)
    assert {name: after[name] - dark[name] for name in dark} == dict.fromkeys(dark, 1)
    assert (await _uids(cell), await _uids(hub)) == (kept, copies)


async def _events(project: Plane, reason: str) -> list[str]:
    return [
        str(value_at(one, "message") or value_at(one, "note"))
        for one in await project.list(EVENT)
        if value_at(one, "reason") == reason
    ]


@pytest.mark.spec("DS-15")
@scenario(BOTH)
async def test_a_user_reads_one_event_per_change(world: World) -> None:
    await _run(world, 1)
    await world.cut_off(ORD)
    await world.eventually(lambda: _is_dark(world.project, 1), SAID)
    await world.sleep(60, real=30)
    assert await _events(world.project, "CellUnreachable") == [DEPLOYMENT_MESSAGE]
    await world.reconnect(ORD)
    await world.eventually(lambda: _is_ready(world, 1), BACK)
    await world.sleep(30, real=15)
    assert await _events(world.project, "CellReachable") == ['City "ORD" is heard of again']
    assert await _events(world.project, "CellUnreachable") == [DEPLOYMENT_MESSAGE]


@pytest.mark.spec("DS-08")
@scenario(BOTH)
async def test_a_cell_that_one_witness_hears_is_not_dark(world: World) -> None:
    await _run(world)
    before = _versions(world.project)
    await world.operator_of(ORD).cut(HUB)
    await world.stays(lambda: _is_ready(world), within(600, real=150))
    assert world.management.metric(CELLS, state="silent") == 1
    await world.operator_of(ORD).heal(HUB)
    await world.sleep(60, real=60)
    await world.backend.cut_member(ORD.name)
    await world.stays(lambda: _is_ready(world), within(600, real=150))
    assert world.management.metric(CELLS, state="undelivered") == 1
    await world.backend.heal_member(ORD.name)
    await world.sleep(60, real=30)
    assert _versions(world.project) == before


@pytest.mark.spec("DS-08")
@scenario(BOTH)
async def test_a_hub_that_is_away_darkens_no_site(world: World) -> None:
    await _run(world)
    before = _versions(world.project)
    for operator in (world.management, world.operator_of(DFW), world.operator_of(ORD)):
        await operator.cut(HUB)
    await world.sleep(300, real=150)
    for operator in (world.management, world.operator_of(DFW), world.operator_of(ORD)):
        await operator.heal(HUB)
    await world.stays(lambda: _is_ready(world), within(120, real=60))
    assert _versions(world.project) == before


@pytest.mark.spec("DS-08")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True, expects_errors=True))
async def test_management_that_was_paused_darkens_no_site(world: World) -> None:
    await _run(world)
    before = _versions(world.project)
    await world.backend.freeze_leader("management")
    await world.sleep(300)
    await world.backend.thaw("management")
    await world.stays(lambda: _is_ready(world), within(180, real=90))
    assert _versions(world.project) == before


@pytest.mark.spec("DS-08")
@scenario(BOTH)
async def test_a_restart_of_management_shows_no_true_in_between(world: World) -> None:
    await _run(world)
    project = world.project
    await world.cut_off(ORD)
    await world.eventually(lambda: _is_dark(project), SAID)
    await world.settle()
    dark = _versions(project)
    await world.management.kill()
    await world.management.start()
    await world.stays(lambda: _is_dark(project), within(180, real=100))
    assert _versions(project) == dark
    # The site returns while a new process has not heard it yet.
    await world.management.kill()
    await world.reconnect(ORD)
    await world.sleep(60, real=30)
    await world.management.start()
    await world.eventually(lambda: _is_back(world), BACK)


@pytest.mark.spec("DS-06")
@scenario(BOTH)
async def test_nothing_is_ready_before_the_returned_cell_has_reported(world: World) -> None:
    await _run(world)
    project, cell = world.project, await world.cell_of(ORD, world.project)
    await world.operator_of(ORD).kill()
    await world.backend.cut_member(ORD.name)
    await world.eventually(lambda: _is_dark(project), SAID)
    # What ran is gone: the Instances of the cell still state Ready, and so do their copies.
    await cell.delete(INSTANCE, f"{WD}-0")
    await world.backend.heal_member(ORD.name)
    await world.stays(lambda: _is_dark(project), within(120, real=40))
    await world.operator_of(ORD).start()
    hub = await world.hub_of(project)

    async def is_told() -> None:
        """A Ready of the project is about the Instance that exists."""
        if f"{WD}-0" not in await project.names(INSTANCE):
            return  # between the old one and the new one
        shown = await project.get(INSTANCE, f"{WD}-0")
        if condition_of(shown, "Ready").status == "True":
            present = await cell.get(INSTANCE, f"{WD}-0")
            copy = await hub.get(INSTANCE, f"{WD}-0")
            assert annotations_of(copy).get(labels.INSTANCE_UID) == uid_of(present)

    await world.stays(is_told, within(60, real=60))
    await world.eventually(lambda: _is_back(world), BACK)


@pytest.mark.spec("DS-07")
@scenario(BOTH)
async def test_what_is_ordered_of_a_dark_city_waits_for_it(world: World) -> None:
    await _run(world)
    project, hub = world.project, await world.hub_of(world.project)
    cell = await world.cell_of(ORD, project)
    await world.cut_off(ORD)
    await world.eventually(lambda: _is_dark(project), SAID)
    scale: JsonObject = {"spec": {"placements": [a_placement("default", "DFW", "ORD", replicas=3)]}}
    await project.patch(WORKLOAD, "web", scale)
    await project.create(a_workload("late", a_placement("default", "ORD", replicas=1)))
    late = "late-default-ord"

    async def is_ordered() -> None:
        copy = await hub.get(DEPLOYMENT, WD)
        assert number_at(copy, "spec", "scaleSettings", "minReplicas") == 3
        await hub.get(DEPLOYMENT, late)
        shown = await project.get(DEPLOYMENT, WD)
        assert number_at(shown, "status", "observedGeneration") < number_at(
            shown, "metadata", "generation"
        )
        assert condition_of(shown, "Ready").reason == "CellUnreachable"

    await world.eventually(is_ordered, CHAIN)

    async def is_waiting() -> None:
        shown = await project.get(DEPLOYMENT, late)
        for kind in ("Available", "ReplicasReady", "Ready"):
            assert _words(condition_of(shown, kind)) == (*UNKNOWN, WAITING_MESSAGE), kind

    await world.eventually(is_waiting, within(120))
    assert sorted(await _uids(cell)) == [f"{WD}-0", f"{WD}-1"]
    await world.reconnect(ORD)

    async def has_caught_up() -> None:
        await _is_ready(world, 3)
        assert condition_of(await project.get(WORKLOAD, "late"), "Ready").status == "True"

    # Karmada repeats a Work that it could not deliver with a growing pause.
    await world.eventually(has_caught_up, within(180, real=300))
    await world.cut_off(ORD)
    await world.eventually(lambda: _is_dark(project, 3), SAID)
    await project.delete(WORKLOAD, "late")
    await world.eventually(partial(project.expect_gone, DEPLOYMENT, late), CHAIN)
    only: JsonObject = {"spec": {"placements": [a_placement("default", "DFW", replicas=3)]}}
    await project.patch(WORKLOAD, "web", only)
    await world.eventually(partial(project.expect_gone, DEPLOYMENT, WD), CHAIN)
    await world.reconnect(ORD)
    await world.eventually(
        partial(cell.expect_gone, INSTANCE, f"{WD}-0", f"{late}-0"), within(180, real=300)
    )


@pytest.mark.spec("DS-11")
@scenario(Needs(cells=(DFW, ORD), has_quota=True, is_alone=True, is_slow=True))
async def test_a_person_decides_by_an_annotation(world: World) -> None:
    await _run(world)
    project = world.project

    async def annotate(value: str | None) -> None:
        note = merge_of(annotations={labels.UNREACHABLE: value})
        await world.hub.patch(CLUSTER, ORD.name, note)

    await annotate("perhaps")
    await world.stays(lambda: _is_ready(world), within(60, real=20))
    await annotate("true")
    await world.eventually(lambda: _is_dark(project), within(15, real=30))
    await annotate(None)
    await world.eventually(lambda: _is_ready(world), within(15, real=30))
    await annotate("false")
    await world.cut_off(ORD)
    await world.stays(lambda: _is_ready(world), within(180, real=120))
    await world.reconnect(ORD)
    await annotate(None)
    await world.sleep(60, real=30)


@pytest.mark.spec("DS-17")
@scenario(OWN)
async def test_a_suspended_project_reads_the_state_of_its_resume(world: World) -> None:
    await _run(world)
    project = world.project
    frozen = _versions(project)
    await world.suspend()
    await world.cut_off(ORD)
    await world.sleep(180, real=120)
    assert _versions(project) == frozen
    await world.resume()
    unknown_or_suspended = {"CellUnreachable", "Suspended"}

    async def is_told() -> None:
        """The cell may have stopped before it was cut off, and what it has reported stays."""
        shown = condition_of(await project.get(DEPLOYMENT, WD), "Ready")
        assert shown.reason in unknown_or_suspended
        assert shown.status != "True"

    await world.eventually(is_told, within(90, real=150))
    await world.reconnect(ORD)
    await world.eventually(lambda: _is_ready(world), within(180, real=300))


@pytest.mark.spec("DS-12")
@scenario(BOTH)
async def test_a_lost_cell_is_unknown_until_it_is_decommissioned(world: World) -> None:
    await _run(world, 1)
    project, hub = world.project, await world.hub_of(world.project)
    await world.lose(ORD)
    await world.eventually(lambda: _is_dark(project, 1), SAID)
    refused = await world.backend.decommission("--cell", ORD.name, "--execute")
    assert refused.code == 2, refused.output
    await world.hub.delete(CLUSTER, ORD.name)

    async def is_unknown() -> None:
        instance = await project.get(INSTANCE, f"{WD}-0")
        assert _words(condition_of(instance, "Ready")) == (*UNKNOWN, INSTANCE_MESSAGE)

    await world.stays(is_unknown, within(120, real=90))
    listed = await world.backend.decommission("--cell", ORD.name)
    lease = f"compute-cells/compute-cell-{ORD.name}"
    assert lease in listed.output, listed.output
    assert "leases: 1 would delete, 0 failed" in listed.output
    done = await world.backend.decommission("--cell", ORD.name, "--execute")
    assert done.code == 0, done.output
    lines = [one for one in done.output.splitlines() if " deleted" in one and ": " not in one]
    assert lease in lines[-1], done.output
    await world.eventually(partial(hub.expect_gone, INSTANCE, f"{WD}-0"), CHAIN)
    await world.eventually(partial(project.expect_gone, INSTANCE, f"{WD}-0"), CHAIN)
