"""Federation on simulated planes: what reaches the hub, what comes back, what is left alone."""

from __future__ import annotations

import pytest
from management_builders.documents import (
    a_condition_document,
    a_deployment_document,
    a_document,
    a_workload_document,
)
from management_builders.hub_script import (
    BINDING_OF_WD,
    CLAIM,
    PROJECT,
    WD,
    WD_BLOCKED,
    WD_READY,
    Hub,
    annotations_of,
    finalizers_of,
    labels_of,
    metadata_of,
    play_hub,
)
from management_builders.world import (
    condition_of,
    settings_of,
    shown,
    spec_of,
    status_of,
    uid_of,
)

from compute_api_types import labels, reasons
from compute_kubeconfig.problems import ConfigurationError
from compute_management_operator.hub.metrics import DROPPED, FINALIZERS_HELD, ORPHANED
from compute_management_operator.planes import (
    BINDING,
    CLUSTER,
    DEPLOYMENT,
    HUB,
    NAMESPACE,
    POLICY,
)
from compute_operator_kit.core.json import JsonObject, member_object
from compute_sim_planes.history import Commit

OTHER_UID = "11111111-2222-3333-4444-555555555555"


async def strip_finalizers(hub: Hub, plane: str, name: str, namespace: str) -> None:
    body: JsonObject = {"metadata": {"finalizers": None}}
    await hub.world.patch(plane, DEPLOYMENT, name, body, namespace)


# --- delivering -----------------------------------------------------------------------------------


@pytest.mark.spec("M-07")
@pytest.mark.spec("M-07", "M-18")
def test_a_deployment_from_before_the_label_gets_it_by_one_write_without_other_effect() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await world.create(PROJECT, a_workload_document())
        await world.eventually(hub.has_copy)
        await world.sleep(120)  # past the minute after which it shows that no cell reported
        copy, before = await hub.copy(), len(world.writes())
        unlabelled: JsonObject = {"metadata": {"labels": {labels.WORKLOAD_NAME: None}}}
        await world.patch(PROJECT, DEPLOYMENT, WD, unlabelled)
        await world.sleep(30)
        existing = await world.get(PROJECT, DEPLOYMENT, WD)
        assert labels_of(existing)[labels.WORKLOAD_NAME] == "web"
        assert metadata_of(existing)["generation"] == 1
        assert shown(world.writes()[before:]) == [f"patch WorkloadDeployment {WD}"]
        assert await hub.copy() == copy

    play_hub(story)


@pytest.mark.spec("M-26")
def test_a_deployment_is_born_with_what_federation_records_where_that_is_known() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await world.create(PROJECT, a_workload_document("first"))
        await world.eventually(lambda: hub.has_copy("first-us-dfw"))
        await world.create(PROJECT, a_workload_document("second"))
        await world.eventually(lambda: hub.has_copy("second-us-dfw"))
        place = await hub.namespace()
        for name in ("first-us-dfw", "second-us-dfw"):
            existing = await world.get(PROJECT, DEPLOYMENT, name)
            assert finalizers_of(existing) == [labels.FEDERATION_FINALIZER]
            assert annotations_of(existing)[labels.FEDERATION_NAMESPACE] == place
        marked = world.writes(plane=PROJECT, kind=DEPLOYMENT.kind, controller="federation")
        assert [one.address.name for one in marked] == ["first-us-dfw"]

    play_hub(story)


@pytest.mark.spec("M-26")
@pytest.mark.spec("M-27")
def test_deployment_reaches_the_hub_in_four_writes_after_its_finalizer() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        written = hub.world.writes()
        assert shown(written) == [
            f"patch WorkloadDeployment {WD}",
            f"create Namespace {place}",
            "create PropagationPolicy city-dfw",
            f"create WorkloadDeployment {WD}",
        ]
        first = written[0].commits[0]
        assert first.plane == PROJECT

        project = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert finalizers_of(project) == [labels.FEDERATION_FINALIZER]
        assert annotations_of(project) == {labels.FEDERATION_NAMESPACE: place}
        around = await hub.world.get(HUB, NAMESPACE, place)
        identity = {
            labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
            labels.UPSTREAM_NAMESPACE: "default",
        }
        assert identity.items() <= labels_of(around).items()
        copy = await hub.copy()
        assert labels_of(copy) == {**identity, labels.TOPOLOGY_CITY_CODE: "DFW"}
        assert annotations_of(copy) == {labels.PROJECT_GENERATION: "1"}
        assert spec_of(copy) == spec_of(project)

    play_hub(story)


