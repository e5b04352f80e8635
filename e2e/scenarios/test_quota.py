"""No Instance starts without a grant, and no running one is stopped by an outage of quota."""

from __future__ import annotations

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    JsonObject,
    Needs,
    Plane,
    World,
    a_bare_deployment,
    a_template,
    annotations_of,
    condition_of,
    gates_of,
    is_deleting,
    name_of,
    object_at,
    objects_at,
    scenario,
    text_at,
    uid_of,
    version_of,
    within,
)

WD = "test-quota-wd"
QUOTA = Needs(has_quota=True)
SWEPT_OFTEN = Needs(
    has_quota=True,
    is_alone=True,
    is_slow=True,
    settings={DFW.name: {"quota": {"sweepInterval": "1m"}}},
)
OWN_PROJECT = Needs(has_quota=True, has_own_projects=True)


async def _is_ready(plane: Plane, *names: str) -> None:
    for name in names:
        instance = await plane.get(INSTANCE, name)
        assert condition_of(instance, "Ready").status == "True", name


def _replicas(count: int) -> JsonObject:
    return {"spec": {"scaleSettings": {"minReplicas": count}}}


async def _run(world: World, replicas: int) -> None:
    """Creates a bare deployment and waits until all its replicas are Ready in the project."""
    await world.project.create(a_bare_deployment(WD, replicas=replicas))
    names = [f"{WD}-{ordinal}" for ordinal in range(replicas)]
    await world.eventually(lambda: _is_ready(world.project, *names), within(90, real=180))


@pytest.mark.spec("E-19")
@scenario(Needs(has_quota=True, is_alone=True, is_slow=True))
async def test_an_instance_waits_for_a_late_grant(world: World) -> None:
    project = world.project
    await world.backend.pause_quota()
    await project.create(a_bare_deployment(WD))
    cell = await world.cell_of(DFW, project)
    await world.eventually(lambda: cell.get(INSTANCE, f"{WD}-0"))
    await world.eventually(lambda: project.get(CLAIM, f"instance-{WD}-0"))
    claim = uid_of(await project.get(CLAIM, f"instance-{WD}-0"))

    async def waits() -> None:
        instance = await cell.get(INSTANCE, f"{WD}-0")
        assert "Quota" in gates_of(instance)
        assert condition_of(instance, "QuotaGranted").status == "Unknown"
        assert [uid_of(one) for one in await project.list(CLAIM)] == [claim]

    await world.eventually(waits)
    await world.stays(waits, within(90))
    await world.backend.resume_quota()

    async def is_open() -> None:
        assert "Quota" not in gates_of(await cell.get(INSTANCE, f"{WD}-0"))

    await world.eventually(is_open, within(1, real=5))
    await world.eventually(lambda: _is_ready(project, f"{WD}-0"))
    for reason in ("QuotaNoBudget", "QuotaGranted"):
        assert len(await cell.events(f"{WD}-0", reason)) == 1, reason


@pytest.mark.spec("E-20")
@scenario(OWN_PROJECT)
async def test_a_denied_replica_starts_when_there_is_room(world: World) -> None:
    project = world.project
    await world.grant(1)
    await project.create(a_bare_deployment(WD, replicas=2))
    await world.eventually(lambda: _is_ready(project, f"{WD}-0"), within(60, real=120))
    denied = f"{WD}-1"

    async def is_denied() -> None:
        instance = await project.get(INSTANCE, denied)
        assert condition_of(instance, "QuotaGranted").status_and_reason == (
            "False",
            "QuotaExceeded",
        )
        assert condition_of(instance, "Ready").status_and_reason == ("False", "PendingQuota")
        root = await project.get(DEPLOYMENT, WD)
        assert condition_of(root, "Available").status == "True"
        assert condition_of(root, "ReplicasReady").status_and_reason == ("False", "QuotaExceeded")
        assert condition_of(root, "Ready").status_and_reason == ("False", "QuotaNotGranted")

    await world.eventually(is_denied)
    await world.grant(2)
    await world.eventually(lambda: _is_ready(project, denied), within(60))
    _check_one_claim_at_a_time(project, f"instance-{denied}")


