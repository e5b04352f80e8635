"""Instances as containers of real kubelets, by the pod provider (pod-provider.md 9).

Runs only on backends with pods. What a user reads in the project is compared with what runs on the
nodes of the cells.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from compute_api_types import labels
from e2e.world.scenario import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    DFW,
    INSTANCE,
    NAMESPACE,
    NODE,
    ORD,
    POD,
    RESOURCE_QUOTA,
    SECRET,
    SINGLE,
    WORKLOAD,
    Cell,
    JsonObject,
    JsonValue,
    Limit,
    Needs,
    ObjectVersion,
    Operator,
    Plane,
    RefusedError,
    World,
    a_bare_deployment,
    a_namespace,
    a_placement,
    a_template,
    a_workload,
    annotations_of,
    condition_of,
    deliver_data,
    finalizers_of,
    gates_of,
    name_of,
    name_provider,
    object_at,
    objects_at,
    scenario,
    text_at,
    uid_of,
    version_of,
    within,
)

WD = "test-pods-wd"
FIRST = f"{WD}-0"
CITIES = (DFW, ORD)
QUOTA = Needs(has_quota=True)
BOTH = Needs(has_quota=True, cells=CITIES)
SLOW = Needs(has_quota=True, is_slow=True)
SLOW_ALONE = Needs(has_quota=True, is_alone=True, is_slow=True)
HURT = Needs(has_quota=True, is_alone=True, is_slow=True, expects_errors=True)
SOON = within(60, real=90)
LATER = within(120, real=180)
ROOT_IMAGE = "the image runs as root, which this cell does not allow"
POD_POLICY = "compute-instance-pods"
PROVIDER_USER = "system:serviceaccount:compute-system:compute-pod-provider"


def address_of(instance: JsonObject) -> str:
    interfaces = objects_at(instance, "status", "networkInterfaces")
    return text_at(interfaces[0], "assignments", "networkIP") if interfaces else ""


def containers_of(pod: JsonObject) -> list[str]:
    statuses = objects_at(pod, "status", "containerStatuses")
    return [text_at(one, "containerID") for one in statuses]


async def answer_of(world: World, plane: Plane, name: str) -> str:
    """What the Instance answers at the address that its user reads."""
    address = address_of(await plane.get(INSTANCE, name))
    assert address, f"{name} has no address"
    answer = await world.pods.ask(address)
    assert answer, f"{name} does not answer at {address}"
    return answer


async def expect_reason(plane: Plane, name: str, reason: str) -> str:
    """The message of `Available` with this reason."""
    shown = condition_of(await plane.get(INSTANCE, name), "Available")
    assert shown.reason == reason, (shown.reason, shown.message)
    return shown.message


def expect_no_trace_of_kopf(cell: Plane) -> None:
    """PP-06: kopf stores nothing on an Instance but its finalizer, which has our name."""
    for version in cell.versions(INSTANCE):
        stored = [annotations_of(version.object), object_at(version.object, "status")]
        assert "kopf" not in json.dumps(stored), name_of(version.object)


async def expect_pods_of_instances(cell: Plane) -> None:
    """Pods and Instances are one to one, by UID."""
    pods = await cell.list(POD)
    owners = sorted(text_at(one, "metadata", "annotations", labels.INSTANCE_UID) for one in pods)
    assert owners == sorted(uid_of(one) for one in await cell.list(INSTANCE))


@pytest.mark.spec("E-P01", "PP-05", "PP-06", "PP-10", "PP-30")
@scenario(BOTH)
async def test_containers_answer_in_two_cities_and_a_deletion_leaves_none(world: World) -> None:
    project = world.project
    await project.create(a_workload("web", a_placement("p", *(one.city for one in CITIES))))
    names = {one: f"web-p-{one.city.lower()}-0" for one in CITIES}
    cells = {one: await world.cell_of(one, project) for one in CITIES}

    async def answers() -> None:
        for name in names.values():
            assert condition_of(await project.get(INSTANCE, name), "Ready").status == "True", name
            assert f"hostname={name}" in await answer_of(world, project, name)

    await world.eventually(answers, SOON)
    containers: list[tuple[Cell, str]] = []
    for one, cell in cells.items():
        await expect_pods_of_instances(cell)
        expect_no_trace_of_kopf(cell)
        pod = await cell.get(POD, names[one])
        containers += [(one, container) for container in containers_of(pod)]
    assert all(world.pods.count_processes(one.name, container) for one, container in containers)

    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        for cell in cells.values():
            assert not await cell.names(POD)
            assert not await cell.names(INSTANCE)

    await world.eventually(is_gone, SOON)
    assert not any(world.pods.count_processes(one.name, container) for one, container in containers)
    for cell in cells.values():
        expect_no_trace_of_kopf(cell)


@pytest.mark.spec("E-P02", "PP-16")
@scenario(QUOTA)
async def test_a_wrong_image_is_reported_and_the_right_one_runs(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD, template=a_template("image-unavailable")))

    async def is_reported() -> str:
        return await expect_reason(project, FIRST, "ImageUnavailable")

    message = await world.eventually(is_reported, SOON)
    assert message.startswith('Image "')
    assert "could not be pulled" in message
    wrong = uid_of(await cell.get(INSTANCE, FIRST))
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template("ok")}})

    async def answers() -> None:
        assert condition_of(await project.get(INSTANCE, FIRST), "Ready").status == "True"
        assert "BEHAVIOUR=ok" in await answer_of(world, project, FIRST)

    await world.eventually(answers, SOON)
    assert uid_of(await cell.get(INSTANCE, FIRST)) != wrong
    await expect_pods_of_instances(cell)
    expect_no_trace_of_kopf(cell)


# --- troubles of a container ----------------------------------------------------------------------


async def is_serving(world: World, plane: Plane, *names: str) -> None:
    for name in names:
        assert condition_of(await plane.get(INSTANCE, name), "Ready").status == "True", name
        await answer_of(world, plane, name)


@pytest.mark.spec("E-P03", "PP-20")
@scenario(SLOW)
async def test_a_roll_onto_a_crashing_image_takes_one_slot(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    names = [f"{WD}-{ordinal}" for ordinal in range(3)]
    await project.create(a_bare_deployment(WD, replicas=3))
    await world.eventually(lambda: is_serving(world, project, *names), LATER)
    before = {name: uid_of(await cell.get(INSTANCE, name)) for name in names}
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template("crash")}})

    async def is_crashing() -> str:
        return await expect_reason(project, names[2], "InstanceCrashing")

    message = await world.eventually(is_crashing, SOON)
    assert message == 'Container "web" ends again and again (exit code 1)'

    async def rest_serves() -> None:
        for name in names[:2]:
            assert uid_of(await cell.get(INSTANCE, name)) == before[name]
        await is_serving(world, project, *names[:2])

    await world.stays(rest_serves, within(20))
    # The crashing Instance was never Available.
    crashed = uid_of(await cell.get(INSTANCE, names[2]))
    for version in cell.versions(INSTANCE, names[2]):
        if uid_of(version.object) == crashed:
            assert condition_of(version.object, "Available").status != "True"


@pytest.mark.spec("E-P04", "PP-17", "PP-19")
@scenario(SLOW)
async def test_every_trouble_of_a_container_has_its_reason(world: World) -> None:
    project = world.project
    expected = {
        "oom": ("InstanceCrashing", 'Container "web" runs out of memory (64Mi)'),
        "config-error": (
            "ConfigurationError",
            f'Container "web" could not be started: {ROOT_IMAGE}',
        ),
    }
    for tag in expected:
        await project.create(a_bare_deployment(f"wd-{tag}", template=a_template(tag)))
    for tag, (reason, message) in expected.items():

        async def is_reported(name: str = f"wd-{tag}-0", reason: str = reason) -> str:
            return await expect_reason(project, name, reason)

        assert await world.eventually(is_reported, SOON) == message


MISSING = "password"


def in_environment(template: JsonObject) -> None:
    (container,) = objects_at(template, "spec", "runtime", "sandbox", "containers")
    reference: JsonObject = {"secretKeyRef": {"name": MISSING, "key": "word"}}
    container["env"] = [{"name": "WORD", "valueFrom": reference}]


def in_volume(template: JsonObject) -> None:
    (container,) = objects_at(template, "spec", "runtime", "sandbox", "containers")
    container["volumeAttachments"] = [{"name": "words", "mountPath": "/words"}]
    object_at(template, "spec")["volumes"] = [{"name": "words", "secret": {"secretName": MISSING}}]


async def expect_cure(world: World, reference: Callable[[JsonObject], None], told: str) -> None:
    """The Instance names what is missing, and runs as it is when that is made."""
    project, cell = world.project, await world.cell_of(DFW, world.project)
    template = a_template("ok")
    reference(template)
    await project.create(a_bare_deployment(WD, template=template))

    async def is_reported() -> str:
        return await expect_reason(project, FIRST, "ConfigurationError")

    assert await world.eventually(is_reported, SOON) == told
    before = uid_of(await cell.get(INSTANCE, FIRST))
    await cell.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": MISSING},
            "stringData": {"word": "open"},
        }
    )
    await world.eventually(lambda: is_serving(world, project, FIRST), LATER)
    assert uid_of(await cell.get(INSTANCE, FIRST)) == before


@pytest.mark.spec("E-P04", "PP-17")
@scenario(SLOW)
async def test_a_missing_secret_is_named_and_cures_the_same_instance(world: World) -> None:
    told = f'Container "web" could not be started: Secret "{MISSING}" not found'
    await expect_cure(world, in_environment, told)
    assert "WORD=open" in await answer_of(world, world.project, FIRST)


@pytest.mark.spec("E-P04", "PP-18")
@scenario(SLOW)
async def test_a_secret_missing_in_a_volume_is_named_and_cures_the_same_instance(
    world: World,
) -> None:
    """kubelet has it in an Event only, and tries the mount again ever later."""
    await expect_cure(world, in_volume, f'Volume "words": Secret "{MISSING}" not found')


def a_disk_template() -> JsonObject:
    template = a_template("ok")
    (container,) = objects_at(template, "spec", "runtime", "sandbox", "containers")
    container["volumeAttachments"] = [{"name": "data", "mountPath": "/data"}]
    disk: JsonObject = {
        "type": "pd-standard",
        "resources": {"requests": {"storage": "10Gi"}},
        "populator": {"filesystem": {"type": "ext4"}},
    }
    object_at(template, "spec")["volumes"] = [
        {"name": "data", "disk": {"template": {"spec": disk}}}
    ]
    return template


@pytest.mark.spec("PP-03")
@scenario(SLOW)
async def test_what_a_cell_cannot_run_is_reported_up_to_the_workload(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_workload("web", template=a_disk_template()))
    name, told = "web-default-dfw-0", 'Volume "data" is a disk; this cell has no disks'

    async def is_reported() -> None:
        assert await expect_reason(project, name, "ConfigurationError") == told
        ready = condition_of(await project.get(WORKLOAD, "web"), "Ready")
        assert ready.status_and_reason == ("False", "ConfigurationError")

    await world.eventually(is_reported, SOON)
    assert not await cell.names(POD)
    refused = await cell.get(INSTANCE, name)
    assert labels.POD_PROVIDER_FINALIZER not in finalizers_of(refused)
    corrected = a_template("ok")
    object_at(corrected, "spec")["volumes"] = None
    await project.patch(WORKLOAD, "web", {"spec": {"template": corrected}})
    await world.eventually(lambda: is_serving(world, project, name), SOON)


@pytest.mark.spec("E-P05", "PP-20")
@scenario(SLOW)
async def test_an_image_that_flaps_is_available_between_its_ends(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD, template=a_template("flap")))

    async def is_crashing() -> str:
        return await expect_reason(cell, FIRST, "InstanceCrashing")

    await world.eventually(is_crashing, LATER)
    shown = [condition_of(one.object, "Available").reason for one in cell.versions(INSTANCE, FIRST)]
    assert shown.index("Available") < shown.index("InstanceCrashing")

    async def is_available() -> str:
        return await expect_reason(cell, FIRST, "Available")

    await world.eventually(is_available, LATER)
    shown = [condition_of(one.object, "Available").reason for one in cell.versions(INSTANCE, FIRST)]
    assert "Starting" in shown[shown.index("InstanceCrashing") :]


# --- Pods that go ---------------------------------------------------------------------------------


class Lives:
    """One Instance with what must stay through the losses of its Pods."""

    def __init__(self, world: World, cell: Plane, instance: str, claims: list[str]) -> None:
        self._world = world
        self._cell = cell
        self._instance = instance
        self._claims = claims

    @classmethod
    async def start(cls, world: World) -> Lives:
        project, cell = world.project, await world.cell_of(DFW, world.project)
        await project.create(a_bare_deployment(WD))
        await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
        claims = sorted(uid_of(one) for one in await project.list(CLAIM))
        return cls(world, cell, uid_of(await cell.get(INSTANCE, FIRST)), claims)

    async def expect_replaced(self, pod: JsonObject) -> JsonObject:
        """Another Pod serves for the same Instance with the same claim."""

        async def is_replaced() -> None:
            assert uid_of(await self._cell.get(POD, FIRST)) != uid_of(pod)
            await is_serving(self._world, self._world.project, FIRST)

        await self._world.eventually(is_replaced, LATER)
        await self.expect_kept()
        return await self._cell.get(POD, FIRST)

    async def expect_kept(self) -> None:
        assert uid_of(await self._cell.get(INSTANCE, FIRST)) == self._instance
        claims = sorted(uid_of(one) for one in await self._world.project.list(CLAIM))
        assert claims == self._claims
        await expect_pods_of_instances(self._cell)


@pytest.mark.spec("E-P07", "PP-22", "PP-23")
@scenario(SLOW)
async def test_a_deleted_an_evicted_and_a_failed_pod_are_made_again(world: World) -> None:
    lives = await Lives.start(world)
    cell = await world.cell_of(DFW, world.project)
    pod = await cell.get(POD, FIRST)
    await cell.delete(POD, FIRST)
    pod = await lives.expect_replaced(pod)

    eviction: JsonObject = {"apiVersion": "policy/v1", "kind": "Eviction"}
    await cell.post(POD, FIRST, "eviction", {**eviction, "metadata": {"name": FIRST}})
    pod = await lives.expect_replaced(pod)

    # As kubelet ends a Pod whose node runs short of memory.
    message = "The node was low on resource: memory."
    failed: JsonObject = {"phase": "Failed", "reason": "Evicted", "message": message}
    await cell.set_status(POD, FIRST, failed)
    await lives.expect_replaced(pod)
    shown = [condition_of(one.object, "Available") for one in cell.versions(INSTANCE, FIRST)]
    told = "Instance was evicted: its node ran short of memory"
    assert ("Failed", told) in [(one.reason, one.message) for one in shown]


@pytest.mark.spec("E-P07", "PP-22")
@scenario(SLOW)
async def test_a_killed_container_runs_again_in_its_pod(world: World) -> None:
    lives = await Lives.start(world)
    cell = await world.cell_of(DFW, world.project)
    pod = await cell.get(POD, FIRST)
    (container,) = containers_of(pod)
    await world.pods.kill_container(DFW.name, container)

    async def is_restarted() -> None:
        assert containers_of(await cell.get(POD, FIRST)) != [container]
        await is_serving(world, world.project, FIRST)

    await world.eventually(is_restarted, SOON)
    assert uid_of(await cell.get(POD, FIRST)) == uid_of(pod)
    await lives.expect_kept()


# --- nodes ----------------------------------------------------------------------------------------


@pytest.mark.spec("E-P06", "PP-24")
@scenario(HURT)
async def test_a_node_that_loses_power_comes_back_with_its_instances(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    pod = uid_of(await cell.get(POD, FIRST))
    (container,) = containers_of(await cell.get(POD, FIRST))
    await world.pods.reboot_node(DFW.name)

    async def is_restarted() -> None:
        assert containers_of(await cell.get(POD, FIRST)) != [container]
        await is_serving(world, project, FIRST)

    await world.eventually(is_restarted, LATER)
    assert uid_of(await cell.get(POD, FIRST)) == pod
    for operator in (DFW.name, name_provider(DFW.name)):
        await world.pods.await_ready(operator)


@pytest.mark.spec("E-P06", "PP-25")
@scenario(HURT)
async def test_a_node_silent_for_two_minutes_is_reported_and_its_instances_run_on(
    world: World,
) -> None:
    """Its kubelet is stopped; what runs there goes on, the provider among it."""
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    pod = uid_of(await cell.get(POD, FIRST))
    began = world.backend.now()
    await world.pods.silence_node(DFW.name)
    try:

        async def is_reported() -> str:
            return await expect_reason(project, FIRST, "NodeUnreachable")

        message = await world.eventually(is_reported, within(120))
        assert message == "The node of the instance does not answer"
        assert condition_of(await cell.get(INSTANCE, FIRST), "Available").status == "Unknown"
        left = timedelta(minutes=2) - (world.backend.now() - began)
        await world.stays(lambda: answer_of(world, project, FIRST), Limit(left, left))
        assert uid_of(await cell.get(POD, FIRST)) == pod
    finally:
        await world.pods.wake_node(DFW.name)
    await world.eventually(lambda: is_serving(world, project, FIRST), LATER)
    assert uid_of(await cell.get(POD, FIRST)) == pod
    for operator in (DFW.name, name_provider(DFW.name)):
        await world.pods.await_ready(operator)


# --- the provider itself --------------------------------------------------------------------------


async def expect_a_roll_and_a_delete(world: World, disturb: Callable[[], Awaitable[None]]) -> None:
    """Both end although the provider is disturbed in the middle of each."""
    project, cell = world.project, await world.cell_of(DFW, world.project)
    names = [f"{WD}-{ordinal}" for ordinal in range(2)]
    await project.create(a_bare_deployment(WD, replicas=2))
    await world.eventually(lambda: is_serving(world, project, *names), LATER)
    await project.patch(DEPLOYMENT, WD, {"spec": {"template": a_template("2.0")}})
    await disturb()

    async def is_rolled() -> None:
        await is_serving(world, project, *names)
        for name in names:
            (container,) = objects_at(await cell.get(POD, name), "spec", "containers")
            assert text_at(container, "image").endswith(":2.0")

    await world.eventually(is_rolled, LATER)
    await expect_pods_of_instances(cell)
    # Each slot was replaced exactly once.
    assert len({uid_of(one.object) for one in cell.versions(INSTANCE)}) == 2 * len(names)
    await project.delete(DEPLOYMENT, WD)
    await disturb()

    async def is_gone() -> None:
        assert not await cell.names(POD)
        assert not await cell.names(INSTANCE)

    await world.eventually(is_gone, LATER)
    expect_no_trace_of_kopf(cell)


@pytest.mark.spec("E-P08", "PP-05")
@scenario(HURT)
async def test_a_provider_killed_during_a_roll_and_a_delete_finishes_both(world: World) -> None:
    provider = Operator(world.backend, name_provider(DFW.name))

    async def kill() -> None:
        await provider.kill()
        await provider.start()

    await expect_a_roll_and_a_delete(world, kill)


@pytest.mark.spec("E-P08", "PP-05")
@scenario(SLOW_ALONE)
async def test_a_provider_rolled_during_a_roll_and_a_delete_finishes_both(world: World) -> None:
    provider = name_provider(DFW.name)

    async def roll() -> None:
        await world.pods.begin_roll(provider)

    await expect_a_roll_and_a_delete(world, roll)
    await world.pods.await_ready(provider)


@pytest.mark.spec("E-P08", "PP-28")
@scenario(Needs(has_quota=True, is_alone=True, is_slow=True, replicas=2, expects_errors=True))
async def test_a_frozen_leader_is_replaced_and_does_no_harm_when_it_thaws(world: World) -> None:
    provider = name_provider(DFW.name)

    async def freeze() -> None:
        await world.pods.await_ready(provider)
        leader = await world.pods.leader(provider)
        await world.backend.freeze_leader(provider)

        async def is_replaced() -> None:
            assert await world.pods.leader(provider) != leader

        try:
            await world.eventually(is_replaced, within(20))
        finally:
            await world.backend.thaw(provider)

    await expect_a_roll_and_a_delete(world, freeze)
    await world.pods.await_ready(provider)


@pytest.mark.spec("E-P09", "PP-26")
@scenario(HURT)
async def test_while_the_api_of_a_cell_is_away_nothing_is_concluded(world: World) -> None:
    """For 90 s, for its operator and its provider: both use the Service `kubernetes`."""
    project, cell = world.project, await world.cell_of(DFW, world.project)
    names = [f"{WD}-{ordinal}" for ordinal in range(2)]
    await project.create(a_bare_deployment(WD, replicas=2))
    await world.eventually(lambda: is_serving(world, project, *names), LATER)
    await world.settle()
    before = {name: await cell.get(INSTANCE, name) for name in names}
    operator = world.operator_of(DFW)
    await operator.cut(DFW.name)
    try:
        await cell.delete(INSTANCE, names[1])

        async def serves() -> None:
            assert await answer_of(world, cell, names[0])

        await world.stays(serves, within(90))
        for name, instance in before.items():
            shown = object_at(await cell.get(INSTANCE, name), "status")
            assert shown == object_at(instance, "status"), name
    finally:
        await operator.heal(DFW.name)

    async def is_torn_down() -> None:
        existing = await cell.find(INSTANCE, names[1])
        assert existing is None or uid_of(existing) != uid_of(before[names[1]])

    await world.eventually(is_torn_down, within(30))
    await world.eventually(lambda: is_serving(world, project, *names), LATER)
    assert uid_of(await cell.get(INSTANCE, names[0])) == uid_of(before[names[0]])
    for one in (DFW.name, name_provider(DFW.name)):
        await world.pods.await_ready(one)


# --- room -----------------------------------------------------------------------------------------


@pytest.mark.spec("E-P10", "PP-30")
@scenario(Needs(has_quota=True, has_own_projects=True, is_alone=True, is_slow=True))
async def test_a_deployment_scales_to_twenty_containers_and_back(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await world.grant(20)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    first = uid_of(await cell.get(POD, FIRST))

    async def are_ready(count: int) -> None:
        names = sorted(f"{WD}-{ordinal}" for ordinal in range(count))
        assert await cell.names(POD) == names
        assert await project.names(INSTANCE) == names
        for instance in await project.list(INSTANCE):
            assert condition_of(instance, "Ready").status == "True", name_of(instance)

    for count in (20, 1):
        change: JsonObject = {"spec": {"scaleSettings": {"minReplicas": count}}}
        await project.patch(DEPLOYMENT, WD, change)
        await world.eventually(partial(are_ready, count), within(300, real=420))
        await expect_pods_of_instances(cell)
    await is_serving(world, project, FIRST)
    assert uid_of(await cell.get(POD, FIRST)) == first


async def expect_no_room(world: World, told: str) -> str:
    """The UID of the first Instance, which waits for room."""
    project, cell = world.project, await world.cell_of(DFW, world.project)

    async def is_reported() -> None:
        assert await expect_reason(project, FIRST, "Provisioning") == told

    await world.eventually(is_reported, SOON)
    return uid_of(await cell.get(INSTANCE, FIRST))


@pytest.mark.spec("E-P10", "PP-21")
@scenario(SLOW_ALONE)
async def test_an_instance_without_room_waits_for_it(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    node = world.cell(DFW)
    await node.patch(NODE, DFW.name, {"spec": {"unschedulable": True}})
    try:
        await project.create(a_bare_deployment(WD))
        before = await expect_no_room(world, "No node of this cell has room for the instance")
    finally:
        await node.patch(NODE, DFW.name, {"spec": {"unschedulable": None}})
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    assert uid_of(await cell.get(INSTANCE, FIRST)) == before


@pytest.mark.spec("E-P10", "PP-21")
@scenario(SLOW)
async def test_an_instance_waits_for_the_resource_quota_of_its_namespace(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    quota: JsonObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    await cell.create(quota)

    async def is_counted() -> None:
        made = await cell.get(RESOURCE_QUOTA, "none")
        assert text_at(made, "status", "used", "pods") == "1"

    await world.eventually(is_counted)
    await cell.delete(POD, FIRST)
    told = "No room in this cell: a resource quota is used up"
    before = await expect_no_room(world, told)
    await cell.delete(RESOURCE_QUOTA, "none")
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    assert uid_of(await cell.get(INSTANCE, FIRST)) == before


# --- rights ---------------------------------------------------------------------------------------


def a_copy(pod: JsonObject, **spec: JsonValue) -> JsonObject:
    """A Pod as it was created, before kubelet and scheduler, with other members of its spec."""
    metadata = object_at(pod, "metadata")
    kept = {name: metadata[name] for name in ("name", "labels", "annotations", "ownerReferences")}
    own = {key: value for key, value in object_at(pod, "spec").items() if key != "nodeName"}
    return deepcopy({"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": {**own, **spec}})


def a_copy_with(pod: JsonObject, **members: JsonValue) -> JsonObject:
    """The same with other members of its container."""
    (container,) = objects_at(pod, "spec", "containers")
    return a_copy(pod, containers=[{**container, **members}])


def forbidden_pods(pod: JsonObject) -> dict[str, JsonObject]:
    """One Pod per clause of the policy that a real server can tell from the others."""
    unlabelled, orphaned, renamed = (a_copy(pod) for _ in range(3))
    object_at(unlabelled, "metadata")["labels"] = {}
    object_at(orphaned, "metadata")["ownerReferences"] = []
    object_at(renamed, "metadata")["name"] = f"{FIRST}-x"
    confined = object_at(objects_at(pod, "spec", "containers")[0], "securityContext")
    return {
        "label": unlabelled,
        "controller": orphaned,
        "name": renamed,
        "host network": a_copy(pod, hostNetwork=True),
        "host processes": a_copy(pod, hostPID=True),
        "node": a_copy(pod, nodeName=DFW.name),
        "token": a_copy(pod, automountServiceAccountToken=True),
        "host path": a_copy(pod, volumes=[{"name": "host", "hostPath": {"path": "/"}}]),
        "seccomp": a_copy(pod, securityContext={"runAsNonRoot": True}),
        "privilege": a_copy_with(
            pod,
            securityContext={**confined, "privileged": True, "allowPrivilegeEscalation": True},
        ),
        "capability": a_copy_with(
            pod, securityContext={**confined, "capabilities": {"add": ["NET_ADMIN"]}}
        ),
        "host port": a_copy_with(pod, ports=[{"containerPort": 8080, "hostPort": 8080}]),
        "limits": a_copy_with(pod, resources={}),
    }


@pytest.mark.spec("E-P12", "PP-32")
@scenario(SLOW)
async def test_the_token_of_the_provider_makes_no_other_pod(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    running = await cell.get(POD, FIRST)
    provider = cell.as_user(PROVIDER_USER)

    # The Pod itself passes the policy; its name is taken.
    with pytest.raises(RefusedError) as refused:
        await provider.create(a_copy(running))
    assert refused.value.status == 409, refused.value
    for clause, document in forbidden_pods(running).items():
        with pytest.raises(RefusedError) as refused:
            await provider.create(document)
        assert refused.value.status in {403, 422}, (clause, refused.value)
        assert POD_POLICY in refused.value.message, (clause, refused.value)

    system = provider.in_namespace("compute-system")
    with pytest.raises(RefusedError) as refused:
        await system.create(a_copy(running))
    assert POD_POLICY in refused.value.message, refused.value
    (operator,) = world.pods.pod_names(DFW.name)
    with pytest.raises(RefusedError) as refused:
        await system.as_user(PROVIDER_USER).delete(POD, operator)
    assert POD_POLICY in refused.value.message, refused.value
    for kind in (SECRET, NODE):
        with pytest.raises(RefusedError) as refused:
            await provider.list(kind)
        assert refused.value.status == 403
    with pytest.raises(RefusedError):
        await provider.patch(POD, FIRST, {"metadata": {"labels": {"a": "b"}}})


@pytest.mark.spec("E-P12", "PP-01")
@scenario(SLOW)
async def test_pods_of_instances_are_admitted_where_restricted_is_enforced(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    pod = a_copy(await cell.get(POD, FIRST))
    object_at(pod, "metadata")["ownerReferences"] = []
    namespace = a_namespace("restricted-pods")
    enforced: JsonObject = {"pod-security.kubernetes.io/enforce": "restricted"}
    object_at(namespace, "metadata")["labels"] = enforced
    plane = world.cell(DFW)
    await plane.create(namespace)
    try:
        there = plane.in_namespace("restricted-pods")
        # The namespace gets its service account a moment later.
        await world.eventually(lambda: there.create(pod, dry_run=True))
        with pytest.raises(RefusedError) as refused:
            await there.create(a_copy(pod, securityContext={}), dry_run=True)
        assert "PodSecurity" in refused.value.message
    finally:
        await plane.delete(NAMESPACE, "restricted-pods")


# --- one cluster ----------------------------------------------------------------------------------


@pytest.mark.spec("E-P11", "PP-34")
@scenario(Needs(cells=(SINGLE,), has_networking=False, is_single=True, is_alone=True, is_slow=True))
async def test_on_one_cluster_a_container_answers_within_a_minute(world: World) -> None:
    """`deploy/single-cluster`, as docs/howto/install.md applies it, and the Workload after it."""
    project = world.project
    await project.create(a_workload("web"))
    name = "web-default-dfw-0"

    async def answers() -> None:
        assert f"hostname={name}" in await answer_of(world, project, name)

    await world.eventually(answers, within(60))
    (container,) = containers_of(await project.get(POD, name))
    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        assert not await project.names(POD)
        assert not world.pods.count_processes(SINGLE.name, container)

    await world.eventually(is_gone, SOON)


# --- rest -----------------------------------------------------------------------------------------


@pytest.mark.spec("PP-07")
@scenario(SLOW)
async def test_a_settled_instance_is_not_written_to_for_ten_minutes(world: World) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await project.create(a_bare_deployment(WD))
    await world.eventually(lambda: is_serving(world, project, FIRST), SOON)
    await world.sleep(20)
    instance, pod = await cell.get(INSTANCE, FIRST), uid_of(await cell.get(POD, FIRST))
    await world.sleep(600, pods=600)
    assert version_of(await cell.get(INSTANCE, FIRST)) == version_of(instance)
    assert uid_of(await cell.get(POD, FIRST)) == pod


# --- the whole story ------------------------------------------------------------------------------


class Client:
    """Asks both cities every 100 ms, at the addresses that the project shows, and notes the ticks
    in which a city did not answer.
    """

    def __init__(self, world: World, names: dict[Cell, list[str]]) -> None:
        self._world = world
        self._names = names
        self.ticks = 0
        self.silent: list[str] = []

    async def run(self) -> None:
        while True:
            await asyncio.gather(self._tick(), asyncio.sleep(0.1))

    async def _tick(self) -> None:
        self.ticks += 1
        shown = {name_of(one): address_of(one) for one in await self._world.project.list(INSTANCE)}
        await asyncio.gather(
            *(
                self._ask(cell, [shown[name] for name in names if shown.get(name)])
                for cell, names in self._names.items()
            )
        )

    async def _ask(self, cell: Cell, addresses: list[str]) -> None:
        """One answer is enough; an address that does not answer holds up no tick."""
        asked = [asyncio.create_task(self._world.pods.ask(one)) for one in addresses]
        try:
            for answer in asyncio.as_completed(asked):
                if await answer:
                    return
        finally:
            for one in asked:
                one.cancel()
        self.silent.append(f"{cell.city} at tick {self.ticks} ({addresses})")


def find_fewest_ready(versions: Sequence[ObjectVersion], names: Collection[str]) -> int:
    """The fewest Instances that were Ready at once, from when all were."""
    ready: set[str] = set()
    fewest = len(names)
    is_counted = False
    for version in versions:
        name = name_of(version.object)
        is_ready = not version.is_gone and condition_of(version.object, "Ready").status == "True"
        ready = ready | {name} if is_ready else ready - {name}
        is_counted = is_counted or ready >= set(names)
        fewest = min(fewest, len(ready)) if is_counted else fewest
    return fewest


def is_refused_by_kubelet(pod: JsonObject) -> bool:
    waiting = [
        text_at(one, "state", "waiting", "reason")
        for one in objects_at(pod, "status", "containerStatuses")
    ]
    return bool({"ErrImagePull", "ImagePullBackOff"} & {*waiting})


async def expect_quick_report(world: World, cell: Plane, name: str) -> None:
    """Within 10 s of kubelet's word the missing image is in the project."""

    async def has_kubelets_word() -> None:
        assert is_refused_by_kubelet(await cell.get(POD, name))

    await world.eventually(has_kubelets_word, SOON)
    await world.eventually(
        lambda: expect_reason(world.project, name, "ImageUnavailable"), within(10)
    )


