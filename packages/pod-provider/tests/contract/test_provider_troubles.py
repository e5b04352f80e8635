"""Restarts, kills, lost requests and watch gaps of the provider, on a simulated API server."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from provider_builders.cluster import INSTANCES, PODS, Cluster, until
from provider_builders.documents import FINALIZER, NAMESPACE
from provider_builders.instances import NAME, a_new_instance, gone, metadata_of
from provider_builders.rights import granted

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_pod_provider import delays
from compute_pod_provider.instance_facts import object_at, objects_at, text_at, texts_at
from compute_pod_provider.provider import QUICK_CONFLICTS

MANY = [f"many-{number}" for number in range(100)]
LIFE = [
    f"PATCH instances/{NAME}",
    "POST pods",
    f"PATCH instances/{NAME}/status",
    f"DELETE pods/{NAME}",
    f"PATCH instances/{NAME}",
]
STARTED = 3  # requests of a start
ROLE_H = ("instances", "pods", "events")
# The kit's recorder writes Events; here they are gathered in a list.
OF_EVENT_RECORDER = {"create events.", "patch events."}


async def all_available(cluster: Cluster) -> None:
    async def are_available() -> bool:
        listed = (await cluster.api.get(INSTANCES)).expect(200)
        return all(
            any(
                (text_at(one, "type"), text_at(one, "status")) == ("Available", "True")
                for one in objects_at(object_at(document, "status"), "conditions")
            )
            for document in objects_at(listed, "items")
        )

    await until(are_available, "not all are Available", timedelta(seconds=60))


async def settled(cluster: Cluster) -> None:
    """Until the provider has written nothing for two seconds."""
    seen = -1
    while seen != len(cluster.audit.writes):
        seen = len(cluster.audit.writes)
        await asyncio.sleep(2)


async def uid_of_pod(cluster: Cluster) -> str:
    pod = await cluster.pod()
    return "" if pod is None else text_at(metadata_of(pod), "uid")


async def cut_off(cluster: Cluster) -> None:
    """Until the provider has sent all that it may, and tried one request more."""

    async def is_cut() -> bool:
        return bool(cluster.audit.turned_away)

    await until(is_cut, "the provider sent too little")


# --- restarts -------------------------------------------------------------------------------------


@pytest.mark.spec("PP-05", "PP-23")
@pytest.mark.parametrize("sent", range(len(LIFE)))
async def test_killed_between_any_two_requests_the_end_is_the_same(
    cluster: Cluster, sent: int
) -> None:
    """From the API server a kill is a process that sends nothing any more."""
    audit = cluster.audit
    is_start = sent < STARTED
    async with cluster.provider():
        if is_start:
            audit.last_write = sent
        await cluster.create(a_new_instance())
        if not is_start:
            await cluster.until_reason("Available")
            audit.last_write = sent
            await cluster.api.delete(f"{INSTANCES}/{NAME}")
        await cut_off(cluster)
    audit.last_write, audit.is_away = None, False
    async with cluster.provider():
        if is_start:
            await cluster.until_reason("Available")
            await cluster.api.delete(f"{INSTANCES}/{NAME}")
        await gone(cluster)
    assert audit.writes == LIFE
    assert len(cluster.kubelet.started) == 1


@pytest.mark.spec("PP-08", "PP-27")
async def test_a_burst_meets_few_conflicts_and_a_restart_writes_nothing(cluster: Cluster) -> None:
    audit = cluster.audit
    async with cluster.provider():
        await asyncio.gather(*(cluster.create(a_new_instance(name=name)) for name in MANY))
        await all_available(cluster)
        await settled(cluster)
    assert len(cluster.kubelet.started) == len(MANY)
    # Few per object, on a busy machine too; creations of Pods have one path for all Instances.
    creations = audit.conflicts.count("POST pods")
    others = [one for one in audit.conflicts if one != "POST pods"]
    assert creations <= len(MANY)
    assert max((others.count(one) for one in others), default=0) <= 2 * QUICK_CONFLICTS
    before = list(audit.writes)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with cluster.provider():
        # The Pod of one that comes now shows that the others were listed and looked at.
        await cluster.create(a_new_instance())
        await cluster.until_started(len(MANY) + 1)
        assert loop.time() - began < 30  # not the resync, which takes ten minutes
        await cluster.until_reason("Available")
        await asyncio.sleep(2)
    assert audit.writes[len(before) :] == LIFE[:STARTED], audit.bodies[len(before) :][:10]


@pytest.mark.spec("PP-27")
async def test_what_vanished_while_the_provider_was_away_is_right_at_its_start(
    cluster: Cluster,
) -> None:
    other = "web-dfw-1"
    async with cluster.provider():
        for name in (NAME, other):
            await cluster.create(a_new_instance(name=name))
            await cluster.until_reason("Available", name)
    first = await uid_of_pod(cluster)
    await cluster.api.delete(f"{PODS}/{NAME}", {"gracePeriodSeconds": 0})
    await cluster.api.delete(f"{INSTANCES}/{other}")
    async with cluster.provider():
        await gone(cluster, other)
        await cluster.until_started(3)
        await cluster.until_reason("Available")
    assert await uid_of_pod(cluster) not in {"", first}


@pytest.mark.spec("PP-27")
async def test_a_pod_that_vanished_in_a_watch_gap_is_made_again_by_the_resync(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = delays.RESYNC * (1 + delays.RESYNC_SPREAD)
    assert longest <= timedelta(minutes=12)
    monkeypatch.setattr(delays, "RESYNC", timedelta(seconds=4))
    async with cluster.provider():
        await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        first = await uid_of_pod(cluster)
        cluster.audit.break_watches()
        await cluster.api.delete(f"{PODS}/{NAME}", {"gracePeriodSeconds": 0})
        await asyncio.sleep(0.5)
        cluster.audit.is_away = False
        await cluster.until_started(2)
        await cluster.until_reason("Available")
    assert await uid_of_pod(cluster) not in {"", first}


@pytest.mark.spec("PP-07")
async def test_settled_instances_are_not_written_to_by_resyncs_and_sweeps(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty of each, as in hours."""
    monkeypatch.setattr(delays, "RESYNC", timedelta(milliseconds=200))
    monkeypatch.setattr(delays, "SWEEP", timedelta(milliseconds=200))
    disk: JsonObject = {"name": "v", "disk": {"template": {"spec": {}}}}
    async with cluster.provider():
        await cluster.create(a_new_instance())
        await cluster.create(a_new_instance("crash", name="crash-0"))
        await cluster.create(a_new_instance(name="refused-0", volumes=[disk]))
        await cluster.create(a_new_instance(name="gated-0", gates=("Quota",)))
        await cluster.until_reason("Available")
        await cluster.until_reason("ConfigurationError", "refused-0")
        await cluster.until_reason("InstanceCrashing", "crash-0")
        await asyncio.sleep(1.5)  # its restart
        before = list(cluster.audit.writes)
        await asyncio.sleep(4)
        assert cluster.audit.writes == before


