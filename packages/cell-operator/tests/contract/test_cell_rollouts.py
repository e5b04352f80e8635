"""Rollouts in a simulated cell: creates, rolls, scales, and what must not happen meanwhile."""

from __future__ import annotations

import pytest
from cell_builders.documents import (
    NS,
    PROJECT,
    a_deployment_document,
    a_namespace_document,
    a_template_document,
    an_instance_document,
)
from cell_builders.milo import BUDGET
from cell_builders.world import (
    QUOTA_ON,
    World,
    condition_of,
    gates_of,
    generation_of,
    labels_of,
    play,
    settings_of,
    spec_of,
    status_of,
    uid_of,
)

from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_operator_kit.core.json import JsonObject, member_list, member_object
from compute_sim_planes.history import Commit


async def begin(world: World, replicas: int = 3) -> None:
    """A deployment that has come up."""
    world.start_neighbours()
    world.process().start()
    await world.create(CELL, a_deployment_document("web", replicas))
    await world.eventually(world.is_converged)


def deaths_and_births(world: World) -> list[str]:
    """`+web-0`, `-web-0`: Instances that the operator created and deleted, in order."""
    signs = {"create": "+", "delete": "-"}
    return [
        f"{signs[request.address.verb]}{request.commits[0].key.rpartition('/')[2]}"
        for request in world.writes(kind=INSTANCE.kind)
        if request.address.verb in signs and request.commits
    ]


@pytest.mark.spec("C-25", "C-41", "C-42", "C-47", "C-89")
def test_three_replicas_come_up_in_order_and_then_nothing_is_written() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        assert await world.instances() == ["web-0", "web-1", "web-2"]
        found = await world.deployment()
        assert condition_of(found, "Available") == (
            "True",
            "StableInstanceFound",
            "3/3 instances are ready",
        )
        assert condition_of(found, "Ready") == (
            "True",
            "ReplicasAvailable",
            "3/3 replicas available",
        )
        assert status_of(found)["location"] == {"name": "dfw", "namespace": ""}
        assert spec_of(await world.instance("web-0"))["location"] == {
            "name": "dfw",
            "namespace": "",
        }
        assert await world.rests() == []
        assert world.provider.violations == []
        kinds = {one.address.subresource for one in world.writes(kind=DEPLOYMENT.kind)}
        assert kinds == {"status"}

    play(scenario)


@pytest.mark.spec("C-04")
def test_a_new_template_rolls_from_the_highest_ordinal_down_in_the_same_slots() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        before = {name: uid_of(await world.instance(name)) for name in await world.instances()}
        began = len(deaths_and_births(world))
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        assert deaths_and_births(world)[began:] == [
            *("-web-2", "+web-2", "-web-1", "+web-1", "-web-0", "+web-0"),
        ]
        after = {name: uid_of(await world.instance(name)) for name in await world.instances()}
        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())
        for name in after:
            found = await world.instance(name)
            image = spec_of(found)["runtime"]
            assert "2.0" in str(image)
            # In place would be a second generation of the template's part; gates took two.
            assert generation_of(found) == 3
        assert world.provider.violations == []

    play(scenario)


@pytest.mark.spec("C-04")
def test_a_label_of_a_deployment_rolls_nothing() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        before = [await world.instance(name) for name in await world.instances()]
        writes = len(world.writes())
        labelled: JsonObject = {
            "metadata": {"labels": {"compute.datumapis.com/workload-name": "shop"}}
        }
        await world.patch(CELL, DEPLOYMENT, "web", labelled)
        await world.sleep(30)
        assert [await world.instance(name) for name in await world.instances()] == before
        assert world.writes()[writes:] == []

    play(scenario)


