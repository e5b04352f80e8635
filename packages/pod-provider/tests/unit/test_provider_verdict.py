from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from provider_builders.documents import (
    NOW,
    OPTIONS,
    a_container,
    a_pod,
    a_pod_document,
    a_running_pod,
    a_spec,
    an_instance,
    conditions_of,
    ended,
    running,
    waiting,
)

from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.pod_facts import ObservedPod, find_mount_failure, read_pod
from compute_pod_provider.verdict import (
    Evidence,
    Run,
    Shown,
    State,
    Verdict,
    judge,
    needs_mount_events,
    update_runs,
)

LONG_AGO = NOW - timedelta(minutes=1)
IMAGE = "registry.example.com/main:ok"


def judged(
    pod: ObservedPod,
    *,
    runs: Mapping[str, Run] | None = None,
    previous: str = "",
    mount_failure: str = "",
) -> Verdict:
    known = {"main": Run(0, LONG_AGO)} if runs is None else runs
    return judge(pod, Evidence(NOW, OPTIONS, known, previous, mount_failure))


def shown(pod: ObservedPod, **evidence: str) -> tuple[str, str, str]:
    found = judged(pod, runs={}, **evidence).available
    return found.status, found.reason, found.message


def a_pod_with(container: JsonObject, **members: JsonValue) -> ObservedPod:
    status: JsonObject = {"containerStatuses": [container], **members}
    return read_pod(a_pod_document() | {"status": {"phase": "Pending", **status}})


# --- rows 3 to 5 ----------------------------------------------------------------------------------


def test_a_terminating_pod_is_a_restart() -> None:
    found = judged(replace(a_running_pod(), is_deleting=True))
    expected = Shown("False", "Stopping", "Instance is being restarted")
    assert (found.available, found.programmed) == (expected, expected)


@pytest.mark.parametrize(
    ("reason", "message", "told"),
    [
        (
            "Evicted",
            "The node was low on resource: memory. Threshold quantity: 100Mi",
            "Instance was evicted: its node ran short of memory",
        ),
        ("Evicted", "", "Instance was evicted: its node ran short of resources"),
        ("NodeLost", "", "The node of the instance was lost"),
        ("Terminated", "", "The node of the instance was shut down"),
        ("NodeShutdown", "", "The node of the instance was shut down"),
        ("DeadlineExceeded", "", "Instance ran too long"),
        ("UnexpectedAdmissionError", "", "Instance failed: UnexpectedAdmissionError"),
        ("", "", "Instance failed: its containers ended"),
    ],
)
@pytest.mark.spec("PP-22")
def test_a_failed_pod_names_its_cause(reason: str, message: str, told: str) -> None:
    found = judged(a_pod(phase="Failed", reason=reason, message=message))
    assert found.available == found.programmed == Shown("False", "Failed", told)


@pytest.mark.spec("PP-25")
def test_the_mark_of_the_node_controller_is_a_node_that_does_not_answer() -> None:
    silent = conditions_of(PodScheduled="True", Ready="False", ContainersReady="True")
    told = ("Unknown", "NodeUnreachable", "The node of the instance does not answer")
    assert shown(a_running_pod(conditions=silent)) == told
    assert shown(a_pod(phase="Unknown")) == told
    assert judged(a_running_pod(conditions=silent)).programmed == Shown(
        "True", "Programmed", "Instance is programmed"
    )


# --- row 6 ----------------------------------------------------------------------------------------

NO_PULL = f'Image "{IMAGE}" of container "main" could not be pulled'


@pytest.mark.spec("PP-16")
@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("ErrImagePull", f'failed to resolve reference "{IMAGE}": not found', ": not found"),
        ("ErrImagePull", "manifest unknown", ": not found"),
        ("ErrImagePull", "pull access denied, repository does not exist", ": access denied"),
        ("ErrImagePull", "unexpected status: 401 Unauthorized", ": access denied"),
        ("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"', ""),
        ("InvalidImageName", "couldn't parse image name", ": the name is invalid"),
        ("ImageInspectError", "", ""),
        ("ErrImageNeverPull", "", ""),
        ("RegistryUnavailable", "i/o timeout", ""),
        ("SignatureValidationFailed", "", ""),
    ],
)
def test_an_image_that_is_not_pulled_is_unavailable(reason: str, message: str, cause: str) -> None:
    pod = a_pod_with(waiting(reason, message))
    assert shown(pod) == ("False", "ImageUnavailable", NO_PULL + cause)
    assert judged(pod).state is State.IMAGE


