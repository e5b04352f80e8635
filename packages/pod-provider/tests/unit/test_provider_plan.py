from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from provider_builders.documents import (
    NOW,
    OPTIONS,
    a_pod,
    a_running_pod,
    a_spec,
    an_instance,
    conditions_of,
    observed,
    running,
    waiting,
)

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import object_at, objects_at
from compute_pod_provider.options import PodOptions
from compute_pod_provider.plan import (
    Loss,
    Memory,
    Observed,
    Plan,
    Post,
    PostResult,
    is_ours,
    may_create,
    needs_finalizer,
    plan,
)
from compute_pod_provider.pod_facts import NO_POD, NoPod, ObservedPod
from compute_pod_provider.render.refusal import RefusalKind
from compute_pod_provider.verdict import Run, State

SECOND = timedelta(seconds=1)
SETTLED = Memory(
    ungated_at=NOW - timedelta(minutes=1),
    pod_uid="uid-of-pod",
    runs={"main": Run(0, NOW - timedelta(minutes=1))},
)


def planned(
    instance: JsonObject,
    pod: ObservedPod | NoPod = NO_POD,
    memory: Memory | None = None,
    *,
    now: datetime = NOW,
    options: PodOptions = OPTIONS,
) -> Plan:
    return plan(Observed(observed(instance), pod, now), memory or Memory(), options)


def reasons_of(found: Plan) -> dict[str, tuple[str, str]]:
    if found.status is None:
        return {}
    status = found.status["status"]
    assert isinstance(status, dict)
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    return {
        str(one["type"]): (str(one["status"]), str(one["reason"]))
        for one in conditions
        if isinstance(one, dict)
    }


def settled(instance: JsonObject, pod: ObservedPod) -> JsonObject:
    """The Instance after the plan's status was written."""
    patch = planned(instance, pod, SETTLED).status
    assert patch is not None
    return instance | {"status": patch["status"]}


def does_nothing(found: Plan) -> bool:
    return not (found.creates_pod or found.deletes_pod or found.status or found.events)


def a_machine() -> JsonObject:
    spec = a_spec()
    spec["runtime"] = {
        "resources": {"instanceType": "datumcloud/d1-standard-2"},
        "virtualMachine": {"volumeAttachments": [{"name": "boot"}]},
    }
    return spec


# --- whom it looks after --------------------------------------------------------------------------


def test_scope_and_runtime_decide_what_is_ours() -> None:
    plain = observed(an_instance())
    assert is_ours(plain, OPTIONS)
    elsewhere = replace(plain, namespace="default")
    assert not is_ours(elsewhere, OPTIONS)
    everywhere = PodOptions(is_federated=False)
    assert is_ours(elsewhere, everywhere)
    assert not is_ours(replace(plain, namespace="kube-system"), everywhere)
    assert not is_ours(replace(plain, namespace="compute-system"), everywhere)
    machine = observed(an_instance(spec=a_machine(), finalizers=()))
    assert is_ours(machine, OPTIONS)
    assert not is_ours(machine, PodOptions(ignores_virtual_machines=True))


def test_the_finalizer_is_for_what_may_start_and_stays_where_it_is() -> None:
    assert needs_finalizer(observed(an_instance(finalizers=())), OPTIONS)
    assert not needs_finalizer(observed(an_instance(finalizers=(), gates=("Quota",))), OPTIONS)
    assert needs_finalizer(observed(an_instance(gates=("Quota",))), OPTIONS)
    assert not needs_finalizer(observed(an_instance(finalizers=(), spec=a_machine())), OPTIONS)
    suspended = an_instance(finalizers=(), status={"suspended": True})
    assert not needs_finalizer(observed(suspended), OPTIONS)
    assert not needs_finalizer(replace(observed(an_instance()), namespace="default"), OPTIONS)


def test_a_post_needs_every_permission() -> None:
    assert may_create(observed(an_instance()), OPTIONS)
    for forbidden in (
        an_instance(finalizers=()),
        an_instance(gates=("Quota",)),
        an_instance(status={"suspended": True}),
        an_instance(deleted=True),
    ):
        assert not may_create(observed(forbidden), OPTIONS)