@pytest.mark.spec("M-28")
def test_settled_federation_writes_nothing_over_ten_resyncs() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.claim()
        await hub.report(*WD_READY)
        await hub.world.sleep(5)
        assert shown(await hub.world.rests()) == []

    play_hub(story)


@pytest.mark.spec("M-29")
def test_update_keeps_the_claim_and_removes_what_the_project_removed() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.claim()
        place = await hub.namespace()
        foreign: JsonObject = {
            "metadata": {"annotations": {"example.com/theirs": "1"}, "finalizers": ["a.b/c"]}
        }
        await hub.world.patch(HUB, DEPLOYMENT, WD, foreign, place)
        edited: JsonObject = {
            "metadata": {"annotations": {"example.com/mine": "no"}},
            "spec": {"template": {"metadata": {"annotations": {"a": "1"}}}},
        }
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, edited)
        await hub.world.sleep(1)
        assert "metadata" in member_object(spec_of(await hub.copy()), "template")
        removed: JsonObject = {"spec": {"template": {"metadata": None}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, removed)
        await hub.world.sleep(1)
        copy = await hub.copy()
        assert "metadata" not in member_object(spec_of(copy), "template")
        assert labels_of(copy)[CLAIM] == "claimed"
        assert finalizers_of(copy) == ["a.b/c"]
        noted = annotations_of(copy)
        assert noted["example.com/theirs"] == "1"
        assert "example.com/mine" not in noted
        generation = metadata_of(await hub.world.get(PROJECT, DEPLOYMENT, WD))["generation"]
        assert noted[labels.PROJECT_GENERATION] == str(generation)

    play_hub(story)


@pytest.mark.spec("M-37")
def test_drift_on_the_hub_is_repaired_without_an_event_of_the_project() -> None:
    async def story(hub: Hub) -> None:
        world = hub.world
        await hub.federate()
        place = await hub.namespace()
        desired = spec_of(await hub.copy())

        await world.patch(HUB, DEPLOYMENT, WD, {"spec": {"placementName": "forged"}}, place)
        await world.eventually(lambda: _has_spec(hub, desired), within=5)

        first = uid_of(await hub.copy())
        await world.delete(HUB, DEPLOYMENT, WD, place)
        await world.eventually(hub.has_copy, within=5)
        assert uid_of(await hub.copy()) != first

        unlabelled: JsonObject = {"metadata": {"labels": {labels.UPSTREAM_NAMESPACE: None}}}
        await world.patch(HUB, NAMESPACE, place, unlabelled)

        async def is_labelled() -> bool:
            existing = await world.get(HUB, NAMESPACE, place)
            return labels_of(existing).get(labels.UPSTREAM_NAMESPACE) == "default"

        await world.eventually(is_labelled, within=5)

        await world.delete(HUB, POLICY, "city-dfw", place)

        async def has_policy() -> bool:
            return await world.exists(HUB, POLICY, "city-dfw", place)

        await world.eventually(has_policy, within=5)
        body: JsonObject = {"spec": {"conflictResolution": "Abort"}}
        await world.patch(HUB, POLICY, "city-dfw", body, place)

        async def is_put_right() -> bool:
            existing = await world.get(HUB, POLICY, "city-dfw", place)
            return spec_of(existing)["conflictResolution"] == "Overwrite"

        await world.eventually(is_put_right, within=5)
        assert reasons.POLICY_REPAIRED in hub.process.reasons(kind=POLICY)

        await world.delete(HUB, NAMESPACE, place)
        await world.sleep(1)
        await world.eventually(hub.has_copy, within=60)

    play_hub(story)


async def _has_spec(hub: Hub, desired: JsonObject) -> bool:
    return spec_of(await hub.copy()) == desired


@pytest.mark.spec("M-38")
def test_another_identity_is_put_back_three_times_an_hour_where_we_live() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        key = labels.UPSTREAM_CLUSTER_NAME

        async def forge() -> str:
            body: JsonObject = {"metadata": {"labels": {key: "cluster-other"}}}
            await hub.world.patch(HUB, NAMESPACE, place, body)
            await hub.world.sleep(2)
            return str(labels_of(await hub.world.get(HUB, NAMESPACE, place))[key])

        assert [await forge() for _ in range(4)] == ["cluster-acme"] * 3 + ["cluster-other"]
        assert hub.process.reasons(kind=DEPLOYMENT).count(reasons.HUB_IDENTITY_CONFLICT) == 1
        await hub.world.sleep(3700)
        existing = labels_of(await hub.world.get(HUB, NAMESPACE, place))
        assert existing[key] == "cluster-acme"

        equivalent: JsonObject = {"metadata": {"labels": {key: "cluster-org_acme"}}}
        await hub.world.patch(HUB, NAMESPACE, place, equivalent)
        await hub.world.sleep(3700)
        existing = labels_of(await hub.world.get(HUB, NAMESPACE, place))
        assert existing[key] == "cluster-org_acme"

    play_hub(story)


@pytest.mark.spec("M-38")
@pytest.mark.fault("G5")
def test_namespace_of_another_project_is_not_adopted() -> None:
    async def story(hub: Hub) -> None:
        place = await hub.namespace()
        taken = a_document(NAMESPACE, place)
        taken["metadata"] = {
            "name": place,
            "labels": {
                labels.UPSTREAM_CLUSTER_NAME: "cluster-other",
                labels.UPSTREAM_NAMESPACE: "default",
            },
        }
        await hub.world.create(HUB, taken)
        await hub.world.create(PROJECT, a_deployment_document())
        await hub.world.sleep(30)
        assert shown(hub.world.writes(plane=HUB)) == []
        assert hub.process.reasons(kind=DEPLOYMENT) == [reasons.HUB_IDENTITY_CONFLICT]
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.sleep(30)
        assert await hub.world.exists(PROJECT, DEPLOYMENT, WD)
        assert shown(hub.world.writes(plane=HUB)) == []

    play_hub(story)


@pytest.mark.fault("G5")
def test_namespace_without_labels_is_ours_by_its_name() -> None:
    async def story(hub: Hub) -> None:
        await hub.world.create(HUB, a_document(NAMESPACE, await hub.namespace()))
        await hub.federate()

    play_hub(story)


@pytest.mark.spec("M-39")
def test_change_of_city_replaces_the_copy_and_both_policies_follow() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        first = uid_of(await hub.copy())
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"spec": {"cityCode": "LHR"}})

        async def is_rerouted() -> bool:
            if not await hub.has_copy():
                return False
            return labels_of(await hub.copy())[labels.TOPOLOGY_CITY_CODE] == "LHR"

        await hub.world.eventually(is_rerouted, within=10)
        assert uid_of(await hub.copy()) != first
        await hub.world.sleep(2)
        assert await hub.policies() == ["city-lhr"]
        assert reasons.REROUTED in hub.process.reasons(kind=DEPLOYMENT)
        patched = hub.world.writes(plane=HUB, kind="WorkloadDeployment", verb="patch")
        assert patched == []

    play_hub(story)