@pytest.mark.spec("PP-16")
def test_a_known_cause_is_kept_while_kubelet_backs_off() -> None:
    pod = a_pod_with(waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}"'))
    told = f"{NO_PULL}: not found"
    assert shown(pod, previous=told)[2] == told
    other = 'Image "other" of container "main" could not be pulled: not found'
    assert shown(pod, previous=other)[2] == NO_PULL


# --- row 7 ----------------------------------------------------------------------------------------

AS_ROOT = "the image runs as root, which this cell does not allow"
CONFIG = "CreateContainerConfigError"


@pytest.mark.spec("PP-17")
@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        (CONFIG, 'secret "s" not found', 'Secret "s" not found'),
        (CONFIG, 'configmap "m" not found', 'ConfigMap "m" not found'),
        (CONFIG, "couldn't find key k in ConfigMap ns/m", 'key "k" not found in ConfigMap "m"'),
        (CONFIG, "couldn't find key k in Secret ns/s", 'key "k" not found in Secret "s"'),
        (
            CONFIG,
            "container has runAsNonRoot and image will run as root (pod: x, container: main)",
            AS_ROOT,
        ),
        (
            "RunContainerError",
            'exec: "serve": executable file not found in $PATH: unknown',
            "the command was not found",
        ),
        (
            "CreateContainerError",
            "container 0123456789abcdef is in use\nmore",
            "container … is in use",
        ),
        ("PreStartHookError", "hook failed", "hook failed"),
        ("PostStartHookError", "", "no cause was reported"),
    ],
)
def test_a_container_that_kubelet_cannot_start_is_a_configuration_error(
    reason: str, message: str, cause: str
) -> None:
    told = f'Container "main" could not be started: {cause}'
    pod = a_pod_with(waiting(reason, message))
    assert shown(pod) == ("False", "ConfigurationError", told)


@pytest.mark.spec("PP-17")
@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
def test_a_last_end_that_never_ran_is_the_same_trouble_in_back_off(reason: str) -> None:
    message = 'exec: "serve": executable file not found in $PATH'
    told = 'Container "main" could not be started: the command was not found'
    in_back_off = waiting("CrashLoopBackOff", lastState=ended(reason, 128, message))
    just_ended: JsonObject = {"name": "main", "state": ended(reason, 128, message)}
    for container in (in_back_off, just_ended):
        assert shown(a_pod_with(container)) == ("False", "ConfigurationError", told)
    assert judged(a_pod_with(in_back_off)).programmed == Shown(
        "Unknown", "ProgrammingInProgress", told
    )


# --- row 8 ----------------------------------------------------------------------------------------

CREATING = waiting("ContainerCreating")
OLD = timedelta(seconds=16)


@pytest.mark.spec("PP-18")
@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            'MountVolume.SetUp failed for volume "v" : secret "s" not found',
            'Volume "v": Secret "s" not found',
        ),
        (
            'MountVolume.SetUp failed for volume "v" : references non-existent secret key: k',
            'Volume "v": key "k" not found in Secret',
        ),
        (
            'MountVolume.SetUp failed for volume "v" : references non-existent config key: k',
            'Volume "v": key "k" not found in ConfigMap',
        ),
        ('MountVolume.SetUp failed for volume "v" : disk on fire', 'Volume "v": disk on fire'),
    ],
)
def test_a_volume_that_cannot_be_mounted_is_a_configuration_error(message: str, told: str) -> None:
    pod = a_pod(age=OLD, containerStatuses=[CREATING])
    assert needs_mount_events(pod, NOW)
    assert shown(pod, mount_failure=message) == ("False", "ConfigurationError", told)