@pytest.mark.spec("C-14", "C-16", "C-17", "C-19")
def test_an_instance_is_born_with_links_owner_gates_and_no_reserved_key() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        milo.milo.options.pause()
        world.process(settings=settings_of(quota=QUOTA_ON)).start()
        template = a_template_document(
            labels={"app": "web", "compute.datumapis.com/city-code": "XXX"},
            annotations={
                "note": "hello",
                "compute.datumapis.com/restartedAt": "2026-01-01T00:00:00Z",
                "compute.datumapis.com/instance-uid": "forged",
            },
        )
        made = await world.create(CELL, a_deployment_document("web", 1, template=template))
        await world.eventually(lambda: world.has_instances("web-0"))
        found = await world.instance("web-0")
        assert labels_of(found) == {
            "app": "web",
            "compute.datumapis.com/workload-uid": "5b7f3f0e-0000-4000-8000-00000000000a",
            "compute.datumapis.com/workload-name": "shop",
            "compute.datumapis.com/workload-deployment-uid": uid_of(made),
            "compute.datumapis.com/workload-deployment-name": "web",
            "compute.datumapis.com/placement-name": "us",
            "compute.datumapis.com/city-code": "DFW",
            "compute.datumapis.com/instance-index": "0",
        }
        metadata = member_object(found, "metadata")
        assert member_object(metadata, "annotations") == {
            "note": "hello",
            "compute.datumapis.com/restartedAt": "2026-01-01T00:00:00Z",
        }
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": DEPLOYMENT.api_version,
                "kind": DEPLOYMENT.kind,
                "name": "web",
                "uid": uid_of(made),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert gates_of(found) == ["Network", "Quota"]

    play(scenario)


@pytest.mark.spec("C-13", "C-14", "C-17")
@pytest.mark.fault("F5")
@pytest.mark.parametrize("index", ["", "foo", "7", None])
def test_drifted_links_and_a_lost_owner_are_repaired_without_a_recreate(index: str | None) -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        before = uid_of(await world.instance("web-0"))
        drift: JsonObject = {
            "compute.datumapis.com/instance-index": index,
            "compute.datumapis.com/city-code": "LHR",
        }
        metadata: JsonObject = {"labels": drift, "ownerReferences": []}
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": metadata})
        await world.sleep(5)
        found = await world.instance("web-0")
        assert uid_of(found) == before
        assert labels_of(found)["compute.datumapis.com/instance-index"] == "0"
        assert labels_of(found)["compute.datumapis.com/city-code"] == "DFW"
        assert len(member_list(member_object(found, "metadata"), "ownerReferences")) == 1
        assert await world.rests() == []

    play(scenario)


@pytest.mark.spec("C-05")
def test_a_crashed_instance_gets_the_corrected_template_at_once() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 2, tag="crash"))
        await world.eventually(lambda: world.says("InstanceCrashing"))
        found = await world.deployment()
        message = 'Instance "web-0": Container "app" ends again and again (exit code 1)'
        assert condition_of(found, "Available") == ("False", "InstanceCrashing", message)
        assert condition_of(found, "ReplicasReady")[1] == "InstanceCrashing"
        await world.set_image("web", "1.1")
        await world.eventually(world.is_converged)
        assert deaths_and_births(world) == ["+web-0", "-web-0", "+web-0", "+web-1"]

    play(scenario)


@pytest.mark.spec("C-07", "C-43")
def test_a_bad_template_takes_one_slot_and_no_more() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        began = len(deaths_and_births(world))
        await world.set_image("web", "image-unavailable")
        await world.sleep(120)
        assert deaths_and_births(world)[began:] == ["-web-2", "+web-2"]
        found = await world.deployment()
        assert condition_of(found, "Available")[2] == "2/3 instances are ready"
        assert condition_of(found, "ReplicasReady")[1] == "ImageUnavailable"
        await world.set_image("web", "1.1")
        await world.eventually(world.is_converged)
        assert deaths_and_births(world)[began + 2 : began + 4] == ["-web-2", "+web-2"]

    play(scenario)


@pytest.mark.spec("C-08")
def test_scaling_down_goes_on_beside_an_instance_that_hangs() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.set_image("web", "hang")
        await world.sleep(10)
        began = len(deaths_and_births(world))
        await world.scale("web", 1)
        await world.eventually(lambda: world.has_instances("web-0"))
        surplus = [act for act in deaths_and_births(world)[began:] if "web-0" not in act]
        assert surplus == ["-web-2", "-web-1"]

    play(scenario)


@pytest.mark.spec("C-09")
def test_a_deleting_deployment_deletes_all_its_instances_at_once() -> None:
    async def scenario(world: World) -> None:
        await begin(world)
        await world.patch(CELL, DEPLOYMENT, "web", {"metadata": {"finalizers": ["test/hold"]}})
        began = len(deaths_and_births(world))
        await world.delete(CELL, DEPLOYMENT, "web")
        await world.sleep(0.5)
        assert sorted(deaths_and_births(world)[began:]) == ["-web-0", "-web-1", "-web-2"]
        await world.eventually(world.has_instances)
        found = await world.deployment()
        assert status_of(found)["desiredReplicas"] == 0
        await world.patch(CELL, DEPLOYMENT, "web", {"metadata": {"finalizers": None}})

    play(scenario)