async def leave_binding(hub: Hub, place: str) -> None:
    resource: JsonObject = {"apiVersion": "v1", "kind": "X", "name": "x"}
    left = a_document(BINDING, BINDING_OF_WD, place, spec={"resource": resource})
    await hub.world.create(HUB, left)


@pytest.mark.spec("M-40")
@pytest.mark.parametrize("leaves_after", [20, 600])
def test_recreate_waits_for_a_left_over_binding_and_at_most_a_minute(leaves_after: int) -> None:
    async def story(hub: Hub) -> None:
        place = await hub.namespace()
        await hub.world.create(HUB, a_document(NAMESPACE, place))
        await leave_binding(hub, place)
        await hub.world.create(PROJECT, a_deployment_document())
        await hub.world.sleep(min(leaves_after, 55))
        assert not await hub.has_copy()
        if leaves_after < 60:
            await hub.world.delete(HUB, BINDING, BINDING_OF_WD, place)
        taken = await hub.world.eventually(hub.has_copy, within=10)
        assert taken <= 6

    play_hub(story)


def bindings_asked_for(hub: Hub) -> int:
    asked = [request.address for request in hub.world.requests()]
    return sum(address.kind == BINDING.kind for address in asked)


@pytest.mark.spec("M-40")
def test_a_binding_is_asked_for_only_where_a_copy_may_have_left_one() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        assert bindings_asked_for(hub) == 0  # we made the hub namespace: nothing was in it before
        place = await hub.namespace()
        await leave_binding(hub, place)
        await hub.world.delete(HUB, DEPLOYMENT, WD, place)
        await hub.world.sleep(30)
        assert not await hub.has_copy()
        assert bindings_asked_for(hub) > 1
        await hub.world.delete(HUB, BINDING, BINDING_OF_WD, place)
        await hub.world.eventually(hub.has_copy, within=10)

    play_hub(story)