def test_what_is_not_ours_or_deleting_is_left_alone() -> None:
    foreign = an_instance(spec=a_machine(), finalizers=())
    assert does_nothing(planned(foreign, options=PodOptions(ignores_virtual_machines=True)))
    assert does_nothing(planned(an_instance(deleted=True), a_running_pod()))


@pytest.mark.parametrize("finalizers", [(), ("pods.compute.datumapis.com/finalizer",)])
def test_behind_a_gate_nothing_is_done_with_or_without_a_pod(finalizers: tuple[str, ...]) -> None:
    gated = an_instance(gates=("Network", "Quota"), finalizers=finalizers)
    for pod in (NO_POD, a_running_pod()):
        assert does_nothing(planned(gated, pod))


def test_a_gate_list_of_another_type_is_a_gate() -> None:
    spec = a_spec(controller={"templateHash": "h", "schedulingGates": "Quota"})
    assert does_nothing(planned(an_instance(spec=spec)))


# --- starting -------------------------------------------------------------------------------------


def test_a_pod_is_made_once_the_finalizer_is_seen() -> None:
    assert does_nothing(planned(an_instance(finalizers=())))
    started = planned(an_instance())
    assert started.creates_pod
    assert started.status is None
    assert started.look_at == NOW + OPTIONS.provisioning_after


def test_a_slow_start_is_told_and_then_once_more_when_it_is_over() -> None:
    instance = an_instance()
    pod = a_pod(containerStatuses=[waiting("ContainerCreating")])
    young = planned(instance, pod, Memory(ungated_at=NOW - SECOND))
    assert young.status is None
    told = planned(instance, pod, Memory(ungated_at=NOW - OPTIONS.provisioning_after))
    assert reasons_of(told)["Available"] == ("Unknown", "Provisioning")
    assert told.status is not None
    after = instance | {"status": told.status["status"]}
    memory = Memory(ungated_at=NOW - 5 * SECOND, made_uid="uid-of-pod")
    starting = planned(after, a_running_pod(running(NOW)), memory)
    assert starting.status is None
    settles_at = NOW + OPTIONS.available_after
    assert starting.look_at == settles_at
    done = planned(after, a_running_pod(running(NOW)), starting.memory, now=settles_at)
    assert reasons_of(done)["Available"] == ("True", "Available")
    assert [event.reason for event in done.events] == ["InstanceAvailable"]


def test_a_settled_instance_needs_nothing() -> None:
    instance, pod = an_instance(), a_running_pod()
    after = settled(instance, pod)
    assert does_nothing(planned(after, pod, SETTLED))


def test_a_pod_that_waits_for_its_volume_has_its_events_read() -> None:
    pod = a_pod(age=timedelta(seconds=20), containerStatuses=[waiting("ContainerCreating")])
    found = planned(an_instance(), pod, replace(SETTLED, mount_failure=""))
    assert found.reads_mount_events
    assert found.look_at == NOW + timedelta(seconds=60)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.spec("PP-03")
def test_a_refused_instance_is_told_so_once_and_gets_no_pod() -> None:
    instance = an_instance(spec=a_machine(), finalizers=())
    found = planned(instance)
    refused = ("False", "ConfigurationError")
    assert reasons_of(found) == {"Available": refused, "Programmed": refused}
    assert not found.creates_pod
    assert [event.type for event in found.events] == ["Warning"]
    assert found.refused is RefusalKind.VIRTUAL_MACHINE
    assert found.status is not None
    assert does_nothing(planned(instance | {"status": found.status["status"]}))


def test_a_pod_runs_on_when_its_instance_is_edited_into_a_refusal() -> None:
    found = planned(an_instance(spec=a_machine()), a_running_pod(), SETTLED)
    assert reasons_of(found)["Available"] == ("True", "Available")