@pytest.mark.spec("C-09", "C-18")
def test_a_deployment_made_again_waits_for_the_instances_of_the_one_before() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        old = {uid_of(await world.instance(name)) for name in await world.instances()}
        # Orphaned from the operator's point of view: the owner is gone, its Instances not yet.
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": ["test/hold"]}})
        await world.delete(CELL, DEPLOYMENT, "web")
        await world.create(CELL, a_deployment_document("web", 2))
        await world.eventually(lambda: world.has_instances("web-0"))
        message = 'Instance "web-0" belongs to another deployment; waiting for it to go'
        await world.sleep(2)
        said = condition_of(await world.deployment(), "Available")
        assert said == ("False", "InstancesProvisioning", message)
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": None}})
        await world.eventually(world.is_converged)
        new = {uid_of(await world.instance(name)) for name in await world.instances()}
        assert len(new) == 2
        assert not old & new

    play(scenario)


@pytest.mark.spec("C-11")
def test_a_name_that_another_owner_has_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, an_instance_document("web-0"))
        world.start_neighbours()
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 1))
        await world.sleep(30)
        assert deaths_and_births(world) == []
        assert await world.says("InstancesProvisioning")
        await world.delete(CELL, INSTANCE, "web-0")
        await world.eventually(world.is_converged)

    play(scenario)


@pytest.mark.spec("C-12")
def test_a_stray_is_deleted_and_takes_no_slot() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        owner = uid_of(await world.deployment())
        for name in ("web-x", "web-01", "else"):
            await world.create(CELL, an_instance_document(name, owner_uid=owner))
        await world.eventually(lambda: world.has_instances("web-0"))
        assert await world.is_converged()

    play(scenario)


@pytest.mark.spec("C-20")
def test_an_unknown_management_policy_is_reported_once_and_orderly() -> None:
    async def scenario(world: World) -> None:
        world.start_neighbours()
        process = world.process()
        process.start()
        await world.create(CELL, a_deployment_document("web", 2, policy="Parallel"))
        await world.eventually(world.is_converged)
        await world.sleep(1800)
        assert process.reasons().count("UnsupportedManagementPolicy") == 1

    play(scenario)


@pytest.mark.spec("C-45")
def test_the_hub_generation_is_followed_also_when_only_the_annotation_changed() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        key = "resourcetemplate.karmada.io/generation"

        async def told(value: str | None) -> object:
            patch: JsonObject = {"metadata": {"annotations": {key: value}}}
            await world.patch(CELL, DEPLOYMENT, "web", patch)
            await world.sleep(2)
            return status_of(await world.deployment()).get("observedTemplateGeneration")

        assert await told("5") == 5
        assert await told("0") == 0
        for odd in ("", "-1", "x", "1.5", "9" * 30, None):
            assert await told(odd) is None, odd

    play(scenario)


@pytest.mark.spec("C-99")
def test_in_a_namespace_that_goes_nothing_is_created() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        began = len(deaths_and_births(world))
        finalizers: JsonObject = {"metadata": {"finalizers": ["test/hold"]}}
        await world.patch(CELL, INSTANCE, "web-0", finalizers)
        await world.delete(CELL, NAMESPACE, NS)
        await world.sleep(20)
        assert not [act for act in deaths_and_births(world)[began:] if act.startswith("+")]
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": None}})

    play(scenario)


def test_deployments_outside_of_federated_namespaces_are_not_ours() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, a_namespace_document("default-2"))
        world.process().start()
        await world.create(CELL, a_deployment_document("web", 1, namespace="default-2"))
        await world.sleep(30)
        assert world.writes() == []

    play(scenario)


def test_without_federation_every_namespace_is_ours() -> None:
    async def scenario(world: World) -> None:
        await world.create(CELL, a_namespace_document("shop"))
        settings = settings_of(
            federation={"mode": "none"}, quota={"mode": "disabled"}, networking="off"
        )
        world.process(settings=settings).start()
        await world.create(CELL, a_deployment_document("web", 1, namespace="shop"))
        await world.eventually(lambda: world.has_instances("web-0"))
        await world.sleep(1)
        # No quota to wait for, no hub to write to: nothing of either is asked.
        assert gates_of(await world.get(CELL, INSTANCE, "web-0", "shop")) == []
        assert {request.address.plane for request in world.requests()} == {CELL}

    play(scenario)