@pytest.mark.spec("M-42")
def test_city_that_cannot_be_routed_is_refused_once_without_a_write_on_the_hub() -> None:
    async def story(hub: Hub) -> None:
        await hub.world.create(PROJECT, a_deployment_document(city="New York"))
        await hub.world.sleep(600)
        assert hub.process.reasons() == [reasons.FEDERATION_REFUSED]
        assert shown(hub.world.writes()) == []
        # Besides the looks at the Leases of cells, every 5 s.
        others = [one for one in hub.world.requests() if one.address.kind != "Lease"]
        assert len(others) < 100

    play_hub(story)


@pytest.mark.spec("M-43")
def test_copies_are_not_federated_where_project_and_hub_share_a_server() -> None:
    async def story(hub: Hub) -> None:
        place = f"ns-{OTHER_UID}"
        await hub.world.create(PROJECT, a_document(NAMESPACE, place))
        await hub.world.create(PROJECT, a_deployment_document(namespace=place))
        await hub.world.sleep(60)
        assert shown(hub.world.writes()) == []

    play_hub(story)


# --- events of the hub ----------------------------------------------------------------------------


@pytest.mark.spec("M-30")
def test_copies_that_lead_nowhere_are_counted_and_no_error() -> None:
    async def story(hub: Hub) -> None:
        place = f"ns-{OTHER_UID}"
        await hub.world.create(HUB, a_document(NAMESPACE, place))
        cases: dict[str, dict[str, str]] = {
            "no_project": {labels.UPSTREAM_NAMESPACE: "default"},
            "no_namespace": {labels.UPSTREAM_CLUSTER_NAME: "cluster-acme"},
            "not_engaged": {
                labels.UPSTREAM_CLUSTER_NAME: "cluster-nobody",
                labels.UPSTREAM_NAMESPACE: "default",
            },
        }
        for number, (reason, with_labels) in enumerate(cases.items()):
            document = a_deployment_document(f"stray-{number}", namespace=place)
            document["metadata"] = {**metadata_of(document), "labels": {**with_labels}}
            await hub.world.create(HUB, document)
            await hub.world.sleep(1)
            dropped = hub.process.measures.total(DROPPED, controller="federation", reason=reason)
            assert dropped >= 1, reason
        assert shown(hub.world.writes()) == []

    play_hub(story)


@pytest.mark.spec("M-30")
def test_copy_without_labels_of_its_own_is_mapped_by_those_of_its_namespace() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        bare: JsonObject = {
            "metadata": {
                "labels": {labels.UPSTREAM_CLUSTER_NAME: None, labels.UPSTREAM_NAMESPACE: None}
            }
        }
        await hub.world.patch(HUB, DEPLOYMENT, WD, bare, await hub.namespace())
        await hub.world.sleep(1)
        assert labels_of(await hub.copy())[labels.UPSTREAM_NAMESPACE] == "default"

    play_hub(story)


