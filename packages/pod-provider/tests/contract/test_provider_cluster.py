"""The provider by kopf and the official client, on a simulated API server with a kubelet."""

from __future__ import annotations

import asyncio

import pytest
from provider_builders.cluster import INSTANCES, PODS, Cluster, until
from provider_builders.documents import FINALIZER, TYPE, a_container
from provider_builders.instances import NAME, a_new_instance, gone, metadata_of

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import object_at, objects_at, text_at, texts_at


@pytest.mark.spec("PP-05", "PP-06", "PP-07")
async def test_a_life_costs_five_requests_in_their_order_and_leaves_no_trace_of_kopf(
    cluster: Cluster,
) -> None:
    async with cluster.provider():
        await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        existing = await cluster.instance()
        assert texts_at(metadata_of(existing), "finalizers") == (FINALIZER,)
        assert "annotations" not in metadata_of(existing)
        assert set(object_at(existing or {}, "status")) == {
            *("conditions", "controller", "networkInterfaces"),
        }
        assert await cluster.condition("QuotaGranted") == (
            *("Unknown", "PendingEvaluation", "Waiting for quota evaluation"),
        )
        before = list(cluster.audit.writes)
        await asyncio.sleep(2)
        assert cluster.audit.writes == before  # settled
        (await cluster.api.delete(f"{INSTANCES}/{NAME}")).expect(200)
        await gone(cluster)
    assert cluster.audit.writes == [
        f"PATCH instances/{NAME}",
        "POST pods",
        f"PATCH instances/{NAME}/status",
        f"DELETE pods/{NAME}",
        f"PATCH instances/{NAME}",
    ]
    assert not any(b"kopf" in body for body in cluster.audit.bodies)
    assert [event.reason for event in cluster.events] == ["PodCreated", "InstanceAvailable"]


@pytest.mark.spec("PP-04")
async def test_behind_a_gate_nothing_happens_and_a_gate_that_returns_stops_nothing(
    cluster: Cluster,
) -> None:
    async with cluster.provider():
        await cluster.create(a_new_instance(gates=("Quota",)))
        guarded = a_new_instance(name="guarded-0", gates=("Quota",))
        metadata_of(guarded)["finalizers"] = [FINALIZER]
        await cluster.create(guarded)
        await asyncio.sleep(1)
        assert not cluster.audit.writes
        opened: JsonObject = {"spec": {"controller": {"schedulingGates": None}}}
        await cluster.api.merge(f"{INSTANCES}/{NAME}", opened)
        await cluster.until_reason("Available")
        count = len(cluster.audit.writes)
        closed: JsonObject = {"spec": {"controller": {"schedulingGates": [{"name": "Quota"}]}}}
        await cluster.api.merge(f"{INSTANCES}/{NAME}", closed)
        await asyncio.sleep(1)
        assert len(cluster.audit.writes) == count
        assert await cluster.pod() is not None
        assert texts_at(metadata_of(await cluster.instance()), "finalizers") == (FINALIZER,)


def runtime_of(container: JsonObject, instance_type: str = TYPE) -> JsonObject:
    return {
        "resources": {"instanceType": instance_type},
        "sandbox": {"containers": [a_container() | container]},
    }


NODE_NAME: JsonObject = {"fieldRef": {"fieldPath": "spec.nodeName"}}
MACHINE: JsonObject = {
    "resources": {"instanceType": TYPE},
    "virtualMachine": {"volumeAttachments": [{"name": "boot"}]},
}
REFUSED: dict[str, JsonObject] = {
    'Volume "v" is a disk; this cell has no disks': {
        "volumes": [{"name": "v", "disk": {"template": {"spec": {}}}}]
    },
    "This cell runs containers only; a virtual machine cannot run here": {"runtime": MACHINE},
    'Instance type "example/huge" is unknown here': {"runtime": runtime_of({}, "example/huge")},
    f'Containers ask for more than instance type "{TYPE}" has': {
        "runtime": runtime_of({"resources": {"limits": {"cpu": "64"}}})
    },
    'Variable "X" of container "main" refers to "spec.nodeName", which instances may not read': {
        "runtime": runtime_of({"env": [{"name": "X", "valueFrom": NODE_NAME}]})
    },
}


