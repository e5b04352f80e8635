"""The verdict on an Instance from its PodStatus: Available, Programmed, and when to look again.

Pure (pod-provider.md 5, 6). The rows of the specification's table in their order; the first that
matches decides. A container without a probe is ready as soon as it runs, so that a template which
crashes after 300 ms would be Available at every attempt and a rollout would continue onto it:
`Available` needs a time without restart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus
from compute_pod_provider.options import PodOptions
from compute_pod_provider.pod_facts import ObservedContainer, ObservedPod
from compute_pod_provider.verdict import causes

PROVISIONING_MESSAGE: Final = "Instance is provisioning"
NO_MOUNT_BEFORE: Final = timedelta(seconds=15)  # a volume may take that long without trouble
IMAGE_TROUBLE: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ImageInspectError",
        "ErrImageNeverPull",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
START_TROUBLE: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreStartHookError",
        "PostStartHookError",
    }
)
NEVER_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
CRASH_LOOP: Final = "CrashLoopBackOff"
_RESOURCE: Final = re.compile(r"low on resource: ([a-z-]+)")


class State(StrEnum):
    """Where an Instance stands, for metrics."""

    WAITING = "waiting"
    STARTING = "starting"
    AVAILABLE = "available"
    CRASHING = "crashing"
    IMAGE = "image"
    CONFIGURATION = "configuration"
    NO_ROOM = "no_room"
    NODE = "node"
    SUSPENDED = "suspended"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Shown:
    """Status, reason and message of one condition."""

    status: ConditionStatus
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the conditions are to be; None leaves Programmed as it is."""

    state: State
    available: Shown
    programmed: Shown | None
    is_provisional: bool = False  # a start in progress: may be left out for a moment
    look_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container, since it was seen or began."""

    restarts: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a verdict depends on beside the Pod."""

    now: datetime
    options: PodOptions
    runs: Mapping[str, Run] = field(default_factory=dict[str, Run])
    previous_message: str = ""  # of the stored condition Available
    mount_failure: str = ""  # of an Event of the Pod


def update_runs(
    previous: Mapping[str, Run], pod: ObservedPod, now: datetime, *, is_first: bool
) -> dict[str, Run]:
    """The runs of the containers that run now, each since it was seen first.

    `is_first`: this process sees the Pod for the first time, and believes `startedAt`.
    """
    runs: dict[str, Run] = {}
    for container in pod.containers:
        if container.running_since is None:
            continue
        known = previous.get(container.name)
        if known is not None and known.restarts == container.restarts:
            runs[container.name] = known
        else:
            # `startedAt` has whole seconds: the run may be up to one second younger.
            began = container.running_since + timedelta(seconds=1)
            since = min(began, now) if is_first else now
            runs[container.name] = Run(container.restarts, since)
    return runs


def judge(pod: ObservedPod, evidence: Evidence) -> Verdict:
    """The verdict on a Pod that belongs to the Instance."""
    for row in FIRST_ROW:
        found = row(pod, evidence)
        if found is not None:
            return found
    return _running(pod, evidence)


# --- verdicts without a Pod (rows 1, 2) -----------------------------------------------------------


def refused(message: str) -> Verdict:
    shown = Shown("False", reasons.CONFIGURATION_ERROR, message)
    return Verdict(State.CONFIGURATION, shown, shown)


def name_taken(kind: str, name: str) -> Verdict:
    message = f'A {kind} named "{name}" belongs to somebody else; waiting for it to go'
    return _provisioning(State.WAITING, message)


def no_quota() -> Verdict:
    return _provisioning(State.NO_ROOM, "No room in this cell: a resource quota is used up")


def no_pod_yet() -> Verdict:
    return _provisioning(State.WAITING, PROVISIONING_MESSAGE, is_provisional=True)


def suspended() -> Verdict:
    message = "Instance is suspended and not serving traffic."
    return Verdict(State.SUSPENDED, Shown("False", "Suspended", message), None)


def _provisioning(state: State, message: str, *, is_provisional: bool = False) -> Verdict:
    return Verdict(
        state,
        Shown("Unknown", reasons.PROVISIONING, message),
        Shown("Unknown", reasons.PROGRAMMING_IN_PROGRESS, message),
        is_provisional=is_provisional,
    )


# --- rows 3 to 5: the Pod as a whole --------------------------------------------------------------