@asynccontextmanager
async def asked_all_the_time(world: World, names: dict[Cell, list[str]]) -> AsyncGenerator[None]:
    """A client asks throughout, and each city has answered it each time."""
    client = Client(world, names)
    asking = asyncio.create_task(client.run())
    try:
        yield
    finally:
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
    assert client.ticks > 20
    assert not client.silent


@pytest.mark.spec("PP-16", "PP-30")
@scenario(Needs(has_quota=True, cells=CITIES, is_slow=True))
async def test_a_workload_lives_its_life_as_containers(world: World) -> None:
    project = world.project
    placement = a_placement("p", *(one.city for one in CITIES), replicas=2)
    await project.create(a_workload("web", placement, template=a_template("image-unavailable")))
    names = {one: [f"web-p-{one.city.lower()}-{n}" for n in range(2)] for one in CITIES}
    every = [name for listed in names.values() for name in listed]
    cells = {one: await world.cell_of(one, project) for one in CITIES}

    await asyncio.gather(*(expect_quick_report(world, cells[one], names[one][0]) for one in CITIES))

    async def is_reported() -> None:
        ready = condition_of(await project.get(WORKLOAD, "web"), "Ready")
        assert ready.status_and_reason == ("False", "ImageUnavailable")

    await world.eventually(is_reported, SOON)
    await project.patch(WORKLOAD, "web", {"spec": {"template": a_template("1.0")}})
    await world.eventually(lambda: is_serving(world, project, *every), LATER)
    before = {name: address_of(await project.get(INSTANCE, name)) for name in every}

    async def is_restarted() -> None:
        await is_serving(world, project, *every)
        for name in every:
            assert address_of(await project.get(INSTANCE, name)) != before[name], name

    async with asked_all_the_time(world, names):
        restarted = a_template("1.0", annotations={labels.RESTARTED_AT: "now"})
        await project.patch(WORKLOAD, "web", {"spec": {"template": restarted}})
        await world.eventually(is_restarted, LATER)
    containers: list[tuple[Cell, str]] = []
    for one, cell in cells.items():
        assert find_fewest_ready(cell.versions(INSTANCE), names[one]) == 1  # one at a time
        pods = await cell.list(POD)
        containers += [(one, container) for pod in pods for container in containers_of(pod)]
    assert len(containers) == len(every)

    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        for cell in cells.values():
            assert not await cell.names(POD)

    await world.eventually(is_gone, LATER)
    assert not any(world.pods.count_processes(one.name, container) for one, container in containers)
    for cell in cells.values():
        expect_no_trace_of_kopf(cell)