@pytest.mark.spec("M-31")
def test_karmada_without_a_kubeconfig_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="federation"):
        settings_of(federation={"mode": "karmada"})


# --- deleting -------------------------------------------------------------------------------------


@pytest.mark.spec("M-32")
def test_finalizer_waits_until_a_live_read_of_the_hub_shows_no_copy() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        body: JsonObject = {"metadata": {"finalizers": ["karmada.io/held"]}}
        await hub.world.patch(HUB, DEPLOYMENT, WD, body, place)
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.sleep(400)
        held = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert finalizers_of(held) == [labels.FEDERATION_FINALIZER]
        reported = hub.process.reasons(kind=DEPLOYMENT)
        assert reported.count(reasons.FEDERATION_RELEASE_DELAYED) == 1
        gauge = hub.process.measures.gauges[(FINALIZERS_HELD, (("reason", "waiting"),))]
        assert gauge == 1
        await strip_finalizers(hub, HUB, WD, place)
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, DEPLOYMENT, WD), within=10)
        assert await hub.policies() == []
        assert await hub.world.exists(HUB, NAMESPACE, place)

    play_hub(story)


@pytest.mark.spec("M-33")
def test_delete_in_a_namespace_that_is_gone_uses_the_recorded_one() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        hub.strike_namespace("default")
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, DEPLOYMENT, WD), within=10)
        assert await hub.world.is_gone(HUB, DEPLOYMENT, WD, place)

    play_hub(story)


@pytest.mark.spec("M-33")
def test_delete_without_a_copy_or_a_hub_namespace_is_fine() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        place = await hub.namespace()
        hub.world.links[HUB].cut()
        await hub.world.delete(HUB, DEPLOYMENT, WD, place)
        await hub.world.delete(HUB, NAMESPACE, place)
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.sleep(20)
        hub.world.links[HUB].heal()
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, DEPLOYMENT, WD), within=90)

    play_hub(story)


@pytest.mark.spec("M-35")
@pytest.mark.fault("G2")
def test_forged_annotation_touches_nothing_of_a_stranger_and_wedges_nothing() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.federate(project="beta")
        stranger = await hub.namespace(project="beta")
        mine = await hub.namespace()
        body: JsonObject = {"metadata": {"annotations": {labels.FEDERATION_NAMESPACE: stranger}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, body)
        await hub.world.sleep(2)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert annotations_of(existing)[labels.FEDERATION_NAMESPACE] == mine
        before = uid_of(await hub.copy(namespace=stranger))
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, {"metadata": {"finalizers": ["x.y/z"]}})
        await hub.world.sleep(2)
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, body)
        await hub.world.eventually(hub.has_no_copy, within=10)
        await hub.world.sleep(5)
        await strip_finalizers(hub, PROJECT, WD, "default")
        assert uid_of(await hub.copy(namespace=stranger)) == before
        touched = [
            one
            for one in hub.world.writes(plane=HUB)
            if stranger in (one.address.namespace, one.address.name)
        ]
        assert all(one.address.verb == "create" for one in touched)

    play_hub(story, projects=(PROJECT, "beta"))


@pytest.mark.spec("M-36")
@pytest.mark.spec("M-63")
@pytest.mark.fault("D1")
@pytest.mark.parametrize("minutes", [10, 24 * 60])
def test_hub_that_is_away_holds_the_finalizer_and_changes_no_condition(minutes: int) -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.federate("kept-us-dfw")
        await hub.report(*WD_READY, name="kept-us-dfw")
        await hub.world.sleep(2)
        known = status_of(await hub.world.get(PROJECT, DEPLOYMENT, "kept-us-dfw"))
        hub.world.links[HUB].cut()
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        await hub.world.create(PROJECT, a_deployment_document("late-us-dfw"))
        edited: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 5}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, "kept-us-dfw", edited)
        await hub.world.sleep(minutes * 60)
        held = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert finalizers_of(held) == [labels.FEDERATION_FINALIZER]
        existing = await hub.world.get(PROJECT, DEPLOYMENT, "kept-us-dfw")
        assert status_of(existing) == known
        assert reasons.FEDERATION_RELEASE_DELAYED not in hub.process.reasons()
        hub.world.links[HUB].heal()
        await hub.world.eventually(lambda: hub.world.is_gone(PROJECT, DEPLOYMENT, WD), within=60)
        await hub.world.eventually(lambda: hub.has_copy("late-us-dfw"), within=60)
        settings = member_object(spec_of(await hub.copy("kept-us-dfw")), "scaleSettings")
        assert settings["minReplicas"] == 5

    play_hub(story)