@pytest.mark.spec("PP-03")
@pytest.mark.parametrize("message", REFUSED)
async def test_a_refused_instance_has_its_condition_and_neither_pod_nor_finalizer(
    cluster: Cluster, message: str
) -> None:
    async with cluster.provider():
        document = a_new_instance()
        object_at(document, "spec").update(REFUSED[message])
        await cluster.create(document)
        await cluster.until_reason("ConfigurationError")
        told = ("False", "ConfigurationError", message)
        assert await cluster.condition("Available") == told
        assert await cluster.condition("Programmed") == told
        await asyncio.sleep(1)
        assert cluster.audit.writes == [f"PATCH instances/{NAME}/status"]
        assert texts_at(metadata_of(await cluster.instance()), "finalizers") == ()
        # Corrected, it runs in the same Instance.
        corrected: JsonObject = {
            "runtime": {**runtime_of({}), "virtualMachine": None},
            "volumes": None,
        }
        await cluster.api.merge(f"{INSTANCES}/{NAME}", {"spec": corrected})
        await cluster.until_reason("Available")


@pytest.mark.spec("PP-13")
async def test_a_foreign_pod_of_the_name_is_told_and_left_alone(cluster: Cluster) -> None:
    foreign: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME},
        "spec": {"containers": [{"name": "x", "image": "x:hang"}]},
    }
    made = (await cluster.api.post(PODS, foreign)).expect(201)
    async with cluster.provider():
        await cluster.create(a_new_instance())
        await cluster.until_reason("Provisioning")
        assert "belongs to somebody else" in (await cluster.condition("Available"))[2]
        assert metadata_of(await cluster.pod())["uid"] == metadata_of(made)["uid"]
        assert not any(one.startswith("DELETE") for one in cluster.audit.writes)


@pytest.mark.spec("PP-09")
async def test_an_edit_in_place_changes_neither_pod_nor_hash_and_a_new_instance_has_its_own(
    cluster: Cluster,
) -> None:
    async with cluster.provider():
        first = await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        pod = metadata_of(await cluster.pod())
        edit: JsonObject = {"spec": {"controller": {"templateHash": "hash-2"}}}
        await cluster.api.merge(f"{INSTANCES}/{NAME}", edit)
        await asyncio.sleep(1)
        assert metadata_of(await cluster.pod())["uid"] == pod["uid"]
        status = object_at(await cluster.instance() or {}, "status")
        assert status["controller"] == {"observedTemplateHash": "hash-1"}

        await cluster.api.delete(f"{INSTANCES}/{NAME}")
        await gone(cluster)
        second = await cluster.create(a_new_instance(controller={"templateHash": "hash-2"}))
        assert metadata_of(second)["uid"] != metadata_of(first)["uid"]
        await cluster.until_reason("Available")
        status = object_at(await cluster.instance() or {}, "status")
        assert status["controller"] == {"observedTemplateHash": "hash-2"}
        owners = objects_at(metadata_of(await cluster.pod()), "ownerReferences")
        assert text_at(owners[0], "uid") == metadata_of(second)["uid"]


@pytest.mark.spec("PP-08")
async def test_conditions_of_the_cell_operator_survive_a_burst(cluster: Cluster) -> None:
    names = [f"web-dfw-{number}" for number in range(20)]

    async def write_ready(name: str) -> None:
        """As the cell operator does: with the version that it read."""
        while True:
            existing = await cluster.instance(name)
            assert existing is not None
            listed = objects_at(object_at(existing, "status"), "conditions")
            ours: JsonObject = {
                "type": "Ready",
                "status": "False",
                "reason": "Mine",
                "message": name,
                "lastTransitionTime": "2026-11-18T12:00:00Z",
            }
            kept: list[JsonValue] = [one for one in listed if one.get("type") != "Ready"]
            body: JsonObject = {
                "metadata": {"resourceVersion": metadata_of(existing)["resourceVersion"]},
                "status": {"conditions": [*kept, ours]},
            }
            answer = await cluster.api.merge(f"{INSTANCES}/{name}/status", body)
            if answer.status == 200:
                return

    async with cluster.provider():
        for name in names:
            await cluster.create(a_new_instance(name=name))
        await asyncio.gather(*(write_ready(name) for name in names))
        for name in names:
            await cluster.until_reason("Available", name)
            assert (await cluster.condition("Ready", name))[1:] == ("Mine", name)
            assert (await cluster.condition("QuotaGranted", name))[1] == "PendingEvaluation"