# --- values of the project ------------------------------------------------------------------------

CITY_DATA: Final = f"web-p-{DFW.city.lower()}-0"


def a_naming_workload() -> JsonObject:
    """One container with a value of a ConfigMap and one of a Secret in its environment."""
    template = a_template("ok")
    (container,) = objects_at(template, "spec", "runtime", "sandbox", "containers")
    container["env"] = [
        {
            "name": "GREETING",
            "valueFrom": {"configMapKeyRef": {"name": "greetings", "key": "word"}},
        },
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "passwords", "key": "word"}}},
    ]
    workload = a_workload("web", a_placement("p", DFW.city))
    object_at(workload, "spec")["template"] = template
    return workload


def data_of(kind: str, name: str, member: str, word: str) -> JsonObject:
    metadata: JsonObject = {"name": name}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, member: {"word": word}}


@pytest.mark.spec("RD-02", "RD-04", "RD-08")
@scenario(replace(SLOW_ALONE, reads_data=True))
async def test_a_container_serves_values_of_a_config_map_and_a_secret_of_its_project(
    world: World,
) -> None:
    project, cell = world.project, await world.cell_of(DFW, world.project)
    await deliver_data(world)
    await project.create(data_of("ConfigMap", "greetings", "data", "hello"))
    await project.create(data_of("Secret", "passwords", "stringData", "sesame-one"))
    await project.create(a_naming_workload())

    async def serves(*words: str) -> None:
        assert condition_of(await project.get(INSTANCE, CITY_DATA), "Ready").status == "True"
        answer = await answer_of(world, project, CITY_DATA)
        assert all(word in answer for word in words), answer

    await world.eventually(partial(serves, "GREETING=hello", "WORD=sesame-one"), LATER)
    gates = [gates_of(one.object) for one in cell.versions(INSTANCE, CITY_DATA)]
    assert "ReferencedData" in gates[0]
    # Neither the Pod nor the Instance has a value: both name the objects.
    shown = [await cell.get(POD, CITY_DATA), await project.get(INSTANCE, CITY_DATA)]
    assert "sesame-one" not in json.dumps(shown)
    await project.patch(CONFIG_MAP, "greetings", {"data": {"word": "good-day"}})
    await project.patch(SECRET, "passwords", {"stringData": {"word": "sesame-two"}})
    restart: JsonObject = {"metadata": {"annotations": {labels.RESTARTED_AT: "now"}}}
    await project.patch(WORKLOAD, "web", {"spec": {"template": restart}})
    await world.eventually(partial(serves, "GREETING=good-day", "WORD=sesame-two"), LATER)
    await project.delete(WORKLOAD, "web")

    async def is_gone() -> None:
        await cell.expect_gone(CONFIG_MAP, "greetings")
        await cell.expect_gone(SECRET, "passwords")

    await world.eventually(is_gone, LATER)