def _check_one_claim_at_a_time(project: Plane, name: str) -> None:
    living: set[str] = set()
    for version in project.versions(CLAIM, name):
        uid = uid_of(version.object)
        if version.is_gone:
            living.discard(uid)
        else:
            living.add(uid)
        assert len(living) <= 1, f"two claims of {name} at {version.at}"


@pytest.mark.spec("E-21")
@scenario(OWN_PROJECT)
async def test_nothing_starts_while_quota_is_away(world: World) -> None:
    project, operator = world.project, world.operator_of(DFW)
    await operator.cut(project.name)
    await project.create(a_bare_deployment(WD))
    cell = await world.cell_of(DFW, project)

    async def is_held() -> None:
        instance = await cell.get(INSTANCE, f"{WD}-0")
        granted = condition_of(instance, "QuotaGranted").status_and_reason
        assert granted == ("False", "QuotaBackendUnavailable")
        assert "Quota" in gates_of(instance)

    await world.eventually(is_held, within(60))
    failures = "compute_quota_eval_failures_total"
    assert operator.metric(failures, reason="backend_unavailable") > 0
    await world.stays(is_held, within(30))
    await operator.heal(project.name)
    await world.eventually(lambda: _is_ready(project, f"{WD}-0"), within(60))


@pytest.mark.spec("E-22")
@scenario(Needs(has_quota=True, has_own_projects=True, is_slow=True))
async def test_what_runs_does_not_notice_that_quota_is_away(world: World) -> None:
    project, operator = world.project, world.operator_of(DFW)
    await _run(world, 1)
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    await world.settle()
    planes = (project, hub, cell)
    before = [version_of(await plane.get(INSTANCE, f"{WD}-0")) for plane in planes]
    await operator.cut(project.name)
    await world.sleep(600, real=120)
    after = [version_of(await plane.get(INSTANCE, f"{WD}-0")) for plane in planes]
    assert after == before
    await project.patch(DEPLOYMENT, WD, _replicas(2))

    async def waits() -> None:
        assert "Quota" in gates_of(await cell.get(INSTANCE, f"{WD}-1"))

    await world.eventually(waits)
    await world.stays(waits, within(30))
    await operator.heal(project.name)
    await world.eventually(lambda: _is_ready(project, f"{WD}-1"), within(60))


@pytest.mark.spec("E-23")
@scenario(OWN_PROJECT)
async def test_a_claim_is_released_once_and_after_its_instance(world: World) -> None:
    project, operator = world.project, world.operator_of(DFW)
    await _run(world, 2)
    cell = await world.cell_of(DFW, project)
    name, claim = f"{WD}-1", f"instance-{WD}-1"
    uid = uid_of(await project.get(CLAIM, claim))
    await operator.cut(project.name)
    await project.patch(DEPLOYMENT, WD, _replicas(1))
    await world.eventually(lambda: cell.expect_gone(INSTANCE, name), within(30))
    gone = world.backend.now()
    await world.sleep(30)
    assert uid_of(await project.get(CLAIM, claim)) == uid
    await operator.heal(project.name)
    await world.eventually(lambda: project.expect_gone(CLAIM, claim), within(60))
    await world.sleep(30)
    ends = [one.at for one in project.versions(CLAIM, claim) if one.is_gone]
    assert len(ends) == 1
    assert ends[0] >= gone


@pytest.mark.spec("E-24")
@scenario(QUOTA)
async def test_a_claim_of_a_tenant_opens_no_gate(world: World) -> None:
    project = world.project
    forged = uid_of(await project.create(_forged_claim(project)))
    await project.create(a_bare_deployment(WD))
    cell = await world.cell_of(DFW, project)
    await world.eventually(lambda: _is_ready(project, f"{WD}-0"), within(60, real=120))
    opened = next(one.at for one in cell.versions(INSTANCE) if "Quota" not in gates_of(one.object))
    stood = [one for one in project.versions(CLAIM) if one.at <= opened][-1].object
    assert uid_of(stood) != forged
    assert annotations_of(stood).get(labels.INSTANCE_UID) == uid_of(
        await cell.get(INSTANCE, f"{WD}-0")
    )
    assert condition_of(stood, "Granted").status == "True"