@pytest.mark.spec("PP-18")
def test_a_volume_is_no_trouble_before_its_time_or_without_an_event() -> None:
    young = a_pod(age=timedelta(seconds=14), containerStatuses=[CREATING])
    assert not needs_mount_events(young, NOW)
    assert judged(young).look_at == NOW + timedelta(seconds=1)
    old = a_pod(age=OLD, containerStatuses=[CREATING])
    assert shown(old)[1] == "Provisioning"
    assert shown(old, mount_failure="no volume is named here")[1] == "Provisioning"


def test_the_newest_failed_mount_counts() -> None:
    events: tuple[JsonObject, ...] = (
        {"reason": "FailedMount", "message": "old", "lastTimestamp": "2026-11-18T11:00:00Z"},
        {"reason": "FailedMount", "message": "new", "lastTimestamp": "2026-11-18T12:00:00Z"},
        {"reason": "Pulled", "message": "fine", "lastTimestamp": "2026-11-18T13:00:00Z"},
    )
    assert find_mount_failure(events) == "new"
    assert find_mount_failure(()) == ""


# --- row 9 ----------------------------------------------------------------------------------------

AGAIN = 'Container "main" ends again and again (exit code 3)'


@pytest.mark.spec("PP-20")
def test_a_crash_loop_reads_the_same_in_each_of_its_states() -> None:
    in_back_off = waiting("CrashLoopBackOff", restartCount=4, lastState=ended("Error", 3))
    just_ended: JsonObject = {"name": "main", "state": ended("Error", 3), "restartCount": 4}
    started = running(NOW, restarts=5, lastState=ended("Error", 3))
    for container in (in_back_off, just_ended):
        assert shown(a_pod_with(container, phase="Running")) == ("False", "InstanceCrashing", AGAIN)
    again = judged(a_running_pod(started), runs={"main": Run(5, NOW)})
    assert again.available == Shown("False", "InstanceCrashing", AGAIN)
    assert again.programmed == Shown("True", "Programmed", "Instance is programmed")
    assert again.look_at == NOW + OPTIONS.available_after_restart


@pytest.mark.spec("PP-19")
def test_a_container_without_memory_names_its_limit() -> None:
    pod = a_pod_with(waiting("CrashLoopBackOff", lastState=ended("OOMKilled", 137)))
    told = 'Container "main" runs out of memory (2048Mi)'
    assert shown(pod) == ("False", "InstanceCrashing", told)


def test_a_crash_without_a_recorded_end_has_exit_code_1() -> None:
    told = 'Container "main" ends again and again (exit code 1)'
    assert shown(a_pod_with(waiting("CrashLoopBackOff")))[2] == told


def an_injected_pod(*states: JsonObject, restart_policy: str = "") -> ObservedPod:
    document = a_pod_injected(restart_policy)
    status = document["status"]
    assert isinstance(status, dict)
    status |= {
        "initContainerStatuses": [*states],
        "containerStatuses": [waiting("PodInitializing")],
    }
    return read_pod(document)


def a_pod_injected(restart_policy: str) -> JsonObject:
    document = a_pod_document()
    spec = document["spec"]
    assert isinstance(spec, dict)
    injected: JsonObject = {"name": "mesh", "image": "mesh"}
    spec["initContainers"] = [
        injected | ({"restartPolicy": restart_policy} if restart_policy else {})
    ]
    return document


def test_an_injected_init_container_counts_until_it_is_done() -> None:
    done: JsonObject = {"name": "mesh", "state": ended("Completed", 0)}
    failed: JsonObject = {"name": "mesh", "state": ended("Error", 9)}
    assert shown(an_injected_pod(done))[1] == "Provisioning"
    assert (
        shown(an_injected_pod(failed))[2] == 'Container "mesh" ends again and again (exit code 9)'
    )
    sidecar = an_injected_pod(done, restart_policy="Always")
    assert shown(sidecar)[2] == 'Container "mesh" ends again and again (exit code 0)'


def test_of_several_troubles_that_of_the_first_container_is_shown() -> None:
    spec = a_spec(a_container("one"), a_container("two"))
    pod = a_pod(
        an_instance(spec=spec),
        containerStatuses=[
            waiting("CrashLoopBackOff", name="one", lastState=ended("Error", 3)),
            waiting("ErrImagePull", "not found", name="two"),
        ],
    )
    assert shown(pod)[1] == "InstanceCrashing"