@pytest.mark.spec("M-41")
@pytest.mark.fault("G9")
def test_stripped_finalizer_is_put_back_while_the_deployment_lives() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await strip_finalizers(hub, PROJECT, WD, "default")
        await hub.world.sleep(1)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert finalizers_of(existing) == [labels.FEDERATION_FINALIZER]

    play_hub(story)


@pytest.mark.spec("M-41")
def test_copy_of_a_deployment_deleted_without_an_event_is_removed() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.process.stop()
        await strip_finalizers(hub, PROJECT, WD, "default")
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        hub.world.process("second").start()
        await hub.world.eventually(hub.has_no_copy, within=30)
        await hub.world.sleep(5)
        assert await hub.policies() == []

    play_hub(story)


@pytest.mark.spec("M-41")
@pytest.mark.parametrize("case", ["unstamped", "other namespace"])
def test_copy_that_is_not_proven_ours_stays_and_is_counted(case: str) -> None:
    async def story(hub: Hub) -> None:
        await hub.federate("first-us-dfw")
        place = await hub.namespace() if case == "unstamped" else f"ns-{OTHER_UID}"
        identity = {
            labels.UPSTREAM_CLUSTER_NAME: "cluster-acme",
            labels.UPSTREAM_NAMESPACE: "default",
        }
        if case != "unstamped":
            around = a_document(NAMESPACE, place)
            around["metadata"] = {"name": place, "labels": {**identity}}
            await hub.world.create(HUB, around)
        stamps = {} if case == "unstamped" else {labels.PROJECT_GENERATION: "1"}
        document = a_deployment_document("stray-us-dfw", namespace=place)
        document["metadata"] = {
            **metadata_of(document),
            "labels": {**identity, labels.TOPOLOGY_CITY_CODE: "DFW"},
            "annotations": {**stamps},
        }
        await hub.world.create(HUB, document)
        await hub.world.sleep(60)
        assert await hub.world.exists(HUB, DEPLOYMENT, "stray-us-dfw", place)
        assert hub.process.measures.gauges[(ORPHANED, ())] == 1

    play_hub(story)


@pytest.mark.spec("M-94")
@pytest.mark.fault("D9")
def test_orphans_in_a_crowd_wait_for_a_second_look() -> None:
    async def story(hub: Hub) -> None:
        for number in range(12):
            await hub.federate(f"w{number}-us-dfw")
        await hub.process.stop()
        for number in range(12):
            await strip_finalizers(hub, PROJECT, f"w{number}-us-dfw", "default")
            await hub.world.delete(PROJECT, DEPLOYMENT, f"w{number}-us-dfw")
        second = hub.world.process("second")
        second.start()
        await hub.world.sleep(50)
        assert len(await hub.world.names(HUB, DEPLOYMENT)) == 12
        assert second.reasons().count(reasons.MASS_DELETE_REFUSED) == 1
        refusals = "compute_sweep_refusals_total"
        assert second.measures.total(refusals, kind="WorkloadDeployment") == 1
        await hub.world.sleep(40)
        assert await hub.world.names(HUB, DEPLOYMENT) == []

    play_hub(story)


@pytest.mark.spec("M-34")
def test_unknown_hub_namespace_is_held_and_recorded_once() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.process.stop()
        body: JsonObject = {"metadata": {"annotations": None}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, body)
        await hub.world.delete(PROJECT, DEPLOYMENT, WD)
        hub.strike_namespace("default")
        second = hub.world.process("second")
        second.start()
        await hub.world.sleep(600)
        assert finalizers_of(await hub.world.get(PROJECT, DEPLOYMENT, WD))
        reported = second.reasons(kind=DEPLOYMENT)
        assert reported.count(reasons.FEDERATION_NAMESPACE_UNRESOLVED) == 1
        assert len(hub.world.requests("second")) < 300

    play_hub(story)