def _forged_claim(project: Plane) -> JsonObject:
    owner: JsonObject = {
        "apiGroup": "resourcemanager.miloapis.com",
        "kind": "Project",
        "name": project.name,
    }
    resources = (labels.INSTANCES_RESOURCE, labels.VCPUS_RESOURCE, labels.MEMORY_RESOURCE)
    return {
        "apiVersion": CLAIM.api_version,
        "kind": CLAIM.name,
        "metadata": {"name": f"instance-{WD}-0"},
        "spec": {
            "consumerRef": owner,
            "resourceRef": {**owner},
            "requests": [{"resourceType": name, "amount": 1} for name in resources],
        },
    }


@pytest.mark.spec("E-24")
@scenario(SWEPT_OFTEN)
async def test_a_claim_that_is_lost_is_made_again_while_its_instance_runs(world: World) -> None:
    project = world.project
    await _run(world, 1)
    cell = await world.cell_of(DFW, project)
    await world.settle()
    running = uid_of(await cell.get(INSTANCE, f"{WD}-0"))
    lost = uid_of(await project.get(CLAIM, f"instance-{WD}-0"))
    await project.delete(CLAIM, f"instance-{WD}-0")

    async def is_made_again() -> None:
        claim = await project.get(CLAIM, f"instance-{WD}-0")
        assert uid_of(claim) != lost
        assert condition_of(claim, "Granted").status == "True"
        assert await cell.events(f"{WD}-0", "QuotaClaimLost")

    # No claim is undecided, so no watch runs: the next sweep detects it (quota.md B6).
    await world.eventually(is_made_again, within(90, real=120))
    assert uid_of(await cell.get(INSTANCE, f"{WD}-0")) == running
    shown = [one.object for one in project.versions(INSTANCE, f"{WD}-0")]
    ready = [condition_of(one, "Ready").status for one in shown]
    assert "True" not in ready or "False" not in ready[ready.index("True") :]


@pytest.mark.spec("E-24")
@scenario(QUOTA)
async def test_another_size_is_granted_before_it_starts(world: World) -> None:
    project = world.project
    await _run(world, 1)
    cell = await world.cell_of(DFW, project)
    first = uid_of(await cell.get(INSTANCE, f"{WD}-0"))
    larger = a_template("1.0")
    requests: JsonObject = {"cpu": "2", "memory": "4Gi"}
    runtime = object_at(larger, "spec", "runtime")
    resources: JsonObject = {**object_at(runtime, "resources"), "requests": requests}
    spec: JsonObject = {**object_at(larger, "spec"), "runtime": {**runtime, "resources": resources}}
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": {**larger, "spec": spec}}})

    async def is_replaced() -> None:
        assert uid_of(await cell.get(INSTANCE, f"{WD}-0")) != first
        await _is_ready(project, f"{WD}-0")
        claim = await project.get(CLAIM, f"instance-{WD}-0")
        asked = {
            text_at(one, "resourceType"): one["amount"]
            for one in objects_at(claim, "spec", "requests")
        }
        assert asked[labels.VCPUS_RESOURCE] == 2000

    await world.eventually(is_replaced, within(90, real=180))
    _check_order(project, cell, first)


def _check_order(project: Plane, cell: Plane, first: str) -> None:
    """The old claim was deleted after the old Instance; the new one was granted before its gate
    opened.
    """
    instances = cell.versions(INSTANCE, f"{WD}-0")
    ended = next(one.at for one in instances if one.is_gone and uid_of(one.object) == first)
    claims = project.versions(CLAIM, f"instance-{WD}-0")
    released = next(one.at for one in claims if one.is_gone)
    assert released >= ended
    granted = next(
        one.at
        for one in claims
        if one.at >= released and condition_of(one.object, "Granted").status == "True"
    )
    opened = next(
        one.at
        for one in instances
        if uid_of(one.object) != first
        and not is_deleting(one.object)
        and "Quota" not in gates_of(one.object)
    )
    assert name_of(instances[-1].object) == f"{WD}-0"
    assert opened >= granted