@pytest.mark.spec("PP-21")
@pytest.mark.parametrize(
    ("result", "available", "message", "again"),
    [
        (
            PostResult.TAKEN,
            ("Unknown", "Provisioning"),
            'A Pod named "web-dfw-0" belongs to somebody else; waiting for it to go',
            timedelta(seconds=15),
        ),
        (
            PostResult.QUOTA,
            ("Unknown", "Provisioning"),
            "No room in this cell: a resource quota is used up",
            timedelta(seconds=30),
        ),
        (
            PostResult.REFUSED,
            ("False", "ConfigurationError"),
            "The Pod was refused: Pod",
            timedelta(minutes=5),
        ),
    ],
)
def test_a_post_that_made_no_pod_is_told_and_repeated(
    result: PostResult, available: tuple[str, str], message: str, again: timedelta
) -> None:
    memory = Memory(ungated_at=NOW, post=Post(result, "Pod", NOW, 1))
    found = planned(an_instance(), memory=memory)
    assert reasons_of(found)["Available"] == available
    assert message in str(found.status)
    assert not found.creates_pod
    assert found.look_at == NOW + again
    assert planned(an_instance(), memory=memory, now=NOW + again).creates_pod
    assert planned(an_instance(generation=2), memory=memory).creates_pod


# --- losses ---------------------------------------------------------------------------------------