# --- the mirror -----------------------------------------------------------------------------------


async def observed(hub: Hub) -> int:
    generation = status_of(await hub.world.get(PROJECT, DEPLOYMENT, WD))["observedGeneration"]
    assert isinstance(generation, int)
    return generation


@pytest.mark.spec("M-59")
def test_generation_of_the_project_is_published_once_a_cell_acted_on_it() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.sleep(1)
        assert await observed(hub) == 1
        edited: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 3}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, edited)
        await hub.world.sleep(1)
        assert await observed(hub) == 1
        await hub.report(*WD_READY, observed=1)
        await hub.world.sleep(1)
        assert await observed(hub) == 1
        await hub.report(*WD_READY)
        await hub.world.sleep(1)
        assert await observed(hub) == 2

    play_hub(story)


@pytest.mark.spec("M-60")
def test_edit_and_its_undoing_between_two_passes_move_the_generation_all_the_same() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.sleep(1)
        hub.world.links[HUB].cut()
        for number in (7, 1):
            edited: JsonObject = {"spec": {"scaleSettings": {"minReplicas": number}}}
            await hub.world.patch(PROJECT, DEPLOYMENT, WD, edited)
        await hub.world.sleep(5)
        hub.world.links[HUB].heal()
        await hub.world.sleep(60)
        copy = await hub.copy()
        assert metadata_of(copy)["generation"] == 1
        assert annotations_of(copy)[labels.PROJECT_GENERATION] == "3"
        assert await observed(hub) == 3

    play_hub(story)


@pytest.mark.spec("M-61")
@pytest.mark.fault("C7")
@pytest.mark.fault("E6")
def test_copy_without_a_report_is_untouched_for_a_minute_then_waiting_and_heals() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.world.sleep(50)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert condition_of(existing, "Ready")[1] == "Pending"
        await hub.world.sleep(15)
        waiting = ("False", "InstancesProvisioning", 'Waiting for a cell in city "DFW" to report')
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert [
            condition_of(existing, kind) for kind in ("Available", "ReplicasReady", "Ready")
        ] == [waiting] * 3
        await hub.report(*WD_READY)
        await hub.world.sleep(1)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert condition_of(existing, "Ready")[0] == "True"
        await hub.report(cells="", observed=0)
        await hub.world.sleep(1)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert condition_of(existing, "Ready") == waiting

    play_hub(story)


@pytest.mark.spec("M-61")
def test_city_that_loses_its_last_cluster_reports_it_and_heals() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate(city="LHR")
        await hub.world.sleep(70)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        no_cell = ("False", "NoMatchingLocation", 'No cell serves city code "LHR"')
        assert condition_of(existing, "Ready") == no_cell
        body: JsonObject = {"metadata": {"labels": {labels.TOPOLOGY_CITY_CODE: "LHR"}}}
        await hub.world.patch(HUB, CLUSTER, "dfw-1", body)
        await hub.world.sleep(1)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert condition_of(existing, "Ready")[1] == "InstancesProvisioning"

    play_hub(story)


@pytest.mark.spec("M-62")
def test_foreign_conditions_survive_and_the_hubs_own_never_arrives() -> None:
    async def story(hub: Hub) -> None:
        await hub.federate()
        theirs = a_condition_document("example.com/Theirs", "True", "Because", "of us")
        stored = status_of(await hub.world.get(PROJECT, DEPLOYMENT, WD))
        listed = stored["conditions"]
        assert isinstance(listed, list)
        await hub.world.set_status(
            PROJECT, DEPLOYMENT, WD, {**stored, "conditions": [*listed, theirs]}
        )
        await hub.report(*WD_BLOCKED)
        await hub.world.sleep(1)
        existing = await hub.world.get(PROJECT, DEPLOYMENT, WD)
        assert condition_of(existing, "example.com/Theirs")[0] == "True"
        assert condition_of(existing, "Ready")[1] == "QuotaNotGranted"
        assert condition_of(existing, "CellsReporting") == ("", "", "")
        assert shown(await hub.world.rests()) == []

    play_hub(story)