@pytest.mark.spec("PP-23", "PP-22")
async def test_a_deleted_pod_is_made_again_for_the_same_instance(cluster: Cluster) -> None:
    async with cluster.provider():
        made = await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        first = metadata_of(await cluster.pod())["uid"]
        await cluster.api.delete(f"{PODS}/{NAME}")

        async def is_replaced() -> bool:
            pod = await cluster.pod()
            return pod is not None and metadata_of(pod)["uid"] != first

        await until(is_replaced, "no new Pod")
        await cluster.until_reason("Available")
        assert metadata_of(await cluster.instance())["uid"] == metadata_of(made)["uid"]
        assert len(cluster.kubelet.started) == 2
        assert b"gracePeriodSeconds" not in b"".join(cluster.audit.bodies)


@pytest.mark.spec("PP-29")
async def test_a_stuck_pod_keeps_finalizer_and_instance_and_stops_no_other(
    cluster: Cluster,
) -> None:
    names = [f"stuck-{number}" for number in range(70)]
    async with cluster.provider():
        for name in names:
            await cluster.create(a_new_instance("stuck", name=name))
        for name in names:
            await cluster.until_reason("Available", name)
        for name in names:
            await cluster.api.delete(f"{INSTANCES}/{name}")
        await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        for name in names:
            assert texts_at(metadata_of(await cluster.instance(name)), "finalizers") == (FINALIZER,)
            await cluster.api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        for name in names:
            await gone(cluster, name)


@pytest.mark.spec("PP-26")
async def test_while_the_api_is_away_nothing_is_concluded(cluster: Cluster) -> None:
    async with cluster.provider():
        await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        before = await cluster.instance()
        cluster.audit.is_away = True
        await cluster.api.delete(f"{INSTANCES}/{NAME}")
        await asyncio.sleep(3)
        assert await cluster.pod() is not None
        assert (await cluster.instance() or {}).get("status") == (before or {}).get("status")
        cluster.audit.is_away = False
        await gone(cluster)


@pytest.mark.spec("PP-31")
async def test_a_suspended_instance_stops_keeps_its_uid_and_comes_back(cluster: Cluster) -> None:
    async def observed() -> JsonValue:
        status = object_at(await cluster.instance() or {}, "status")
        return object_at(status, "controller").get("suspendedObserved")

    async with cluster.provider():
        made = await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        first = metadata_of(await cluster.pod())["uid"]
        status: JsonObject = {"status": {"suspended": True}}
        (await cluster.api.merge(f"{INSTANCES}/{NAME}/status", status)).expect(200)

        async def is_stopped() -> bool:
            return await observed() is True

        await until(is_stopped, "the stop was not confirmed")
        assert await cluster.pod() is None
        assert (await cluster.condition("Available"))[1] == "Suspended"
        before = list(cluster.audit.writes)
        await asyncio.sleep(1)
        assert cluster.audit.writes == before  # settled

        resumed: JsonObject = {"status": {"suspended": None}}
        (await cluster.api.merge(f"{INSTANCES}/{NAME}/status", resumed)).expect(200)
        await cluster.until_reason("Available")
        assert await observed() is None
        assert metadata_of(await cluster.pod())["uid"] != first
        assert metadata_of(await cluster.instance())["uid"] == metadata_of(made)["uid"]


async def test_an_image_that_is_missing_is_told(cluster: Cluster) -> None:
    async with cluster.provider():
        await cluster.create(a_new_instance("image-unavailable"))
        await cluster.until_reason("ImageUnavailable")
        assert (await cluster.condition("Available"))[2].endswith("could not be pulled: not found")