# --- rows 10 to 13 --------------------------------------------------------------------------------


@pytest.mark.spec("PP-21")
def test_an_unschedulable_pod_has_no_room() -> None:
    conditions: list[JsonValue] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    ]
    found = judged(a_pod(conditions=conditions))
    told = "No node of this cell has room for the instance"
    assert found.available == Shown("Unknown", "Provisioning", told)
    assert found.state is State.NO_ROOM


@pytest.mark.spec("PP-33")
def test_an_unknown_waiting_reason_with_an_endless_message_is_provisioning() -> None:
    pod = a_pod_with(waiting("Invented", "x" * 1_000_000))
    assert shown(pod) == ("Unknown", "Provisioning", "Instance is provisioning")
    assert len(pod.containers[0].message) == 2000


def test_a_pod_without_a_status_or_creation_time_is_provisioning() -> None:
    assert shown(read_pod({}))[1] == "Provisioning"
    assert judged(read_pod({})).look_at is None


@pytest.mark.spec("PP-20")
def test_running_is_available_only_after_two_seconds() -> None:
    young = judged(a_running_pod(running(NOW)), runs={"main": Run(0, NOW)})
    assert young.available == Shown("False", "Starting", "Instance is starting")
    assert young.is_provisional
    assert young.look_at == NOW + timedelta(seconds=2)
    settled = judged(a_running_pod(running(NOW)), runs={"main": Run(0, NOW - timedelta(seconds=2))})
    assert settled.available == Shown("True", "Available", "Instance is available")
    assert settled.programmed == Shown("True", "Programmed", "Instance is available")


@pytest.mark.spec("PP-20", "PP-24")
def test_after_a_restart_it_takes_ten_seconds() -> None:
    once = a_running_pod(running(NOW, restarts=1, lastState=ended()))
    nine = {"main": Run(1, NOW - timedelta(seconds=9))}
    assert judged(once, runs=nine).available.reason == "Starting"
    assert not judged(once, runs=nine).is_provisional
    ten = {"main": Run(1, NOW - timedelta(seconds=10))}
    assert judged(once, runs=ten).available.status == "True"
    often = a_running_pod(running(NOW, restarts=7, lastState=ended()))
    assert (
        judged(often, runs={"main": Run(7, NOW - timedelta(seconds=10))}).state is State.AVAILABLE
    )


def test_a_pod_that_is_not_ready_is_starting_for_as_long() -> None:
    conditions = conditions_of(Ready="False", ContainersReady="False")
    found = judged(a_running_pod(conditions=conditions))
    assert (found.available.reason, found.look_at) == ("Starting", None)


def test_a_readiness_gate_of_others_is_no_silent_node() -> None:
    document = a_pod_document(
        phase="Running",
        conditions=conditions_of(Ready="False", ContainersReady="True"),
        containerStatuses=[running()],
    )
    spec = document["spec"]
    assert isinstance(spec, dict)
    spec["readinessGates"] = [{"conditionType": "example.com/ready"}]
    assert judged(read_pod(document)).available.reason == "Starting"


# --- since when -----------------------------------------------------------------------------------


def test_a_run_counts_from_when_it_was_seen_or_after_our_restart_from_when_it_began() -> None:
    pod = a_running_pod(running(LONG_AGO))
    assert update_runs({}, pod, NOW, is_first=False) == {"main": Run(0, NOW)}
    # `startedAt` is cut to whole seconds.
    assert update_runs({}, pod, NOW, is_first=True) == {
        "main": Run(0, LONG_AGO + timedelta(seconds=1))
    }
    known = {"main": Run(0, LONG_AGO)}
    assert update_runs(known, pod, NOW, is_first=False) == known
    restarted = a_running_pod(running(NOW, restarts=1))
    assert update_runs(known, restarted, NOW, is_first=False) == {"main": Run(1, NOW)}
    assert update_runs(known, a_pod(containerStatuses=[CREATING]), NOW, is_first=False) == {}