@pytest.mark.spec("C-43")
def test_denied_quota_reaches_the_deployment() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo(dict.fromkeys(BUDGET, 0))
        world.start_neighbours()
        world.process(settings=settings_of(quota=QUOTA_ON)).start()
        await world.create(CELL, a_deployment_document("web", 3))
        await world.eventually(lambda: world.says("QuotaNotGranted"))
        found = await world.deployment()
        message = "1 of 3 desired instances pending quota: "
        assert condition_of(found, "Available")[2].startswith(message)
        assert condition_of(found, "ReplicasReady")[1] == "QuotaExceeded"
        assert condition_of(found, "Ready")[1] == "QuotaNotGranted"
        await milo.grant(BUDGET, "more")
        await world.eventually(world.is_converged, within=180)

    play(scenario)


@pytest.mark.spec("C-43")
def test_a_quota_plane_that_is_away_is_not_called_exceeded() -> None:
    async def scenario(world: World) -> None:
        milo = await world.add_milo()
        milo.milo.make_unavailable(PROJECT)
        world.start_neighbours()
        world.process(settings=settings_of(quota=QUOTA_ON)).start()
        await world.create(CELL, a_deployment_document("web", 3))
        await world.eventually(lambda: world.says("QuotaNotGranted"))
        assert condition_of(await world.deployment(), "ReplicasReady")[1] == "QuotaNotGranted"
        milo.milo.make_available(PROJECT)
        await world.eventually(world.is_converged, within=180)

    play(scenario)


@pytest.mark.spec("C-83")
def test_events_tell_of_transitions_and_of_each_once() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        process = world.processes[0]
        assert process.reasons(kind=DEPLOYMENT) == ["Scaled", "RolloutCompleted"]
        await world.set_image("web", "2.0")
        await world.sleep(1)
        await world.eventually(world.is_converged)
        await world.sleep(1800)
        assert process.reasons(kind=DEPLOYMENT)[2:].count("InstanceReplaced") == 2
        assert process.reasons(kind=DEPLOYMENT)[2:].count("RolloutStarted") == 1
        await process.stop()
        again = world.process("operator-2")
        again.start()
        await world.sleep(60)
        assert again.reasons() == ["QuotaEnforcementDisabled"]  # recorded at every start
        assert world.writes("operator-2") == []

    play(scenario)


@pytest.mark.spec("C-96")
def test_no_successor_exists_while_the_predecessor_does() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": ["test/hold"]}})
        before = uid_of(await world.instance("web-0"))
        await world.set_image("web", "2.0")
        await world.sleep(60)
        assert uid_of(await world.instance("web-0")) == before
        creates = [act for act in deaths_and_births(world) if act == "+web-0"]
        assert len(creates) == 1
        await world.patch(CELL, INSTANCE, "web-0", {"metadata": {"finalizers": None}})
        await world.eventually(world.is_converged)

    done = play(scenario)
    assert done.history.of(Commit)


@pytest.mark.spec("C-23", "C-24")
def test_an_instance_of_a_newer_release_is_neither_rolled_nor_counted() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 2)
        began = len(deaths_and_births(world))
        await world.stop_neighbours()  # the provider of the newer release is not here
        newer: JsonObject = {"spec": {"controller": {"templateHash": "v2-of-a-newer-release"}}}
        await world.patch(CELL, INSTANCE, "web-1", newer)
        echo: JsonObject = {"controller": {"observedTemplateHash": "v2-of-a-newer-release"}}
        await world.set_status(CELL, INSTANCE, "web-1", echo)
        await world.sleep(60)
        assert deaths_and_births(world)[began:] == []
        found = status_of(await world.deployment())
        assert (found["updatedReplicas"], found["readyReplicas"]) == (1, 2)

    play(scenario)


@pytest.mark.spec("C-24")
def test_an_instance_that_lost_its_controller_part_is_stale_and_replaced() -> None:
    async def scenario(world: World) -> None:
        await begin(world, 1)
        before = uid_of(await world.instance("web-0"))
        await world.patch(CELL, INSTANCE, "web-0", {"spec": {"controller": None}})
        await world.sleep(2)
        await world.eventually(world.is_converged)
        assert uid_of(await world.instance("web-0")) != before

    play(scenario)