def _terminating(pod: ObservedPod, _: Evidence) -> Verdict | None:
    if not pod.is_deleting:
        return None
    shown = Shown("False", reasons.STOPPING, "Instance is being restarted")
    return Verdict(State.STOPPING, shown, shown)


def _failed(pod: ObservedPod, _: Evidence) -> Verdict | None:
    if not pod.has_ended:
        return None
    shown = Shown("False", reasons.FAILED, _failure(pod))
    return Verdict(State.STOPPING, shown, shown)


def _failure(pod: ObservedPod) -> str:
    match pod.reason:
        case "Evicted":
            resource = _RESOURCE.search(pod.message)
            return f"Instance was evicted: its node ran short of {_named(resource)}"
        case "NodeLost":
            return "The node of the instance was lost"
        case "Terminated" | "NodeShutdown":
            return "The node of the instance was shut down"
        case "DeadlineExceeded":
            return "Instance ran too long"
        case reason:
            return f"Instance failed: {reason or 'its containers ended'}"


def _named(resource: re.Match[str] | None) -> str:
    return resource[1] if resource else "resources"


def _node_unreachable(pod: ObservedPod, _: Evidence) -> Verdict | None:
    """The node controller marks Ready False and leaves ContainersReady as kubelet wrote it."""
    is_marked = (
        pod.has_condition("Ready", "False")
        and pod.has_condition("ContainersReady", "True")
        and not pod.has_readiness_gates
    )
    if not is_marked and pod.phase != "Unknown":
        return None
    message = "The node of the instance does not answer"
    shown = Shown("Unknown", reasons.NODE_UNREACHABLE, message)
    return Verdict(State.NODE, shown, _programmed(pod, message))


# --- rows 6 to 9: trouble of one container --------------------------------------------------------


def _container_trouble(pod: ObservedPod, evidence: Evidence) -> Verdict | None:
    """The trouble of highest rank; of equals that of the first container."""
    troubles = [
        trouble
        for container in pod.containers
        if (trouble := _first_trouble(container, evidence)) is not None
    ]
    worst = conditions.summarise(shown for _, shown in troubles)
    if worst is None:
        return None
    state = next(state for state, shown in troubles if shown is worst)
    look_at = _settles_at(pod, evidence) if state is State.CRASHING else None
    return Verdict(state, worst, _programmed(pod, worst.message), look_at=look_at)


def _first_trouble(container: ObservedContainer, evidence: Evidence) -> tuple[State, Shown] | None:
    for trouble in FIRST_TROUBLE:
        found = trouble(container, evidence)
        if found is not None:
            return found
    return None


def _image_trouble(container: ObservedContainer, evidence: Evidence) -> tuple[State, Shown] | None:
    if container.waiting not in IMAGE_TROUBLE:
        return None
    base = f'Image "{container.image}" of container "{container.name}" could not be pulled'
    cause = causes.derive_pull_cause(container.waiting, container.message)
    if cause:
        message = f"{base}: {cause}"
    elif evidence.previous_message.startswith(base):
        # While it backs off kubelet often leaves the cause out: the one known is kept.
        message = evidence.previous_message
    else:
        message = base
    return State.IMAGE, Shown("False", reasons.IMAGE_UNAVAILABLE, message)


def _start_trouble(container: ObservedContainer, _: Evidence) -> tuple[State, Shown] | None:
    ended = container.end or container.last_end
    if container.waiting in START_TROUBLE:
        reported = container.message
    elif ended and ended.reason in NEVER_STARTED and container.running_since is None:
        reported = ended.message
    else:
        return None
    cause = causes.derive_start_cause(reported)
    message = f'Container "{container.name}" could not be started: {cause}'
    return State.CONFIGURATION, Shown("False", reasons.CONFIGURATION_ERROR, message)


def _crash(container: ObservedContainer, evidence: Evidence) -> tuple[State, Shown] | None:
    ended = container.end or container.last_end
    if container.running_since is not None:
        is_crashing = container.restarts >= 2 and not _has_settled(container, evidence)
    else:
        is_done = container.is_init and container.end is not None and not container.end.exit_code
        is_crashing = not is_done and (container.waiting == CRASH_LOOP or container.end is not None)
    if not is_crashing:
        return None
    if ended is not None and ended.reason == "OOMKilled":
        message = f'Container "{container.name}" runs out of memory ({container.memory})'
    else:
        code = ended.exit_code if ended is not None else 1
        message = f'Container "{container.name}" ends again and again (exit code {code})'
    return State.CRASHING, Shown("False", reasons.INSTANCE_CRASHING, message)