@pytest.mark.spec("PP-22")
def test_a_lost_pod_is_made_again_at_once_and_then_ever_later() -> None:
    memory, now = SETTLED, NOW
    waits: list[timedelta] = []
    for _ in range(8):
        lost = planned(an_instance(), NO_POD, memory, now=now)
        waits.append((lost.look_at or now) - now if not lost.creates_pod else timedelta())
        assert [event.reason for event in lost.events][:1] == ["PodReplaced"]
        memory = replace(lost.memory, pod_uid="next")
    seconds = [int(wait.total_seconds()) for wait in waits]
    assert seconds == [0, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.spec("PP-22")
@pytest.mark.parametrize(
    ("going", "loss"),
    [
        (a_pod(phase="Failed", reason="Evicted"), Loss.EVICTED),
        (a_pod(phase="Failed", reason="NodeLost"), Loss.FAILED),
        (replace(a_running_pod(), is_deleting=True), Loss.DELETED),
        (a_running_pod(), Loss.VANISHED),
    ],
)
def test_a_loss_has_its_cause(going: ObservedPod, loss: Loss) -> None:
    memory = planned(an_instance(), going, SETTLED).memory
    # The deletion of a Pod that ended is ours.
    memory = planned(an_instance(), replace(going, is_deleting=going.has_ended), memory).memory
    lost = planned(an_instance(), NO_POD, memory)
    assert lost.lost is loss
    assert planned(an_instance(), NO_POD, lost.memory).lost is None


@pytest.mark.spec("PP-22")
def test_losses_are_forgotten_after_ten_minutes_of_available() -> None:
    memory = replace(SETTLED, recreations=3, available_since=NOW - timedelta(minutes=10))
    assert planned(an_instance(), a_running_pod(), memory).memory.recreations == 0
    younger = replace(memory, available_since=NOW - timedelta(minutes=9))
    assert planned(an_instance(), a_running_pod(), younger).memory.recreations == 3
    trouble = a_running_pod(waiting("CrashLoopBackOff"))
    assert planned(an_instance(), trouble, memory).memory.available_since is None


@pytest.mark.spec("PP-22")
def test_a_failed_pod_is_told_and_deleted_and_a_vanished_one_is_no_longer_available() -> None:
    failed = planned(an_instance(), a_pod(phase="Failed", reason="NodeLost"), SETTLED)
    assert reasons_of(failed)["Available"] == ("False", "Failed")
    assert failed.deletes_pod == "uid-of-pod"
    going = replace(a_pod(phase="Failed"), is_deleting=True)
    assert not planned(an_instance(), going, SETTLED).deletes_pod

    after = settled(an_instance(), a_running_pod())
    vanished = planned(after, NO_POD, replace(SETTLED, recreations=1))
    assert not vanished.creates_pod
    assert reasons_of(vanished)["Available"] == ("Unknown", "Provisioning")
    # What a user was told of the loss stays while the next Pod waits for its time.
    again = planned(an_instance(), NO_POD, replace(vanished.memory))
    assert again.status is None


def test_a_terminating_pod_is_waited_for() -> None:
    found = planned(an_instance(), replace(a_running_pod(), is_deleting=True), SETTLED)
    assert not found.creates_pod
    assert not found.deletes_pod
    assert found.state is State.STOPPING


# --- suspension -----------------------------------------------------------------------------------


def merged(document: JsonObject, patch: JsonObject | None) -> JsonObject:
    """The Instance after a status patch, as the API server merges it."""
    assert patch is not None
    status = {**object_at(document, "status")}
    for key, value in object_at(patch, "status").items():
        known = status.get(key)
        status[key] = (
            known | value if isinstance(known, dict) and isinstance(value, dict) else value
        )
    return {**document, "status": {key: one for key, one in status.items() if one is not None}}


def suspended_by_the_cell(document: JsonObject) -> JsonObject:
    """As the cell operator writes it: the order and the condition at once."""
    message = "Instance is suspended and not serving traffic."
    status = object_at(document, "status")
    changed: list[JsonValue] = [
        {**one, "status": "False", "reason": "Suspended", "message": message}
        if one["type"] == "Available"
        else one
        for one in objects_at(status, "conditions")
    ]
    return {**document, "status": {**status, "suspended": True, "conditions": changed}}


@pytest.mark.spec("PP-31")
def test_a_suspended_instance_loses_its_pod_and_confirms_it_with_one_write() -> None:
    suspended = suspended_by_the_cell(settled(an_instance(), a_running_pod()))
    first = planned(suspended, a_running_pod(), SETTLED)
    assert first.deletes_pod == "uid-of-pod"
    assert first.status is None
    # Nothing is confirmed while the Pod ends.
    assert does_nothing(planned(suspended, replace(a_running_pod(), is_deleting=True), SETTLED))
    stopped = planned(suspended, NO_POD, first.memory)
    assert stopped.confirms_stop
    after = merged(suspended, stopped.status)
    status = object_at(after, "status")
    assert status["controller"] == {"observedTemplateHash": "hash-1", "suspendedObserved": True}
    assert "networkInterfaces" not in status
    assert status["conditions"] == object_at(suspended, "status")["conditions"]
    assert does_nothing(planned(after, NO_POD, stopped.memory))


@pytest.mark.spec("PP-31")
def test_a_resumed_instance_gets_its_pod_at_once_and_loses_the_confirmation() -> None:
    suspended = suspended_by_the_cell(settled(an_instance(), a_running_pod()))
    stopped = planned(suspended, NO_POD, SETTLED)
    after = merged(suspended, stopped.status)
    status = object_at(after, "status")
    status.pop("suspended")
    resumed: JsonObject = {**after, "status": status}
    assert planned(resumed, NO_POD, stopped.memory).creates_pod
    again = planned(resumed, a_running_pod(), SETTLED)
    assert again.status is not None
    patched = object_at(again.status, "status")
    assert patched["controller"] == {"suspendedObserved": None}


@pytest.mark.spec("PP-31")
def test_a_suspension_that_no_condition_shows_is_reported_before_the_pod_is_gone() -> None:
    running_instance = settled(an_instance(), a_running_pod())
    status = running_instance["status"]
    assert isinstance(status, dict)
    suspended: JsonObject = {**running_instance, "status": {**status, "suspended": True}}
    first = planned(suspended, a_running_pod(), SETTLED)
    assert first.deletes_pod == "uid-of-pod"
    assert reasons_of(first)["Available"] == ("False", "Suspended")
    assert reasons_of(first)["Programmed"] == ("True", "Programmed")
    told = merged(suspended, first.status)
    assert does_nothing(planned(told, replace(a_running_pod(), is_deleting=True), first.memory))


@pytest.mark.spec("PP-31")
def test_an_instance_that_never_started_confirms_no_stop() -> None:
    found = planned(an_instance(status={"suspended": True}), NO_POD)
    assert found.status is not None
    assert "controller" not in object_at(found.status, "status")


def test_trouble_that_was_told_makes_no_second_event() -> None:
    pod = a_running_pod(waiting("ErrImagePull", "not found"))
    first = planned(an_instance(), pod, SETTLED)
    assert [event.reason for event in first.events] == ["ImageUnavailable"]
    assert first.status is not None
    after = an_instance() | {"status": first.status["status"]}
    denied = a_running_pod(waiting("ErrImagePull", "access denied"))
    second = planned(after, denied, SETTLED)
    assert second.status is not None
    assert not second.events


def test_a_pod_of_another_process_is_judged_by_when_its_containers_began() -> None:
    conditions: list[JsonValue] = conditions_of(Ready="True", ContainersReady="True")
    found = planned(an_instance(), a_running_pod(conditions=conditions))
    assert reasons_of(found)["Available"] == ("True", "Available")
