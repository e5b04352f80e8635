"""What platform operators see of the Workload, discovery and admission side (management.md 15)."""

from __future__ import annotations

import pytest
from management_builders.documents import (
    a_deployment_document,
    a_placement_document,
    a_template_document,
    a_workload_document,
)
from management_builders.world import World, a_review, play, uid_of

from compute_api_types import labels, names
from compute_management_operator.planes import DEPLOYMENT, NETWORK, PROJECT, ROOT, WORKLOAD
from compute_operator_kit.core.json import Json
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import ReconcileRecord

PROJECTS = ("tenant-acme", "tenant-beta")
# faults.md: a create that the plane rejects as invalid
REFUSED = Fault(
    "C6",
    Action.ERROR,
    Point(verb="create", kind="WorkloadDeployment", key="default/bad-us-dfw", times=0),
    Parameters(status=422, reason="Invalid"),
)


async def script(world: World) -> None:
    """Every event about Workloads, projects and admission happens once."""
    for name in PROJECTS:
        await world.add_project(name, cities=("DFW", "LHR"))
    process = world.process()
    process.start()
    acme = PROJECTS[0]
    await world.create(acme, a_workload_document("web", {"us": ("DFW", "LHR"), "moon": ("TYCHO",)}))
    await world.create(acme, a_workload_document("bad"))
    unreachable = a_template_document(networks=("absent",))
    await world.create(acme, a_workload_document("lost", template=unreachable))
    await world.sleep(2)
    placements: list[Json] = [a_placement_document("us", ("DFW",))]
    await world.patch(acme, WORKLOAD, "web", {"spec": {"placements": placements}})
    made = await world.create(PROJECTS[1], a_workload_document("taken", {"us": ("TYCHO",)}))
    both = names.derive_deployment_names(
        workload="taken", workload_uid=uid_of(made), placement="us", city_code="DFW"
    )
    for name in ("taken-us-dfw", both.hashed):
        await world.create(PROJECTS[1], a_deployment_document(name, workload_uid="another"))
    await world.patch(PROJECTS[1], WORKLOAD, "taken", {"spec": {"placements": placements}})
    await world.sleep(2)
    extra: dict[str, Json] = {labels.PARENT_NAME_EXTRA: [acme]}
    await process.admit(a_review(a_workload_document(), extra))
    await process.admit(a_review(a_workload_document("web", {"us": ("TYCHO",)}), extra))
    await process.admit(a_review(a_workload_document(), {}))
    await world.delete(ROOT, PROJECT, PROJECTS[1])
    await world.sleep(10)


@pytest.mark.spec("M-88")
def test_every_event_about_a_workload_occurs_and_is_recorded_on_it() -> None:
    done = play(script, REFUSED)
    reported = [one for one in done.world.processes[0].recorder.emitted if one.key.kind == WORKLOAD]
    assert {(one.reason, one.type) for one in reported} == {
        ("DeploymentCreated", "Normal"),
        ("DeploymentDeleted", "Normal"),
        ("NoMatchingLocation", "Warning"),
        ("NetworkNotFound", "Warning"),
        ("NameCollision", "Warning"),
        ("DeploymentRejected", "Warning"),
    }


@pytest.mark.spec("M-88")
def test_every_metric_of_projects_and_admission_occurs_and_none_names_a_project() -> None:
    measures = play(script, REFUSED).world.processes[0].measures
    existing = {
        name for store in (measures.counts, measures.gauges, measures.values) for name, _ in store
    }
    assert {
        "compute_projects_engaged",
        "compute_projects_failing",
        "compute_project_engage_seconds",
        "compute_admission_requests_total",
        "controller_runtime_reconcile_total",
        "compute_writes_total",
        "compute_planes",
        "compute_plane_up",
    } <= existing
    series = str([*measures.counts, *measures.gauges, *measures.values])
    assert not [name for name in (*PROJECTS, "default", "web") if name in series]


@pytest.mark.spec("M-88")
def test_every_pass_has_one_span() -> None:
    done = play(script, REFUSED)
    passes = list(done.history.of(ReconcileRecord))
    counted = done.world.processes[0].measures.total("controller_runtime_reconcile_total")
    assert len(passes) == counted
    assert {"workload", "discovery"} <= {one.controller for one in passes}


@pytest.mark.spec("M-80")
@pytest.mark.fault("D3")
def test_a_project_that_is_gone_leaves_no_store_and_no_key_behind() -> None:
    async def scenario(world: World) -> None:
        await world.add_project("acme", cities=("DFW",))
        process = world.process()
        process.start()
        await world.create("acme", a_workload_document())
        await world.eventually(lambda: world.exists("acme", DEPLOYMENT, "web-us-dfw"))
        await world.delete(ROOT, PROJECT, "acme")
        await world.sleep(10)
        planes = process.operator.planes
        assert planes.find_store(world.key_of("acme", a_workload_document()).plane, NETWORK) is None
        before = len(list(world.history.of(ReconcileRecord)))
        await world.sleep(7200)
        later = list(world.history.of(ReconcileRecord))[before:]
        assert [one for one in later if one.controller == "workload"] == []

    play(scenario)
