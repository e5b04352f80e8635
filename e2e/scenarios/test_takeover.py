"""An installation of the Go operators is taken over, on objects recorded there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    ADMIN,
    BUCKET,
    CLAIM,
    DELETING,
    DEPLOYMENT,
    DFW,
    HUB,
    INSTANCE,
    POLICY,
    RUNNING,
    WORKLOAD,
    JsonObject,
    JsonValue,
    Kind,
    Needs,
    Plane,
    World,
    annotations_of,
    condition_of,
    generation_of,
    labels_of,
    merge_of,
    name_of,
    number_at,
    object_at,
    objects_at,
    owners_of,
    scenario,
    text_at,
    uid_of,
    within,
)

LIMIT = 11  # Instances of the recorded project, all in use
WAITING = "extra-p-dfw-1"  # the Instance without quota
ADOPTED = "compute.datumapis.com/adopted-template-hash"
STRANGER, INTRUDER = "extra-p-dfw-2", "db-p-dfw-1"  # similar objects on the cell and on the hub
RUNS = {"api": 2, "batch": 4, "db": 1, "extra": 1, "web": 3}
# Kinds that a user of the project sees, and kinds of every plane.
SEEN = (WORKLOAD, DEPLOYMENT, INSTANCE)
SETTINGS: dict[str, JsonObject] = {
    "management": {"networking": "off", "projection": {"requireCellLabel": False}},
    DFW.name: {"networking": "off"},
}
NEEDS = Needs(has_quota=True, has_own_projects=True, is_alone=True, settings=SETTINGS)
SLOW = replace(NEEDS, is_slow=True)
FORGED = replace(SLOW, expects_errors=True)  # quarantine is logged at ERROR


@dataclass(frozen=True, slots=True)
class Before:
    """The planes before our operators start."""

    at: datetime
    planes: tuple[tuple[Plane, tuple[Kind, ...]], ...]
    uids: frozenset[str]
    specs: dict[str, JsonObject]
    claims: dict[str, str]  # UID by name, including the denied one
    granted: frozenset[str]
    buckets: dict[str, JsonObject]
    conditions: dict[tuple[str, str], str]


async def _snapshot(world: World) -> Before:
    """The objects after the recorded installation was loaded."""
    await world.sleep(2)  # the recorders have seen the loaded objects
    project = world.project
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    planes = (
        (project, SEEN),
        (hub, (DEPLOYMENT, INSTANCE, POLICY)),
        (cell, (DEPLOYMENT, INSTANCE)),
    )
    documents = [one for plane, kinds in planes for kind in kinds for one in await plane.list(kind)]
    claims = await project.list(CLAIM)
    return Before(
        world.backend.now(),
        planes,
        frozenset(uid_of(one) for one in documents),
        {uid_of(one): _spec_of(one) for one in documents},
        {name_of(one): uid_of(one) for one in claims},
        frozenset(name_of(one) for one in claims if _is_granted(one)),
        await _look_at_buckets(world),
        {
            (uid_of(one), text_at(condition, "type")): text_at(condition, "status")
            for kind in SEEN
            for one in await project.list(kind)
            for condition in objects_at(one, "status", "conditions")
            if text_at(condition, "reason") != "Pending"  # the schema's default, never written
        },
    )


def _spec_of(document: JsonObject) -> JsonObject:
    """Without `replicas`, the number of an autoscaler: the Go operators also store it above a cell,
    where it is removed (autoscaling.md 2).
    """
    return {name: one for name, one in object_at(document, "spec").items() if name != "replicas"}


def _is_granted(claim: JsonObject) -> bool:
    return condition_of(claim, "Granted").status == "True"


def _expect_nothing_replaced(before: Before) -> None:
    """No object that a user, Karmada or the provider knows was deleted or created; no spec
    changed.
    """
    for plane, kinds in before.planes:
        for kind in kinds:
            for one in plane.versions(kind):
                if one.at < before.at:
                    continue
                name = f"{kind.name} {name_of(one.object)} on {plane.name}"
                assert not one.is_gone, f"{name} was deleted"
                assert uid_of(one.object) in before.uids, f"{name} was made"
                if kind is not POLICY:
                    was = before.specs[uid_of(one.object)]
                    assert _spec_of(one.object) == was, f"the spec of {name} was changed"


def _expect_conditions_kept(before: Before, project: Plane) -> None:
    for kind in SEEN:
        for one in project.versions(kind):
            if one.at < before.at:
                continue
            for condition in objects_at(one.object, "status", "conditions"):
                key = uid_of(one.object), text_at(condition, "type")
                was = before.conditions.get(key)
                words = f"{kind.name} {name_of(one.object)} {condition}"
                assert was in {None, text_at(condition, "status")}, words


def _expect_claims_kept(before: Before, project: Plane) -> None:
    """All claims, the denied one too, have the UID and decision they had."""
    for one in project.versions(CLAIM):
        if one.at >= before.at:
            name = name_of(one.object)
            assert not one.is_gone, f"{name} was released"
            assert uid_of(one.object) == before.claims.get(name), f"{name} was made"
            is_granted = name in before.granted
            assert _is_granted(one.object) is is_granted, f"the verdict on {name} changed"


def _expect_grants_kept(before: Before, project: Plane) -> None:
    """Also after the denied claim was requested again."""
    for one in project.versions(CLAIM):
        name = name_of(one.object)
        if one.at >= before.at and name in before.granted:
            assert not one.is_gone, f"{name} was released"
            assert uid_of(one.object) == before.claims[name], f"{name} was made again"
            assert _is_granted(one.object), f"{name} lost its grant"


async def _look_at_buckets(world: World) -> dict[str, JsonObject]:
    """The counters of every quota bucket of the project, by resource type."""
    milo = world.project.in_namespace("milo-system")
    return {
        text_at(one, "spec", "resourceType"): {
            name: number_at(one, "status", name)
            for name in ("limit", "allocated", "available", "claimCount")
        }
        for one in await milo.list(BUCKET)
    }


def _expect_buckets_kept(before: Before, project: Plane) -> None:
    """No counter changed at any time."""
    for one in project.in_namespace("milo-system").versions(BUCKET):
        if one.at >= before.at:
            resource = text_at(one.object, "spec", "resourceType")
            was = before.buckets[resource]
            numbers = {name: number_at(one.object, "status", name) for name in was}
            assert not one.is_gone, f"the bucket of {resource} was deleted"
            assert numbers == was, f"the bucket of {resource} changed"


async def _expect_taken_over(world: World) -> None:
    """Every copy names its cell, and no object needs the Go operators any more."""
    hub = await world.hub_of(world.project)
    for copy in await hub.list(INSTANCE):
        assert labels_of(copy).get(labels.CELL) == DFW.name, name_of(copy)
        assert labels.INSTANCE_UID in annotations_of(copy), name_of(copy)
    for claim in await world.project.list(CLAIM):
        assert labels.INSTANCE_UID in annotations_of(claim), name_of(claim)
    for workload in await world.project.list(WORKLOAD):
        is_waiting = name_of(workload) == "extra"
        wanted = ("False", "QuotaNotGranted") if is_waiting else ("True", "PlacementsReady")
        assert condition_of(workload, "Ready").status_and_reason == wanted, name_of(workload)
    (policy,) = await hub.list(POLICY)
    assert len(objects_at(policy, "spec", "resourceSelectors")) == 1


async def _expect_gone(world: World, *workloads: str) -> None:
    """No object of these Workloads is on any plane."""
    project = world.project
    for plane in (project, await world.hub_of(project), await world.cell_of(DFW, project)):
        for kind in (*SEEN, CLAIM):
            names = [name.removeprefix("instance-") for name in await plane.names(kind)]
            left = [one for one in names if one.partition("-")[0] in workloads]
            assert left == [], f"{kind.name} on {plane.name}: {left}"


async def _delete_workloads(world: World, *workloads: str) -> None:
    for name in workloads:
        await world.project.delete(WORKLOAD, name)


@pytest.mark.spec("E-49")
@pytest.mark.spec("OU-03")
@scenario(SLOW)
async def test_a_takeover_replaces_nothing_and_releases_nothing(world: World) -> None:
    project = world.project
    await world.grant(LIMIT)
    await world.load_recorded(RUNNING, DFW)
    before = await _snapshot(world)
    taken = before.buckets[labels.INSTANCES_RESOURCE]
    assert [taken[name] for name in ("limit", "allocated", "available")] == [LIMIT, LIMIT, 0]
    await world.management.start()
    await world.operator_of(DFW).start()
    await world.eventually(lambda: _expect_taken_over(world), within(60, real=90))
    for _ in range(60):
        await world.sleep(10, real=2)
        assert await _look_at_buckets(world) == before.buckets
    held = {name_of(one): uid_of(one) for one in await project.list(CLAIM)}
    assert held == before.claims
    _expect_nothing_replaced(before)
    _expect_claims_kept(before, project)
    _expect_buckets_kept(before, project)
    _expect_conditions_kept(before, project)
    await _expect_taken_over(world)
    cell = await world.cell_of(DFW, project)
    old = {uid_of(one) for one in await cell.list(INSTANCE)}
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})

    async def is_restarted() -> None:
        for name in ("web-p-dfw-0", "web-p-dfw-1", "web-p-dfw-2"):
            assert uid_of(await cell.get(INSTANCE, name)) not in old, name
            shown = await project.get(INSTANCE, name)
            assert condition_of(shown, "Ready").status == "True", name

    await world.eventually(is_restarted, within(120, real=240))
    _expect_grants_kept(before, project)
    await _delete_workloads(world, *RUNS)
    await world.eventually(lambda: _expect_gone(world, *RUNS), within(120, real=240))
    hub = await world.hub_of(project)
    await world.eventually(lambda: hub.expect_gone(POLICY, "city-dfw"))


@pytest.mark.spec("E-50")
@pytest.mark.spec("OU-04")
@scenario(NEEDS)
async def test_what_was_deleted_before_a_takeover_goes_completely(world: World) -> None:
    project = world.project
    await world.grant(LIMIT)
    await world.load_recorded(DELETING, DFW)
    cell = await world.cell_of(DFW, project)
    kept = ("api", "batch", "extra")
    running = {
        name_of(one): uid_of(one)
        for one in await cell.list(INSTANCE)
        if name_of(one).partition("-")[0] in kept and name_of(one) != WAITING
    }
    before = await _snapshot(world)
    claims = {f"instance-{name}" for name in running}
    await world.management.start()
    await world.operator_of(DFW).start()
    await world.eventually(lambda: _expect_gone(world, "db", "web"), within(120, real=180))
    uids = {name_of(one): uid_of(one) for one in await cell.list(INSTANCE)}
    assert {name: uids[name] for name in running} == running
    held = {name_of(one): uid_of(one) for one in await project.list(CLAIM)}
    assert {name: held[name] for name in claims} == {name: before.claims[name] for name in claims}
    await _delete_workloads(world, *kept)
    await world.eventually(lambda: _expect_gone(world, *RUNS), within(120, real=180))


@pytest.mark.spec("E-51")
@scenario(SLOW)
async def test_copies_that_name_no_cell_are_no_intruders_until_the_last_cell(world: World) -> None:
    project = world.project
    await world.grant(LIMIT)
    await world.load_recorded(RUNNING, DFW)
    before = await _snapshot(world)
    hub = await world.hub_of(project)
    quarantined = "compute_federation_quarantined_objects"

    async def is_trusted() -> None:
        for copy in await hub.list(INSTANCE):
            assert not set(labels.QUARANTINE_ANNOTATIONS) & set(annotations_of(copy))
        assert world.management.metric(quarantined) == 0

    async def is_federated() -> None:
        for one in await hub.list(DEPLOYMENT):
            source = await project.get(DEPLOYMENT, name_of(one))
            shown = annotations_of(one).get(labels.PROJECT_GENERATION)
            assert shown == str(generation_of(source)), name_of(one)

    await world.management.start()
    await world.eventually(is_federated, within(60))
    await world.sleep(30, real=20)
    await is_trusted()
    _expect_nothing_replaced(before)
    _expect_conditions_kept(before, project)
    await world.operator_of(DFW).start()
    await world.eventually(lambda: _expect_taken_over(world), within(60, real=90))
    await world.management.stop()
    await world.management.start({"networking": "off"})  # the label is required again
    await world.sleep(60, real=15)
    await is_trusted()
    _expect_nothing_replaced(before)
    await _delete_workloads(world, *RUNS)
    await world.eventually(lambda: _expect_gone(world, *RUNS), within(120, real=240))


async def _disguise(world: World) -> None:
    """Makes four objects resemble the Go operators': on the cell with another owner, on the hub of
    another project, in the project of another controller, and a claim of another cell.
    """
    project, hub = world.project.as_user(ADMIN), await world.hub_of(world.project)
    cell = await world.cell_of(DFW, world.project)
    model = await cell.get(INSTANCE, WAITING)
    await cell.create(_like(model, STRANGER, _owner(model)))
    copy = _like(await hub.get(INSTANCE, "db-p-dfw-0"), INTRUDER)
    labels_of(copy)[labels.UPSTREAM_CLUSTER_NAME] = "cluster-other"
    await hub.create(copy)
    world.backend.leave(HUB, INSTANCE, f"{hub.namespace}/{INTRUDER}")
    taker = _owner(await project.get(WORKLOAD, "db"))
    await project.patch(INSTANCE, "db-p-dfw-0", merge_of(ownerReferences=[taker]))
    elsewhere = merge_of(labels={labels.SOURCE_CLUSTER: "ord-1"})
    await project.patch(CLAIM, "instance-db-p-dfw-0", elsewhere)


def _like(model: JsonObject, name: str, owner: JsonObject | None = None) -> JsonObject:
    metadata: JsonObject = {
        "name": name,
        "labels": {**labels_of(model)},
        "ownerReferences": [owner] if owner else list[JsonValue](owners_of(model)),
    }
    kept = {key: model[key] for key in ("apiVersion", "kind", "spec")}
    return {**kept, "metadata": metadata}


def _owner(document: JsonObject) -> JsonObject:
    return {
        "apiVersion": text_at(document, "apiVersion"),
        "kind": text_at(document, "kind"),
        "name": name_of(document),
        "uid": uid_of(document),
        "controller": True,
    }


def _identity(document: JsonObject) -> JsonObject:
    """All fields that an adoption would change."""
    return {
        "uid": uid_of(document),
        "labels": {**labels_of(document)},
        "owners": list[JsonValue](owners_of(document)),
        "spec": document["spec"],
        "adopted": ADOPTED in annotations_of(document),
    }


@pytest.mark.spec("E-52")
@scenario(FORGED)
async def test_what_only_looks_like_the_predecessors_is_not_adopted(world: World) -> None:
    project = world.project
    await world.grant(LIMIT)
    await world.load_recorded(RUNNING, DFW)
    await _disguise(world)
    hub, cell = await world.hub_of(project), await world.cell_of(DFW, project)
    places = (
        (cell, INSTANCE, STRANGER),
        (hub, INSTANCE, INTRUDER),
        (project, INSTANCE, "db-p-dfw-0"),
        (project, CLAIM, "instance-db-p-dfw-0"),
    )

    async def essence() -> list[JsonObject]:
        documents = [await plane.get(kind, name) for plane, kind, name in places]
        for one in documents:
            assert labels.INSTANCE_UID not in annotations_of(one), name_of(one)
        return [_identity(one) for one in documents]

    before = await essence()
    await world.management.start()
    await world.operator_of(DFW).start()

    async def are_reported() -> None:
        for name, reason in ((INTRUDER, "identity_mismatch"), ("db-p-dfw-0", "name_taken")):
            annotations = annotations_of(await hub.get(INSTANCE, name))
            assert annotations.get(labels.QUARANTINE_REASON) == reason, annotations
        await project.expect_gone(INSTANCE, INTRUDER)

    await world.eventually(are_reported, within(60))
    await world.sleep(120, real=30)
    assert await essence() == before
    await are_reported()
    # Only the other cell may release it.
    await project.as_user(ADMIN).delete(CLAIM, "instance-db-p-dfw-0")
    await _delete_workloads(world, *RUNS)
    await world.eventually(lambda: _expect_gone(world, *RUNS), within(120, real=240))
