"""Copies of Instances on the hub: when they are written, when not, and what stays untouched
(cell.md 11).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from cell_builders.documents import (
    CELL_NAME,
    NS,
    a_deployment_document,
    a_namespace_document,
    an_instance_document,
)
from cell_builders.world import (
    World,
    condition_of,
    gates_of,
    labels_of,
    play,
    spec_of,
    status_of,
    uid_of,
)

from compute_cell_operator.planes import CELL, DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import JsonObject, member_list, member_object
from compute_sim_planes.faults.plans import Action, Fault, Parameters, Point
from compute_sim_planes.history import Commit, ReconcileRecord, Request

PREFIX = "compute.datumapis.com/"
IDENTITY = "meta.datumapis.com/"
RECORDED = f"{PREFIX}instance-uid"
LINKS = (
    "workload-uid",
    "workload-name",
    "workload-deployment-uid",
    "workload-deployment-name",
    "placement-name",
    "city-code",
    "instance-index",
)


async def begin(world: World, replicas: int = 1) -> None:
    """A deployment that came from the hub and runs, its copies beside it."""
    world.start_neighbours()
    world.process().start()
    await world.federate()
    await world.deliver("web", replicas)
    await world.eventually(world.is_converged)
    await world.eventually(lambda: world.has_copies(*(f"web-{i}" for i in range(replicas))))


def annotations_of(found: JsonObject) -> JsonObject:
    return member_object(member_object(found, "metadata"), "annotations")


def owners_of(found: JsonObject) -> list[object]:
    return list(member_list(member_object(found, "metadata"), "ownerReferences"))


def hub_writes(world: World, verb: str = "", identity: str = "operator") -> list[Request]:
    return world.writes(identity, plane=HUB, verb=verb)


def refusals(world: World, reason: str) -> int:
    measures = world.processes[0].measures
    return measures.total("compute_writeback_refusals_total", reason=reason)


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.spec("C-66")
def test_a_copy_has_links_identity_cell_owner_spec_and_status() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        here, root = await world.instance("web-0"), await world.get(HUB, DEPLOYMENT, "web")
        found = await world.copy("web-0")
        assert labels_of(found) == {
            f"{PREFIX}workload-uid": "5b7f3f0e-0000-4000-8000-00000000000a",
            f"{PREFIX}workload-name": "shop",
            f"{PREFIX}workload-deployment-uid": uid_of(await world.deployment()),
            f"{PREFIX}workload-deployment-name": "web",
            f"{PREFIX}placement-name": "us",
            f"{PREFIX}city-code": "DFW",
            f"{PREFIX}instance-index": "0",
            f"{IDENTITY}upstream-cluster-name": "cluster-acme",
            f"{IDENTITY}upstream-namespace": "shop",
            f"{PREFIX}cell": CELL_NAME,
        }
        assert annotations_of(found) == {RECORDED: uid_of(here)}
        assert owners_of(found) == [
            {
                "apiVersion": DEPLOYMENT.api_version,
                "kind": DEPLOYMENT.kind,
                "name": "web",
                "uid": uid_of(root),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert spec_of(found) == spec_of(here)
        assert status_of(found) == status_of(here)
        assert condition_of(found, "Ready")[0] == "True"

    done = play(scenario)
    # The first copy was of an Instance that waited, and showed its gate.
    first = next(commit for commit in done.history.of(Commit) if _is_copy(commit))
    assert b'"schedulingGates":[{"name":"Network"}]' in first.after


def _is_copy(commit: Commit) -> bool:
    return commit.plane == HUB and commit.kind == INSTANCE.kind


@pytest.mark.spec("C-66")
def test_a_status_that_failed_is_made_up_without_a_second_create() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        assert len([one for one in hub_writes(world, "create") if one.commits]) == 1

    at = Point(plane=HUB, verb="update", kind=INSTANCE.kind, times=2)
    play(scenario, Fault("C8", Action.ERROR, at, Parameters(status=500)))


@pytest.mark.spec("C-67")
def test_an_update_spares_what_is_foreign_and_takes_gates_away() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        theirs: JsonObject = {
            "metadata": {
                "labels": {"theirs": "label"},
                "annotations": {f"{PREFIX}quarantine-reason": "oversized", "theirs": "too"},
                "finalizers": ["theirs/finalizer"],
            }
        }
        await world.patch(HUB, INSTANCE, "web-0", theirs)
        await world.patch(
            CELL, DEPLOYMENT, "web", {"spec": {"placementName": "eu"}}
        )  # a linking label
        place = f"{PREFIX}placement-name"

        async def is_moved() -> bool:
            return labels_of(await world.copy("web-0"))[place] == "eu"

        await world.eventually(is_moved)
        found = await world.copy("web-0")
        assert labels_of(found)["theirs"] == "label"
        assert annotations_of(found)["theirs"] == "too"
        assert annotations_of(found)[f"{PREFIX}quarantine-reason"] == "oversized"
        assert member_object(found, "metadata")["finalizers"] == ["theirs/finalizer"]
        assert gates_of(found) == []
        await world.patch(HUB, INSTANCE, "web-0", {"metadata": {"finalizers": None}})
        assert await world.rests() == []

    play(scenario)


@pytest.mark.spec("C-72", "C-79")
def test_a_recreated_instance_gets_a_new_copy() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        before = uid_of(await world.copy("web-0"))
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies("web-0"))
        found = await world.copy("web-0")
        assert uid_of(found) != before
        assert annotations_of(found)[RECORDED] == uid_of(await world.instance("web-0"))
        assert await world.rests() == []

    play(scenario)


@pytest.mark.spec("C-73", "C-77")
def test_a_terminating_instance_is_shown_until_it_is_gone() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": ["test/hold"]}})
        await world.scale("web", 0)

        async def is_shown() -> bool:
            return condition_of(await world.copy("web-0"), "Ready")[1] == "Terminating"

        await world.eventually(is_shown)
        await world.sleep(120)
        assert await world.copies() == ["web-0"]
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": None}})
        await world.eventually(world.has_copies, within=60)

    play(scenario)


# --- refusing -------------------------------------------------------------------------------------


@pytest.mark.spec("C-68")
@pytest.mark.parametrize("missing", [("city-code",), ("workload-uid", "placement-name")])
def test_without_all_linking_labels_there_is_no_copy_and_the_log_names_them(
    missing: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        world.process().start()
        await world.federate()
        given = {f"{PREFIX}{name}": "x" for name in LINKS if name not in missing}
        await world.create(CELL, an_instance_document("lone-0", labels=given))
        await world.sleep(600)
        assert await world.copies() == []
        assert hub_writes(world) == []
        passes = [
            one for one in world.history.of(ReconcileRecord) if one.controller == "write-back"
        ]
        assert len(passes) <= 2 * 10
        assert refusals(world, "missing_labels") >= 1

    play(scenario)
    (told,) = [record for record in caplog.records if "copy of an Instance" in record.message]
    named = ", ".join(f"{PREFIX}{name}" for name in LINKS if name in missing)
    assert vars(told)["error"] == f"labels missing: {named}"


@pytest.mark.spec("C-68")
def test_a_copy_stays_as_it_is_while_its_instance_lacks_a_label() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.processes[0].stop()
        before = await world.copy("web-0")
        await world.patch(
            CELL, INSTANCE, "web-0", {"metadata": {"labels": {f"{PREFIX}city-code": None}}}
        )
        # Without its deployment no controller restores the label.
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"ownerReferences": None}})
        await world.delete(CELL, DEPLOYMENT, "web")
        again = world.process("operator-2")
        again.start()
        await world.sleep(60)
        assert await world.copy("web-0") == before
        assert again.measures.total("compute_writeback_refusals_total", reason="missing_labels")

    play(scenario)


@pytest.mark.spec("C-69")
@pytest.mark.parametrize(
    ("label", "value", "told"),
    [
        ("upstream-cluster-name", None, f'has no label "{IDENTITY}upstream-cluster-name"'),
        ("upstream-namespace", None, f'has no label "{IDENTITY}upstream-namespace"'),
        ("upstream-cluster-name", "cluster-other", "upstream-cluster-name"),
        ("upstream-namespace", "other", "upstream-namespace"),
    ],
)
def test_a_hub_namespace_that_names_another_project_is_refused(
    label: str, value: str | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.federate()
        await world.patch(
            HUB, NAMESPACE, NS, {"metadata": {"labels": {f"{IDENTITY}{label}": value}}}
        )
        await world.deliver()
        await world.eventually(world.is_converged)
        await world.sleep(30)
        assert await world.copies() == []
        assert refusals(world, "namespace_identity") >= 1
        whole = {f"{IDENTITY}{label}": labels_of(a_namespace_document())[f"{IDENTITY}{label}"]}
        await world.patch(HUB, NAMESPACE, NS, {"metadata": {"labels": whole}})
        await world.eventually(lambda: world.has_copies("web-0"), within=400)

    play(scenario)
    logged = [vars(one)["error"] for one in caplog.records if "copy of an" in one.message]
    assert logged
    assert all(NS in str(error) and told in str(error) for error in logged)


@pytest.mark.spec("C-69")
def test_a_missing_hub_namespace_is_refused_and_an_unreadable_one_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        await world.sleep(20)
        # The hub does not answer for this Namespace: nothing is concluded.
        assert refusals(world, "namespace_identity") == 0
        await world.sleep(120)
        assert refusals(world, "namespace_identity") >= 1
        assert hub_writes(world) == []

    at = Point(plane=HUB, verb="get", kind=NAMESPACE.kind, key=NS, times=0)
    at = replace(at, until=timedelta(seconds=40))
    play(scenario, Fault("C4", Action.ERROR, at, Parameters(status=503)))


@pytest.mark.spec("C-70")
def test_without_a_hub_deployment_there_is_no_copy_no_error_and_little_work() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.federate()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.eventually(world.is_converged)
        began = world.clock.now()
        await world.sleep(300)
        assert await world.copies() == []
        passes = [
            one
            for one in world.history.of(ReconcileRecord)
            if one.controller == "write-back" and one.at > began
        ]
        assert len(passes) <= 2 * 5
        assert {one.outcome for one in passes} == {"waiting"}
        root = await world.create(HUB, a_deployment_document("web", 1))
        origin: JsonObject = {
            "metadata": {"annotations": {"resourcetemplate.karmada.io/uid": uid_of(root)}}
        }
        await world.patch(CELL, DEPLOYMENT, "web", origin)
        await world.eventually(lambda: world.has_copies("web-0"), within=31)

    play(scenario)


@pytest.mark.spec("C-70")
@pytest.mark.fault("F5")
def test_a_copy_that_went_with_its_owner_does_not_come_back() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.delete(HUB, DEPLOYMENT, "web")
        await world.eventually(world.has_no_copies)
        creates = len(hub_writes(world, "create"))
        await world.sleep(600)
        assert await world.copies() == []
        assert len(hub_writes(world, "create")) == creates
        assert await world.instances() == ["web-0"]

    play(scenario)


@pytest.mark.spec("C-70")
def test_an_owner_that_karmada_did_not_deliver_from_is_refused() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.federate()
        await world.create(HUB, a_deployment_document("web", 1))
        await world.create(CELL, a_deployment_document("web", 1))  # made from another
        await world.eventually(world.is_converged)
        await world.sleep(30)
        assert await world.copies() == []
        assert refusals(world, "owner_mismatch") >= 1

    play(scenario)


def a_copy_document(name: str, cell: str | None) -> JsonObject:
    """An Instance on the hub by another writer."""
    document = an_instance_document(name)
    metadata = member_object(document, "metadata")
    metadata["labels"] = {} if cell is None else {f"{PREFIX}cell": cell}
    return document


FOREIGN_OWNER: JsonObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "name": "kube-system",
    "controller": True,
}


@pytest.mark.spec("C-71", "C-82")
@pytest.mark.parametrize(
    ("cell", "owner", "reason"),
    [("ord-1", None, "other_cell"), (None, FOREIGN_OWNER, "foreign_owner")],
)
def test_what_belongs_to_others_is_never_touched(
    cell: str | None, owner: JsonObject | None, reason: str
) -> None:
    async def scenario(world: World) -> None:
        await world.federate()
        made = await world.create(HUB, a_copy_document("web-0", cell))
        if owner is not None:
            # It has to exist, else the hub's collector takes the object along.
            root = await world.get(HUB, NAMESPACE, "kube-system")
            kept = {**owner, "uid": uid_of(root)}
            made = await world.patch(
                HUB, INSTANCE, "web-0", {"metadata": {"ownerReferences": [kept]}}
            )
        world.start_neighbours()
        world.process().start()
        await world.deliver()
        await world.eventually(world.is_converged)
        await world.sleep(60)
        assert refusals(world, reason) >= 1
        # Neither when the Instance goes, nor by any sweep.
        await world.scale("web", 0)
        await world.sleep(1500)
        assert await world.copy("web-0") == made
        # The one create that the hub refused; from then on it is read, every five minutes.
        assert [one.status for one in hub_writes(world)] == [409]

    play(scenario)


@pytest.mark.spec("C-71")
def test_a_copy_without_an_owner_is_adopted() -> None:
    async def scenario(world: World) -> None:
        await world.federate()
        made = await world.create(HUB, a_copy_document("web-0", None))
        world.start_neighbours()
        world.process().start()
        await world.deliver()
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies("web-0"))
        found = await world.copy("web-0")
        assert uid_of(found) == uid_of(made)
        assert labels_of(found)[f"{PREFIX}cell"] == CELL_NAME
        assert len(owners_of(found)) == 1
        assert await world.rests() == []

    play(scenario)


# --- repairing and resting ------------------------------------------------------------------------


EDITS: dict[str, JsonObject] = {
    "a label": {"metadata": {"labels": {f"{PREFIX}city-code": "XXX"}}},
    "our label": {"metadata": {"labels": {f"{PREFIX}cell": None}}},
    "identity": {"metadata": {"labels": {f"{IDENTITY}upstream-namespace": "else"}}},
    "the owner": {"metadata": {"ownerReferences": None}},
    "the recorded UID": {"metadata": {"annotations": {RECORDED: None}}},
    "the spec": {"spec": {"runtime": {"resources": {"instanceType": "datumcloud/else"}}}},
}


@pytest.mark.spec("C-74")
@pytest.mark.fault("F5")
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_copy_is_repaired(edit: str) -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        before = await world.copy("web-0")
        await world.patch(HUB, INSTANCE, "web-0", EDITS[edit])

        async def is_whole() -> bool:
            found = await world.find(HUB, INSTANCE, "web-0")
            return found is not None and ours(found) == ours(before)

        await world.eventually(is_whole, within=30)
        assert await world.rests() == []

    play(scenario)


def ours(found: JsonObject) -> JsonObject:
    """All of a copy that write-back owns."""
    return {
        "labels": labels_of(found),
        "annotations": annotations_of(found),
        "owners": member_list(member_object(found, "metadata"), "ownerReferences"),
        "spec": spec_of(found),
        "status": status_of(found),
    }


@pytest.mark.spec("C-74")
def test_a_deleted_copy_and_a_forged_status_are_repaired() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.delete(HUB, INSTANCE, "web-0")
        await world.eventually(lambda: world.has_copies("web-0"), within=30)
        await world.set_status(HUB, INSTANCE, "web-0", {"conditions": []})
        await world.eventually(lambda: world.has_copies("web-0"), within=30)

    play(scenario)


@pytest.mark.spec("C-74", "C-89")
def test_at_rest_the_hub_is_only_watched_and_a_restart_lists_once_and_writes_nothing() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 3)
        await world.sleep(30)
        before = len(hub_requests(world))
        await world.sleep(1800)
        assert {one.address.verb for one in hub_requests(world)[before:]} <= {"watch"}
        await world.processes[0].stop()
        again = world.process("operator-2")
        again.start()
        await world.sleep(1800)
        asked = hub_requests(world, "operator-2")
        assert [one.address.verb for one in asked].count("list") == 1
        assert {one.address.verb for one in asked} == {"list", "watch"}
        assert world.writes("operator-2") == []

    play(scenario)


def hub_requests(world: World, identity: str = "operator") -> list[Request]:
    return [one for one in world.requests(identity) if one.address.plane == HUB]


@pytest.mark.spec("C-74")
def test_a_field_that_the_hub_prunes_is_sent_once_per_change() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.install_older_hub()
        await world.eventually(lambda: world.exists(HUB, INSTANCE, "web-0"), within=120)
        await world.sleep(60)
        before = len(hub_requests(world))
        await world.sleep(1800)
        assert {one.address.verb for one in hub_requests(world)[before:]} <= {"watch"}
        writes = len(hub_writes(world))
        await world.patch(CELL, DEPLOYMENT, "web", {"spec": {"placementName": "eu"}})
        await world.sleep(1800)
        assert 1 <= len(hub_writes(world)) - writes <= 2  # object and status

    play(scenario)


# --- the hub away ---------------------------------------------------------------------------------


@pytest.mark.spec("C-75")
@pytest.mark.fault("D4")
def test_the_cell_works_without_its_hub_and_catches_up_when_it_is_back() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 3)
        process = world.processes[0]
        link = world.links[HUB]
        conditions = [condition_of(await world.copy(f"web-{i}"), "Ready") for i in range(3)]
        link.cut()
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        await world.scale("web", 2)
        await world.eventually(lambda: world.has_instances("web-0", "web-1"))
        await world.sleep(590)
        assert pending_of(world) >= 500
        assert "WriteBackDelayed" in process.reasons()
        assert [condition_of(await world.copy(f"web-{i}"), "Ready") for i in range(3)] == conditions
        before = len(hub_writes(world))
        link.heal()
        await world.eventually(lambda: world.has_copies("web-0", "web-1"), within=60)
        await world.sleep(10)
        assert pending_of(world) == 0
        # web-2 is deleted; of the other two each is replaced: delete, create, status.
        written = [one for one in hub_writes(world)[before:] if one.commits]
        assert sorted((one.address.verb, one.address.name) for one in written) == sorted(
            [("delete", "web-2")]
            + [(verb, f"web-{i}") for i in range(2) for verb in ("create", "delete", "update")]
        )
        assert await world.rests() == []

    play(scenario)


def pending_of(world: World) -> float:
    key = ("compute_oldest_pending_seconds", (("controller", "write-back"),))
    return world.processes[0].measures.gauges[key]


@pytest.mark.spec("C-75", "C-87")
def test_a_hub_that_is_away_from_the_start_delays_nothing_but_copies() -> None:
    async def scenario(world: World) -> None:
        await world.federate()
        world.links[HUB].cut()
        world.start_neighbours()
        world.process().start()
        await world.deliver("web", 2)
        await world.eventually(world.is_converged)
        await world.sleep(280)
        process = world.processes[0]
        assert "WriteBackDelayed" not in process.reasons()
        await world.sleep(60)
        assert process.reasons().count("WriteBackDelayed") == 1
        assert pending_of(world) > 300
        world.links[HUB].heal()
        await world.eventually(lambda: world.has_copies("web-0", "web-1"), within=60)
        await world.sleep(10)
        assert pending_of(world) == 0

    play(scenario)


@pytest.mark.spec("C-75")
def test_lag_is_measured_from_the_change_to_the_acknowledgement() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        values = world.processes[0].measures.values[("compute_writeback_lag_seconds", ())]
        assert values
        assert max(values) < 1
        world.links[HUB].cut()
        await world.patch(CELL, DEPLOYMENT, "web", {"spec": {"placementName": "eu"}})
        await world.sleep(100)
        world.links[HUB].heal()
        await world.sleep(60)
        assert 99 < max(values) < 160

    play(scenario)


@pytest.mark.spec("C-76")
def test_hub_and_cell_being_one_server_keeps_write_back_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        # The cell's own kubeconfig is configured as the hub's.
        world.planes[HUB] = world.planes[CELL]
        world.mistaken[HUB] = world.operator_on(CELL)
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(world.is_converged)
        await world.scale("web", 1)
        await world.sleep(120)
        assert hub_writes(world) == []

    play(scenario, is_clean=False)
    told = [one for one in caplog.records if "same API server" in one.message]
    assert len(told) == 1


def test_a_copy_that_waits_for_more_to_say_asks_the_hub_once() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        looks = [
            one.address.kind
            for one in world.requests()
            if (one.address.plane, one.address.verb) == (HUB, "get")
            and one.address.kind in {DEPLOYMENT.kind, INSTANCE.kind}
        ]
        # For its owner; the copy itself is not looked for, since a hub refuses a second one.
        assert looks == [DEPLOYMENT.kind]

    play(scenario)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.spec("C-100")
@pytest.mark.parametrize("seed", range(4))
def test_an_instance_that_comes_and_goes_leaves_no_copy_of_the_dead(seed: int) -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        random = world.clock.random("whims")
        for _ in range(6):
            await world.delete(CELL, INSTANCE, "web-0")
            await world.sleep(random.random() * 3)
            await world.eventually(lambda: world.has_instances("web-0"))
            await world.sleep(random.random())
        await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies("web-0"))
        found = await world.copy("web-0")
        assert annotations_of(found)[RECORDED] == uid_of(await world.instance("web-0"))
        await world.withdraw()
        await world.eventually(world.has_no_copies)

    play(scenario, seed=seed)


@pytest.mark.spec("C-100")
def test_two_leaders_leave_one_right_copy() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        other = world.process("operator-2")
        other.start()
        for tag in ("2.0", "3.0"):
            await world.set_image("web", tag)
            await world.sleep(1)
            await world.eventually(world.is_converged)
        await world.eventually(lambda: world.has_copies("web-0"))
        await world.scale("web", 0)
        await world.eventually(world.has_copies)

    play(scenario)