# --- lives of a namespace, older definitions ------------------------------------------------------


@pytest.mark.spec("M-99")
@pytest.mark.fault("G5")
@pytest.mark.parametrize("is_born_with_the_former", [False, True])
def test_namespace_that_came_back_under_its_name_is_another_one(
    *, is_born_with_the_former: bool
) -> None:
    """A deployment may be made from a view that still shows the former one: then it records that,
    and nothing is done by it.
    """

    async def story(hub: Hub) -> None:
        world = hub.world
        await world.create(PROJECT, a_document(NAMESPACE, "shop"))
        await world.create(PROJECT, a_deployment_document(namespace="shop"))
        old = await hub.namespace("shop")

        async def is_delivered() -> bool:
            return await world.exists(HUB, DEPLOYMENT, WD, old)

        await world.eventually(is_delivered)
        await world.delete(PROJECT, NAMESPACE, "shop")
        await world.eventually(lambda: world.is_gone(PROJECT, NAMESPACE, "shop"), within=60)
        assert not await is_delivered()
        before = len(world.writes(plane=HUB))
        await world.create(PROJECT, a_document(NAMESPACE, "shop"))
        document = a_deployment_document(namespace="shop")
        if is_born_with_the_former:
            born = member_object(document, "metadata")
            born["finalizers"] = [labels.FEDERATION_FINALIZER]
            born["annotations"] = {labels.FEDERATION_NAMESPACE: old}
        await world.create(PROJECT, document)
        new = await hub.namespace("shop")
        assert new != old

        async def is_delivered_anew() -> bool:
            return await world.exists(HUB, DEPLOYMENT, WD, new)

        await world.eventually(is_delivered_anew)
        existing = await world.get(PROJECT, DEPLOYMENT, WD, "shop")
        assert annotations_of(existing)[labels.FEDERATION_NAMESPACE] == new
        later = world.writes(plane=HUB)[before:]
        assert all(old not in (one.address.namespace, one.address.name) for one in later)

    play_hub(story)


@pytest.mark.spec("M-100")
def test_field_that_the_hub_prunes_is_sent_once_per_change() -> None:
    async def story(hub: Hub) -> None:
        await hub.world.forget_member(
            HUB, DEPLOYMENT, "spec", "scaleSettings", "instanceManagementPolicy"
        )
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.sleep(5)
        assert shown(await hub.world.rests()) == []
        before = len(hub.world.writes(plane=HUB))
        edited: JsonObject = {"spec": {"scaleSettings": {"minReplicas": 3}}}
        await hub.world.patch(PROJECT, DEPLOYMENT, WD, edited)
        await hub.world.sleep(60)
        assert len(hub.world.writes(plane=HUB)) == before + 1

    play_hub(story)


@pytest.mark.spec("M-100")
def test_status_that_the_project_prunes_is_sent_once_per_change() -> None:
    async def story(hub: Hub) -> None:
        await hub.world.forget_member(PROJECT, DEPLOYMENT, "status", "location")
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.sleep(5)
        assert shown(await hub.world.rests()) == []
        before = len(hub.world.writes(plane=PROJECT))
        await hub.report(*WD_BLOCKED)
        await hub.world.sleep(60)
        assert len(hub.world.writes(plane=PROJECT)) == before + 1

    play_hub(story)


def test_only_what_is_federations_changes_on_the_hub() -> None:
    """O7: of hub objects the operator changes labels, annotations and spec, never status."""

    async def story(hub: Hub) -> None:
        await hub.federate()
        await hub.report(*WD_READY)
        await hub.world.sleep(5)

    done = play_hub(story)
    ours = {request.number for request in done.world.writes(plane=HUB)}
    for commit in done.history.of(Commit):
        if commit.request in ours and commit.type == "MODIFIED":
            raise AssertionError(f"a settled copy was modified: {commit.key}")