FIRST_TROUBLE: Final = (_image_trouble, _start_trouble, _crash)


def _mount_trouble(pod: ObservedPod, evidence: Evidence) -> Verdict | None:
    """Row 8: no status has it, an Event of the Pod has."""
    if not needs_mount_events(pod, evidence.now) or not evidence.mount_failure:
        return None
    found = causes.derive_mount_cause(evidence.mount_failure)
    if found is None:
        return None
    message = f'Volume "{found[0]}": {found[1]}'
    shown = Shown("False", reasons.CONFIGURATION_ERROR, message)
    return Verdict(State.CONFIGURATION, shown, _programmed(pod, message))


def needs_mount_events(pod: ObservedPod, now: datetime) -> bool:
    """Whether containers are being created for so long that a volume may be the cause."""
    is_creating = any(one.waiting == "ContainerCreating" for one in pod.containers)
    return is_creating and pod.created_at is not None and now - pod.created_at > NO_MOUNT_BEFORE


# --- rows 10 to 13 --------------------------------------------------------------------------------


def _unschedulable(pod: ObservedPod, _: Evidence) -> Verdict | None:
    scheduled = pod.conditions.get("PodScheduled")
    if scheduled is None or scheduled.status != "False":
        return None
    return _provisioning(State.NO_ROOM, "No node of this cell has room for the instance")


def _pending(pod: ObservedPod, evidence: Evidence) -> Verdict | None:
    """Unknown waiting reasons too: nothing is claimed that kubelet does not report."""
    is_running = pod.phase == "Running" and all(
        one.running_since is not None for one in pod.containers if not one.is_init
    )
    if is_running and pod.containers:
        return None
    creating = pod.created_at + NO_MOUNT_BEFORE if pod.created_at else None
    shown = Shown("Unknown", reasons.PROVISIONING, PROVISIONING_MESSAGE)
    return Verdict(
        State.STARTING,
        shown,
        _programmed(pod, PROVISIONING_MESSAGE),
        is_provisional=not pod.has_started,
        look_at=creating if creating and creating > evidence.now else None,
    )


def _running(pod: ObservedPod, evidence: Evidence) -> Verdict:
    settles_at = _settles_at(pod, evidence)
    if settles_at is not None or not pod.has_condition("Ready", "True"):
        message = "Instance is starting"
        is_first_start = not any(one.restarts for one in pod.containers)
        return Verdict(
            State.STARTING,
            Shown("False", reasons.STARTING, message),
            _programmed(pod, message),
            is_provisional=is_first_start,
            look_at=settles_at,
        )
    message = "Instance is available"
    return Verdict(
        State.AVAILABLE,
        Shown("True", reasons.AVAILABLE, message),
        Shown("True", reasons.PROGRAMMED, message),
    )


def _settles_at(pod: ObservedPod, evidence: Evidence) -> datetime | None:
    """When every container has run for long enough; None: now, as far as they run."""
    has_restarted = any(one.restarts for one in pod.containers)
    options = evidence.options
    needed = options.available_after_restart if has_restarted else options.available_after
    since = [run.since for run in evidence.runs.values()]
    settles_at = max(since, default=evidence.now) + needed
    return settles_at if since and settles_at > evidence.now else None


def _has_settled(container: ObservedContainer, evidence: Evidence) -> bool:
    run = evidence.runs.get(container.name)
    needed = evidence.options.available_after_restart
    return run is not None and evidence.now - run.since >= needed


def _programmed(pod: ObservedPod, message: str) -> Shown:
    """True for the life of the Pod once all its containers have started."""
    if pod.has_started:
        return Shown("True", reasons.PROGRAMMED, "Instance is programmed")
    return Shown("Unknown", reasons.PROGRAMMING_IN_PROGRESS, message)


Row = Callable[[ObservedPod, Evidence], Verdict | None]
FIRST_ROW: Final[tuple[Row, ...]] = (
    _terminating,
    _failed,
    _node_unreachable,
    _container_trouble,
    _mount_trouble,
    _unschedulable,
    _pending,
)
