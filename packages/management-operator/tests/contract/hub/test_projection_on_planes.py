"""Projection on simulated planes: what a project sees of its Instances, and what it never sees."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_document,
    a_document,
)
from management_builders.hub_script import (
    INSTANCE_NAME,
    PROJECT,
    READY,
    WD,
    WD_READY,
    Hub,
    annotations_of,
    labels_of,
    metadata_of,
    play_hub,
)
from management_builders.world import condition_of, shown, spec_of, status_of, uid_of

from compute_api_types import labels, names, reasons
from compute_management_operator.hub.metrics import QUARANTINED
from compute_management_operator.planes import (
    CLUSTER,
    DEPLOYMENT,
    HUB,
    INSTANCE,
    NAMESPACE,
    ROOT,
)
from compute_management_operator.planes import PROJECT as PROJECT_KIND
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object
from compute_operator_kit.testing.fakes import FakeLeadership

REASON = labels.QUARANTINE_REASON


async def quarantined(hub: Hub, name: str = INSTANCE_NAME) -> str:
    return str(annotations_of(await hub.source(name)).get(REASON, ""))


def projection_writes(hub: Hub, identity: str = "operator") -> list[str]:
    return shown(hub.world.writes(identity, controller="projection"))


# --- shown ----------------------------------------------------------------------------------------


@pytest.mark.spec("M-65")
def test_instance_is_shown_with_its_links_spec_and_status() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.project()
        await hub.world.sleep(1)
        existing, source = await hub.projection(), await hub.source()
        deployment = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert metadata_of(existing)["ownerReferences"] == [
            {
                "apiVersion": DEPLOYMENT.api_version,
                "kind": DEPLOYMENT.kind,
                "name": WD,
                "uid": uid_of(deployment),
            }
        ]
        assert labels_of(existing) == {
            **labels_of(source),
            labels.WORKLOAD_DEPLOYMENT_UID: uid_of(deployment),
        }
        assert annotations_of(existing) == {labels.INSTANCE_UID: f"cell-uid-of-{INSTANCE_NAME}"}
        assert spec_of(existing) == spec_of(source)
        assert condition_of(existing, "Ready") == ("True", "Available", "Instance is ready")
        assert projection_writes(hub) == [
            f"create Instance {INSTANCE_NAME}",
            f"update Instance status {INSTANCE_NAME}",
        ]
        assert shown(await hub.world.rests()) == []

    play_hub(story)


@pytest.mark.spec("M-66")
def test_instance_waits_for_its_deployment_and_is_shown_without_another_event() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate("other-us-dfw")
        await hub.show(owned_by="other-us-dfw")
        await hub.world.sleep(60)
        assert await hub.is_not_shown()
        assert await quarantined(hub) == ""
        await hub.world.create(PROJECT, a_deployment_document())
        await hub.world.eventually(hub.is_shown, within=5)

    play_hub(story)


@pytest.mark.spec("M-70")
def test_what_a_user_edits_on_a_projection_is_put_back_and_foreign_labels_stay() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        await hub.project()
        await world.sleep(1)
        desired = await hub.projection()
        edits: JsonObject = {
            "metadata": {
                "labels": {labels.CELL: "forged", "mine": "stays"},
                "ownerReferences": [],
            },
            "spec": {"controller": {"templateHash": "forged"}},
        }
        await world.patch(PROJECT, INSTANCE, INSTANCE_NAME, edits)
        broken = a_condition_document("Ready", "False", "Forged", "by a user")
        await world.set_status(PROJECT, INSTANCE, INSTANCE_NAME, {"conditions": [broken]})
        await world.sleep(2)
        existing = await hub.projection()
        assert labels_of(existing) == {**labels_of(desired), "mine": "stays"}
        assert metadata_of(existing)["ownerReferences"] == metadata_of(desired)["ownerReferences"]
        assert spec_of(existing) == spec_of(desired)
        assert status_of(existing) == status_of(desired)
        await hub.relabel(instance_index=None)
        await world.sleep(2)
        assert labels.INSTANCE_INDEX not in labels_of(await hub.projection())
        await world.delete(PROJECT, INSTANCE, INSTANCE_NAME)
        await world.eventually(hub.is_shown, within=5)

    play_hub(story)


@pytest.mark.spec("M-74")
def test_another_instance_under_the_name_is_another_projection() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        first = uid_of(await hub.projection())
        place = await hub.namespace()
        body: JsonObject = {"metadata": {"annotations": {labels.INSTANCE_UID: "cell-uid-2"}}}
        await hub.world.patch(HUB, INSTANCE, INSTANCE_NAME, body, place)
        await hub.world.sleep(2)
        existing = await hub.projection()
        assert uid_of(existing) != first
        assert annotations_of(existing)[labels.INSTANCE_UID] == "cell-uid-2"

    play_hub(story)


@pytest.mark.spec("M-78")
@pytest.mark.fault("G4")
@pytest.mark.fault("F6")
def test_any_status_of_a_cell_is_written_and_valid() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.project()
        odd: list[Json] = [
            {
                "type": "Ready",
                "status": "False",
                "reason": "ImageUnavailable",
                "message": "x" * 9000 + "\x07",
                "lastTransitionTime": "2099-01-01T00:00:00Z",
                "observedGeneration": 12,
            },
            {
                "type": "Ready",
                "status": "True",
                "reason": "Twice",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
        ]
        faces: list[Json] = [{"assignments": {"networkIP": "not-an-address"}}]
        status: JsonObject = {"conditions": odd, "networkInterfaces": faces}
        await hub.world.set_status(HUB, INSTANCE, INSTANCE_NAME, status, await hub.namespace())
        await hub.world.sleep(2)
        shown_status = status_of(await hub.projection())
        (ready,) = member_list(shown_status, "conditions")
        assert isinstance(ready, dict)
        assert len(str(ready["message"])) == 1024
        assert "observedGeneration" not in ready
        assert str(ready["lastTransitionTime"]).startswith("2026-03-01")
        assert shown_status["networkInterfaces"] == [{"assignments": {}}]
        assert shown(await hub.world.rests()) == []

    play_hub(story)


@pytest.mark.spec("M-100")
def test_field_that_the_project_prunes_is_sent_once_per_change() -> None:
    async def story(hub: Hub) -> None:
        await hub.world.forget_member(PROJECT, INSTANCE, "spec", "controller")
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.project()
        await hub.world.sleep(5)
        assert shown(await hub.world.rests()) == []
        before = len(hub.world.writes(plane=PROJECT))
        changed: JsonObject = {"spec": {"controller": {"templateHash": "v1-2"}}}
        await hub.world.patch(HUB, INSTANCE, INSTANCE_NAME, changed, await hub.namespace())
        await hub.world.sleep(60)
        assert len(hub.world.writes(plane=PROJECT)) == before + 1

    play_hub(story)


# --- removed --------------------------------------------------------------------------------------


@pytest.mark.spec("M-71")
def test_projection_goes_with_its_source_and_the_deployment_stays() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        for number in range(3):
            await hub.project(f"{WD}-{number}")
        await hub.unshow(f"{WD}-2")
        await hub.world.eventually(lambda: hub.is_not_shown(f"{WD}-2"), within=5)
        await hub.world.delete(PROJECT, INSTANCE, f"{WD}-1")
        await hub.unshow(f"{WD}-1")
        await hub.world.sleep(5)
        assert await hub.world.names(PROJECT, INSTANCE) == [INSTANCE_NAME]
        assert await hub.world.exists(PROJECT, DEPLOYMENT, WD)

    play_hub(story)


@pytest.mark.spec("M-71")
def test_projection_goes_with_the_hub_namespace_of_its_source() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        await hub.world.delete(HUB, NAMESPACE, await hub.namespace())
        await hub.world.eventually(hub.is_not_shown, within=30)

    play_hub(story)


@pytest.mark.spec("M-72")
@pytest.mark.spec("M-94")
@pytest.mark.fault("D9")
@pytest.mark.parametrize("number", [3, 12])
def test_sources_that_vanished_unseen_take_few_along_and_many_only_after_a_second_look(
    number: int,
) -> None:
    async def story(hub: Hub) -> None:
        await hub.federate(scale=number)
        for ordinal in range(number):
            await hub.project(f"{WD}-{ordinal}")
        await hub.process.stop()
        for ordinal in range(number):
            await hub.unshow(f"{WD}-{ordinal}")
        second = hub.world.process("second")
        second.start()
        await hub.world.sleep(50)
        is_held = number >= 10
        assert len(await hub.world.names(PROJECT, INSTANCE)) == (number if is_held else 0)
        assert second.reasons().count(reasons.MASS_DELETE_REFUSED) == int(is_held)
        refusals = second.measures.total("compute_sweep_refusals_total", kind="Instance")
        assert refusals == int(is_held)
        await hub.world.sleep(40)
        assert await hub.world.names(PROJECT, INSTANCE) == []

    play_hub(story)


@pytest.mark.spec("M-94")
def test_removals_that_a_cell_made_before_our_eyes_are_not_held() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate(scale=15)
        for ordinal in range(15):
            await hub.project(f"{WD}-{ordinal}")
        for ordinal in range(15):
            await hub.unshow(f"{WD}-{ordinal}")
        await hub.world.sleep(5)
        assert await hub.world.names(PROJECT, INSTANCE) == []

    play_hub(story)


@pytest.mark.spec("M-72")
@pytest.mark.fault("B5")
def test_cache_that_lacks_what_the_hub_has_deletes_nothing() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        before = uid_of(await hub.projection())
        source = await hub.source()
        hub.world.links[HUB].cut(writes=False)
        await hub.unshow()
        await hub.world.sleep(1)
        again = dict(source)
        again["metadata"] = {
            name: value
            for name, value in metadata_of(source).items()
            if name not in {"uid", "resourceVersion", "creationTimestamp", "generation"}
        }
        await hub.world.create(HUB, again)
        hub.world.links[HUB].heal()
        await hub.world.sleep(90)
        assert uid_of(await hub.projection()) == before

    play_hub(story)


@pytest.mark.spec("M-73")
def test_instance_of_a_user_is_never_touched() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.federate("other-us-dfw")
        other = await hub.world.get(PROJECT, DEPLOYMENT, "other-us-dfw")
        source_spec: JsonObject = {
            **member_object(member_object(spec_of(other), "template"), "spec")
        }
        theirs = a_document(INSTANCE, INSTANCE_NAME, "default", spec=source_spec)
        theirs["metadata"] = {
            **metadata_of(theirs),
            "ownerReferences": [
                {
                    "apiVersion": DEPLOYMENT.api_version,
                    "kind": DEPLOYMENT.kind,
                    "name": "other-us-dfw",
                    "uid": uid_of(other),
                    "controller": True,
                }
            ],
        }
        await hub.world.create(PROJECT, theirs)
        before = await hub.projection()
        await hub.show()
        await hub.say(*READY)
        await hub.world.sleep(5)
        assert await quarantined(hub) == "name_taken"
        await hub.unshow()
        await hub.world.sleep(5)
        assert await hub.projection() == before

    play_hub(story, is_clean=False)


@pytest.mark.spec("M-75")
def test_hub_and_cell_delete_freely_with_management_stopped_and_projections_follow() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        assert "finalizers" not in metadata_of(await hub.source())
        await hub.process.stop()
        await hub.unshow()
        assert await hub.world.names(HUB, INSTANCE) == []
        assert await hub.is_shown()
        hub.world.process("second").start()
        await hub.world.eventually(hub.is_not_shown, within=10)

    play_hub(story)


# --- quarantined ----------------------------------------------------------------------------------

FORGERIES: Mapping[str, Mapping[str, str | None]] = {
    "unidentifiable": {labels.UPSTREAM_CLUSTER_NAME: None},
    "missing_namespace_label": {labels.UPSTREAM_NAMESPACE: None},
    "missing_deployment_name": {labels.WORKLOAD_DEPLOYMENT_NAME: None},
    "identity_mismatch": {labels.UPSTREAM_CLUSTER_NAME: "cluster-beta"},
    "cell_unknown": {labels.CELL: None},
    "cell_city_mismatch": {labels.CELL: "lhr-1"},
}


@pytest.mark.spec("AT-19")
def test_copy_that_a_finalizer_holds_is_shown_as_being_deleted() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        place = await hub.namespace()
        held: JsonObject = {"metadata": {"finalizers": ["example.net/hold"]}}
        await hub.world.patch(HUB, INSTANCE, INSTANCE_NAME, held, place)
        await hub.unshow()
        await hub.world.sleep(5)
        ready = condition_of(await hub.projection(), "Ready")
        assert ready == ("False", reasons.TERMINATING, "Instance is being deleted")
        before = len(hub.world.writes(plane=PROJECT, controller="projection"))
        await hub.say(*READY)  # whatever its cell still reports
        await hub.world.sleep(3600)
        assert condition_of(await hub.projection(), "Ready") == ready
        assert len(hub.world.writes(plane=PROJECT, controller="projection")) == before
        free: JsonObject = {"metadata": {"finalizers": []}}
        await hub.world.patch(HUB, INSTANCE, INSTANCE_NAME, free, place)
        await hub.world.eventually(hub.is_not_shown, within=5)

    play_hub(story)


@pytest.mark.spec("AT-06")
@pytest.mark.fault("G3")
def test_slot_name_of_another_deployment_is_quarantined_and_shown_nowhere() -> None:
    """A cell writes `other-us-lhr-0` under the labels of a deployment of its own city."""

    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.federate("other-us-lhr", "LHR")
        forged = "other-us-lhr-0"
        await hub.show(forged, owned_by=WD, labels={labels.WORKLOAD_DEPLOYMENT_NAME: WD})
        await hub.world.sleep(10)
        assert await quarantined(hub, forged) == "name_mismatch"
        assert hub.process.reasons(kind=INSTANCE) == [reasons.QUARANTINED_NAME_MISMATCH]
        assert await hub.world.names(PROJECT, INSTANCE) == []

    play_hub(story, is_clean=False)


@pytest.mark.spec("AT-09")
def test_projections_are_capped_by_the_scale_of_their_deployment() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        for ordinal in range(30):
            await hub.show(f"{WD}-{ordinal}")
        await hub.world.sleep(10)
        assert len(await hub.world.names(PROJECT, INSTANCE)) == 1 + 10
        assert await quarantined(hub, f"{WD}-11") == "beyond_scale"
        gauge = (QUARANTINED, (("reason", "beyond_scale"),))
        assert hub.process.measures.gauges[gauge] == 19
        more: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 12}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, more)
        await hub.world.sleep(10)
        assert len(await hub.world.names(PROJECT, INSTANCE)) == 12 + 10
        # What is shown stays true while a smaller scale is carried out.
        less: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 1}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, less)
        await hub.say(a_condition_document("Ready", "False", "Starting", "late"), name=f"{WD}-21")
        await hub.world.sleep(10)
        shown = await hub.projection(f"{WD}-21")
        assert "late" in condition_of(shown, "Ready")

    play_hub(story, is_clean=False)


@pytest.mark.spec("M-67")
@pytest.mark.spec("M-68")
@pytest.mark.spec("M-69")
@pytest.mark.spec("M-76")
@pytest.mark.fault("G3")
@pytest.mark.parametrize("reason", FORGERIES)
def test_forged_labels_are_marked_once_recorded_once_and_write_into_no_project(reason: str) -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.federate(project="beta")
        before = {plane: len(hub.world.writes(plane=plane)) for plane in (PROJECT, "beta")}
        await hub.show(labels=FORGERIES[reason])
        await hub.world.sleep(10)
        assert await quarantined(hub) == reason
        noted = annotations_of(await hub.source())
        assert set(labels.QUARANTINE_ANNOTATIONS) <= set(noted)
        event = reasons.QuarantineReason(reason).event
        assert hub.process.reasons(kind=INSTANCE) == [event]
        assert hub.process.measures.gauges[(QUARANTINED, (("reason", reason),))] == 1
        for number in range(3):
            starting = a_condition_document("Ready", "False", "Starting", f"take {number}")
            await hub.say(starting)
            await hub.world.sleep(1)
        assert annotations_of(await hub.source()) == noted
        assert hub.process.reasons(kind=INSTANCE) == [event]
        assert {
            plane: len(hub.world.writes(plane=plane, controller="projection"))
            for plane in (PROJECT, "beta")
        } == {PROJECT: 0, "beta": 0}
        assert before.keys() == {PROJECT, "beta"}

        healed: JsonObject = {
            "metadata": {
                "labels": {
                    labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
                    labels.UPSTREAM_NAMESPACE: "default",
                    labels.WORKLOAD_DEPLOYMENT_NAME: WD,
                    labels.CELL: "dfw-1",
                }
            }
        }
        place = await hub.namespace()
        await hub.world.patch(HUB, INSTANCE, INSTANCE_NAME, healed, place)
        await hub.world.eventually(hub.is_shown, within=5)
        noted = annotations_of(await hub.source())
        assert not set(labels.QUARANTINE_ANNOTATIONS) & set(noted)
        await hub.world.sleep(6)
        assert hub.process.measures.gauges[(QUARANTINED, (("reason", reason),))] == 0

    done = play_hub(
        story,
        clusters={"dfw-1": "DFW", "lhr-1": "LHR"},
        projects=(PROJECT, "beta"),
        is_clean=False,
    )
    assert done.world.error_lines == ["Quarantining Instance"]


@pytest.mark.spec("M-68")
@pytest.mark.fault("G3")
def test_instance_in_a_namespace_that_is_not_its_projects_is_a_mismatch() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = "ns-11111111-2222-3333-4444-555555555555"
        around = a_document(NAMESPACE, place)
        around["metadata"] = {
            "name": place,
            "labels": {
                labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
                labels.UPSTREAM_NAMESPACE: "default",
            },
        }
        await hub.world.create(HUB, around)
        source: JsonObject = {
            **member_object(
                member_object(spec_of(await hub.world.get(PROJECT, DEPLOYMENT, WD)), "template"),
                "spec",
            )
        }
        forged = a_document(INSTANCE, INSTANCE_NAME, place, spec=source)
        forged["metadata"] = {
            **metadata_of(forged),
            "labels": {
                labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
                labels.UPSTREAM_NAMESPACE: "default",
                labels.WORKLOAD_DEPLOYMENT_NAME: WD,
                labels.CELL: "dfw-1",
            },
        }
        await hub.world.create(HUB, forged)
        await hub.world.sleep(5)
        existing = await hub.world.get(HUB, INSTANCE, INSTANCE_NAME, place)
        assert annotations_of(existing)[REASON] == "identity_mismatch"
        assert await hub.is_not_shown()

    play_hub(story, is_clean=False)


@pytest.mark.spec("M-69")
def test_cell_that_leaves_creates_nothing_new_and_what_is_shown_stays_up_to_date() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        await hub.world.delete(HUB, CLUSTER, "dfw-1")
        stopped = a_condition_document("Ready", "False", "Stopped", "cell says so")
        await hub.say(stopped)
        await hub.show(f"{WD}-1")
        await hub.world.sleep(60)
        assert condition_of(await hub.projection(), "Ready")[1] == "Stopped"
        assert await hub.is_not_shown(f"{WD}-1")
        assert await quarantined(hub, f"{WD}-1") == ""

    play_hub(story)


@pytest.mark.spec("M-77")
def test_absent_deployment_is_quarantined_fifteen_minutes_after_it_was_seen_absent() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.show(labels={labels.WORKLOAD_DEPLOYMENT_NAME: "nobody"})
        await hub.world.sleep(14 * 60)
        assert await quarantined(hub) == ""
        await hub.world.sleep(2 * 60)
        assert await quarantined(hub) == "deployment_absent"
        await hub.world.sleep(2 * 3600)
        assert hub.process.reasons(kind=INSTANCE) == ["QuarantinedDeploymentAbsent"]

    play_hub(story, is_clean=False)


@pytest.mark.spec("M-77")
@pytest.mark.parametrize("root", ["deployment", "namespace", "project"])
def test_deleting_what_ran_for_hours_quarantines_nothing(root: str) -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        if root == "namespace":
            hub.within = "shop"
            await world.create(PROJECT, a_document(NAMESPACE, "shop"))
        await hub.federate()
        await hub.report(*WD_READY)
        for ordinal in range(3):
            await hub.project(f"{WD}-{ordinal}")
        await world.sleep(8 * 3600)
        if root == "deployment":
            await world.delete(PROJECT, DEPLOYMENT, WD)
        elif root == "namespace":
            await world.delete(PROJECT, NAMESPACE, "shop")
        else:
            # Milo empties a project before it deletes it; an operator that loses the project
            # first does not learn what was deleted in it.
            await world.delete(PROJECT, DEPLOYMENT, WD)
            await world.eventually(lambda: world.is_gone(PROJECT, DEPLOYMENT, WD))
            await world.delete(ROOT, PROJECT_KIND, PROJECT, "")
        await world.sleep(60)
        assert await world.names(HUB, INSTANCE) == []
        assert hub.process.reasons(kind=INSTANCE) == []
        if root != "project":
            assert await world.names(PROJECT, INSTANCE) == []

    play_hub(story)


# --- leading --------------------------------------------------------------------------------------


@pytest.mark.spec("M-79")
def test_only_the_leader_projects_and_a_new_one_repeats_nothing() -> None:
    async def story(hub: Hub) -> None:
        second = hub.world.process("second", leadership=FakeLeadership(is_leading=False))
        second.start(leads=False)
        await hub.federate()
        await hub.project()
        await hub.world.sleep(5)
        assert hub.world.writes("second") == []
        await hub.process.stop()
        third = hub.world.process("third")
        third.start()
        await hub.world.sleep(60)
        assert hub.world.writes("third", controller="projection") == []
        assert third.operator is not second.operator

    play_hub(story)


def test_long_workload_name_is_shown_with_its_full_value() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        full = "a-very-long-workload-name-" * 4
        short = names.derive_label_value(full)
        await hub.show(
            labels={labels.WORKLOAD_NAME: short.value},
            annotations={labels.WORKLOAD_NAME: full, "example.com/note": "not shown"},
        )
        await hub.say(*READY)
        await hub.world.eventually(hub.is_shown)
        existing = await hub.projection()
        assert labels_of(existing)[labels.WORKLOAD_NAME] == short.value
        assert annotations_of(existing) == {
            labels.WORKLOAD_NAME: full,
            labels.INSTANCE_UID: f"cell-uid-of-{INSTANCE_NAME}",
        }

    play_hub(story)


# --- a city that is edited in place ---------------------------------------------------------------

BOTH_CITIES = {"dfw-1": "DFW", "lhr-1": "LHR"}


async def move(hub: Hub) -> None:
    await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"spec": {"cityCode": "LHR"}})


@pytest.mark.spec("FS-05")
@pytest.mark.parametrize("is_shown_before", [True, False])
def test_a_copy_of_the_former_city_that_is_about_to_go_is_no_intrusion(
    *, is_shown_before: bool
) -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        if is_shown_before:
            await hub.project()
        # The hub's copy of the deployment takes a while to go, and the Instance goes with it.
        await hub.hold_copy()
        await move(hub)
        if not is_shown_before:
            await hub.world.sleep(1)
            await hub.show()
        await hub.world.sleep(600)
        assert await quarantined(hub) == ""
        assert await hub.is_shown() is is_shown_before
        await hub.release_copy()
        await hub.world.eventually(hub.is_not_shown)
        assert "QuarantinedCellCityMismatch" not in hub.process.reasons()

    play_hub(story, clusters=BOTH_CITIES)


@pytest.mark.spec("FS-05")
def test_a_copy_of_the_former_city_that_stays_is_quarantined_when_its_time_is_over() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        await hub.hold_copy()
        await move(hub)
        await hub.world.sleep(14 * 60)
        assert await quarantined(hub) == ""
        await hub.world.sleep(2 * 60)
        assert await quarantined(hub) == "cell_city_mismatch"
        assert hub.process.reasons().count("QuarantinedCellCityMismatch") == 1
        writes = len(hub.world.writes())
        await hub.say(*READY)
        await hub.world.sleep(60)
        assert len(hub.world.writes()) == writes

    play_hub(story, clusters=BOTH_CITIES, is_clean=False)


@pytest.mark.spec("FS-05")
def test_a_copy_from_a_city_its_deployment_never_had_is_an_intrusion_at_once() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.show(labels={labels.CELL: "lhr-1"})
        await hub.world.sleep(2)
        assert await quarantined(hub) == "cell_city_mismatch"

    play_hub(story, clusters=BOTH_CITIES, is_clean=False)


# --- a Cluster that changes its city --------------------------------------------------------------


async def relabel_cluster(hub: Hub, city: str) -> None:
    labelled: JsonObject = {"metadata": {"labels": {labels.TOPOLOGY_CITY_CODE: city}}}
    await hub.world.patch(HUB, CLUSTER, "dfw-1", labelled, "")


@pytest.mark.spec("M-69")
def test_instance_is_shown_when_its_cluster_gets_the_city_and_nothing_else_changes() -> None:
    async def story(hub: Hub) -> None:
        await relabel_cluster(hub, "")
        await hub.federate()
        await hub.show()
        await hub.world.sleep(10)
        assert await hub.is_not_shown()
        await relabel_cluster(hub, "DFW")
        await hub.world.eventually(hub.is_shown, within=5)

    play_hub(story)


@pytest.mark.spec("M-69")
def test_cluster_that_changes_its_city_quarantines_what_it_wrote_at_once() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.project()
        await relabel_cluster(hub, "LHR")
        await hub.world.sleep(5)
        assert await quarantined(hub) == "cell_city_mismatch"

    play_hub(story, is_clean=False)