@pytest.mark.spec("PP-23", "PP-28")
async def test_two_leaders_make_one_pod_each_and_disturb_nothing(cluster: Cluster) -> None:
    names = MANY[:10]
    async with cluster.provider(), cluster.provider():
        for name in names:
            await cluster.create(a_new_instance(name=name))
        await all_available(cluster)
        assert len(cluster.kubelet.started) == len(names)
        await cluster.api.delete(f"{PODS}/{names[0]}")
        await cluster.until_started(len(names) + 1)
        await all_available(cluster)
        for name in names:
            await cluster.api.delete(f"{INSTANCES}/{name}")
        for name in names:
            await gone(cluster, name)
    assert len(cluster.kubelet.started) == len(names) + 1
    assert b"gracePeriodSeconds" not in b"".join(cluster.audit.bodies)


# --- requests that are lost -----------------------------------------------------------------------


@pytest.mark.spec("PP-26")
@pytest.mark.parametrize("is_deleting", [False, True], ids=["put on", "taken off"])
async def test_a_finalizer_patch_that_kopf_gave_up_is_healed_by_the_sweep(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *, is_deleting: bool
) -> None:
    longest = max(delays.LOST_TEARDOWN + delays.SWEEP, 2 * delays.SWEEP)
    assert longest <= timedelta(minutes=2)
    monkeypatch.setattr(delays, "SWEEP", timedelta(seconds=1))
    monkeypatch.setattr(delays, "LOST_TEARDOWN", timedelta(seconds=1))
    monkeypatch.setattr("compute_pod_provider.handlers.ERROR_BACKOFFS", (0.1,))
    audit = cluster.audit

    def lose() -> None:
        """Both attempts of kopf; what the sweep sends has the annotation and arrives."""
        left = 2

        def is_lost(shown: str) -> bool:
            nonlocal left
            is_finalizer = shown == f"PATCH instances/{NAME}" and left > 0
            left -= is_finalizer
            return is_finalizer

        audit.loses = is_lost

    async with cluster.provider():
        if is_deleting:
            await cluster.create(a_new_instance())
            await cluster.until_reason("Available")
            lose()
            await cluster.api.delete(f"{INSTANCES}/{NAME}")
            await gone(cluster)
        else:
            lose()
            await cluster.create(a_new_instance())
            await cluster.until_reason("Available")
            annotations = object_at(metadata_of(await cluster.instance()), "annotations")
            assert set(annotations) == {labels.LOOK_AGAIN}
    assert len(audit.turned_away) == 2


# --- troubles that end ----------------------------------------------------------------------------


@pytest.mark.spec("PP-16", "PP-17", "PP-19")
@pytest.mark.parametrize(
    ("tag", "reason"),
    [
        ("image-unavailable", "ImageUnavailable"),
        ("config-error", "ConfigurationError"),
        ("oom", "InstanceCrashing"),
    ],
)
async def test_a_cured_container_runs_in_the_same_instance_and_pod(
    cluster: Cluster, tag: str, reason: str
) -> None:
    async with cluster.provider():
        made = await cluster.create(a_new_instance(tag))
        await cluster.until_reason(reason)
        pod = await uid_of_pod(cluster)
        cluster.kubelet.has_cure = True
        await cluster.until_reason("Available")
        assert await uid_of_pod(cluster) == pod
        assert metadata_of(await cluster.instance())["uid"] == metadata_of(made)["uid"]


@pytest.mark.spec("PP-18", "PP-32")
async def test_a_volume_that_is_missing_is_named_and_every_right_was_used(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an Event has it. The whole life of the Instance needs every right of role H."""
    monkeypatch.setattr("compute_pod_provider.verdict.NO_MOUNT_BEFORE", timedelta(seconds=1))
    async with cluster.provider():
        made = await cluster.create(a_new_instance("no-volume"))
        await cluster.until_started(1)
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "web-dfw-0.1"},
            "involvedObject": {"kind": "Pod", "name": NAME, "uid": await uid_of_pod(cluster)},
            "reason": "FailedMount",
            "message": 'MountVolume.SetUp failed for volume "v" : secret "s" not found',
        }
        (await cluster.api.post(PODS.replace("/pods", "/events"), event)).expect(201)
        await cluster.until_reason("ConfigurationError")
        assert (await cluster.condition("Available"))[2] == 'Volume "v": Secret "s" not found'
        cluster.kubelet.has_cure = True
        await cluster.until_reason("Available")
        assert metadata_of(await cluster.instance())["uid"] == metadata_of(made)["uid"]
        await cluster.api.delete(f"{INSTANCES}/{NAME}")
        await gone(cluster)
    of_role_h = {one for one in granted() if one.partition(" ")[2].startswith(ROLE_H)}
    assert of_role_h - cluster.witness.used == OF_EVENT_RECORDER


@pytest.mark.spec("PP-13")
async def test_when_a_foreign_pod_is_gone_ours_is_made_in_20_s(cluster: Cluster) -> None:
    foreign: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME},
        "spec": {"containers": [{"name": "x", "image": "x:hang"}]},
    }
    (await cluster.api.post(PODS, foreign)).expect(201)
    async with cluster.provider():
        made = await cluster.create(a_new_instance())
        await cluster.until_reason("Provisioning")
        await cluster.api.delete(f"{PODS}/{NAME}", {"gracePeriodSeconds": 0})

        async def is_ours() -> bool:
            pod = await cluster.pod()
            owners = () if pod is None else objects_at(metadata_of(pod), "ownerReferences")
            return bool(owners) and owners[0]["uid"] == metadata_of(made)["uid"]

        await until(is_ours, "no Pod of ours", timedelta(seconds=20))
        await cluster.until_reason("Available")


@pytest.mark.spec("PP-25")
async def test_the_pod_of_a_silent_node_is_made_again_when_the_node_is_deleted(
    cluster: Cluster,
) -> None:
    async with cluster.provider():
        await cluster.create(a_new_instance())
        await cluster.until_reason("Available")
        first = await uid_of_pod(cluster)
        cluster.kubelet.is_away = True
        await cluster.until_reason("NodeUnreachable")
        await asyncio.sleep(1)
        assert await uid_of_pod(cluster) == first
        # The Pod garbage collector removes what is bound to a node that is no more.
        await cluster.api.delete(f"{PODS}/{NAME}", {"gracePeriodSeconds": 0})
        cluster.kubelet.is_away = False
        await cluster.until_started(2)
        await cluster.until_reason("Available")


@pytest.mark.spec("PP-29")
async def test_a_pod_that_does_not_end_is_reported_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delays, "TEARDOWN_STUCK", timedelta(0))
    monkeypatch.setattr(delays, "TEARDOWN_READ", timedelta(milliseconds=200))
    async with cluster.provider():
        await cluster.create(a_new_instance("stuck"))
        await cluster.until_reason("Available")
        await cluster.api.delete(f"{INSTANCES}/{NAME}")

        async def is_reported() -> bool:
            return any(one.reason == "InstanceNotStopping" for one in cluster.events)

        await until(is_reported, "no event")
        await asyncio.sleep(1)
        reasons = [one.reason for one in cluster.events]
        assert reasons.count("InstanceNotStopping") == 1
        assert texts_at(metadata_of(await cluster.instance()), "finalizers") == (FINALIZER,)
        assert cluster.audit.writes.count(f"DELETE pods/{NAME}") == 1
        await cluster.api.delete(f"{PODS}/{NAME}", {"gracePeriodSeconds": 0})
        await gone(cluster)


@pytest.mark.spec("PP-30")
async def test_a_deleted_namespace_takes_instances_and_pods_with_it(cluster: Cluster) -> None:
    names = MANY[:3]
    async with cluster.provider():
        for name in names:
            await cluster.create(a_new_instance(name=name))
        await all_available(cluster)
        await cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")

        async def is_gone() -> bool:
            return (await cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}")).status == 404

        await until(is_gone, "the namespace is wedged", timedelta(seconds=30))
    assert b"gracePeriodSeconds" not in b"".join(cluster.audit.bodies)
