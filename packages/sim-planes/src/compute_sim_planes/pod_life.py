"""What a pod of the simulated provider does at an age, by the tag of its image. Pure.

```
any other     pending ─► running
slow-<n>      pending n s ─► running                hang      pending for ever
crash-after-<n>, crash (0.3 s), flap (15 s), oom    running ─► ended ─► running ─► … as kubelet does
failed, stopped                                     running 1 s ─► Failed, Succeeded
```

Reports are those of the pod provider (`docs/spec/pod-provider.md` 5, 6): a container without a
probe is ready as soon as it runs, so `Available` needs a time without restart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

RUNS_FOR: Final = timedelta(seconds=1)  # of images that end the pod
AT_ONCE: Final = timedelta()
# Of containers that end: kubelet starts them again when it notices, within a second, then after
# 10 s doubling to 5 min.
NOTICED_AFTER: Final = timedelta(seconds=1)
FIRST_RESTART_DELAY: Final = timedelta(seconds=10)
LONGEST_RESTART_DELAY: Final = timedelta(minutes=5)
CRASH_RUN: Final = timedelta(milliseconds=300)
FLAP_RUN: Final = timedelta(seconds=15)
_SLOW: Final = re.compile(r"slow-([0-9]{1,6})")
_CRASH_AFTER: Final = re.compile(r"crash-after-([0-9]{1,6})")

PROVISIONING: Final = "Instance is provisioning"


@dataclass(slots=True)
class ProviderOptions:
    """Delays; may be changed while it runs."""

    start_delay: timedelta = timedelta(seconds=1)  # until containers run
    stop_delay: timedelta = timedelta(seconds=1)
    available_after: timedelta = timedelta(seconds=1)  # of running; 0: Available at once
    available_after_restart: timedelta = timedelta(seconds=10)

    def start_at_once(self) -> None:
        """Available in the first ungated reconcile."""
        self.start_delay = self.available_after = AT_ONCE


class Phase(StrEnum):
    """The phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Report:
    """Status, reason and message of one condition."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodState:
    """The state of a pod, what is reported of it, and the time until that changes."""

    phase: Phase
    available: Report
    has_started: bool = False  # and the report of it is due
    changes_in: timedelta | None = None

    @property
    def programmed(self) -> Report:
        """True as long as the pod lives, once its containers have started."""
        if self.phase in {Phase.SUCCEEDED, Phase.FAILED}:
            return self.available
        if not self.has_started:
            return Report("Unknown", "ProgrammingInProgress", self.available.message)
        is_available = self.available.status == "True"
        message = self.available.message if is_available else "Instance is programmed"
        return Report("True", "Programmed", message)


@dataclass(frozen=True, slots=True)
class FirstContainer:
    """The container whose image determines what the pod does."""

    name: str
    image: str
    memory: str = "2Gi"  # its limit

    @property
    def tag(self) -> str:
        return self.image.rpartition("/")[2].partition(":")[2]


AVAILABLE: Final = Report("True", "Available", "Instance is available")
STARTING: Final = Report("False", "Starting", "Instance is starting")
PENDING: Final = Report("Unknown", "Provisioning", PROVISIONING)
NODE_UNREACHABLE: Final = Report(
    "Unknown", "NodeUnreachable", "The node of the instance does not answer"
)
ENDS: Final = {
    "failed": (Phase.FAILED, Report("False", "Failed", "Instance failed")),
    "stopped": (Phase.SUCCEEDED, Report("False", "Stopping", "Instance has stopped")),
}


def derive_pod_state(
    container: FirstContainer, age: timedelta, options: ProviderOptions
) -> PodState:
    """The state of a pod with this container at an age."""
    tag = container.tag
    trouble = _start_trouble(container)
    if trouble is not None:
        return PodState(Phase.PENDING, trouble)
    if tag == "hang":
        return PodState(Phase.PENDING, PENDING)
    slow = _SLOW.fullmatch(tag)
    running = age - (timedelta(seconds=int(slow[1])) if slow else options.start_delay)
    if running < AT_ONCE:
        return PodState(Phase.PENDING, PENDING, changes_in=-running)
    run_time = _run_time(tag)
    if run_time is not None:
        return _derive_crashing(container, running, run_time, options)
    if tag in ENDS and running >= RUNS_FOR:
        phase, report = ENDS[tag]
        return PodState(phase, report, has_started=True)
    ends_in = RUNS_FOR - running if tag in ENDS else None
    return _first_run(running, ends_in, options)


def _start_trouble(container: FirstContainer) -> Report | None:
    if container.tag == "image-unavailable":
        named = f'Image "{container.image}" of container "{container.name}"'
        return Report("False", "ImageUnavailable", f"{named} could not be pulled: not found")
    if container.tag == "config-error":
        cause = "the image runs as root, which this cell does not allow"
        message = f'Container "{container.name}" could not be started: {cause}'
        return Report("False", "ConfigurationError", message)
    return None


def _run_time(tag: str) -> timedelta | None:
    """How long each run of a container takes; None: it does not end."""
    counted = _CRASH_AFTER.fullmatch(tag)
    if counted:
        return timedelta(seconds=int(counted[1]))
    return {"crash": CRASH_RUN, "oom": CRASH_RUN, "flap": FLAP_RUN}.get(tag)


def _first_run(running: timedelta, ends_in: timedelta | None, options: ProviderOptions) -> PodState:
    """Until it is settled the first start is still in progress, and nothing new is reported."""
    settles_in = options.available_after - running
    if settles_in <= AT_ONCE:
        return PodState(Phase.RUNNING, AVAILABLE, has_started=True, changes_in=ends_in)
    changes_in = settles_in if ends_in is None else min(settles_in, ends_in)
    return PodState(Phase.RUNNING, PENDING, changes_in=changes_in)


def _derive_crashing(
    container: FirstContainer, running: timedelta, run_time: timedelta, options: ProviderOptions
) -> PodState:
    """The run, or the wait after it, that falls on this time since the first start."""
    crashing = Report("False", "InstanceCrashing", _crash_message(container))
    restarts, began, pause = 0, AT_ONCE, NOTICED_AFTER
    while running >= began + run_time + pause:
        began += run_time + pause
        restarts += 1
        pause = min(FIRST_RESTART_DELAY * (1 << min(restarts - 1, 5)), LONGEST_RESTART_DELAY)
    since = running - began
    if since >= run_time:
        left = began + run_time + pause - running
        return PodState(Phase.RUNNING, crashing, has_started=True, changes_in=left)
    ends_in = run_time - since
    if not restarts:
        return _first_run(since, ends_in, options)
    settles_in = options.available_after_restart - since
    if settles_in <= AT_ONCE:
        return PodState(Phase.RUNNING, AVAILABLE, has_started=True, changes_in=ends_in)
    report = STARTING if restarts == 1 else crashing
    changes_in = min(settles_in, ends_in)
    return PodState(Phase.RUNNING, report, has_started=True, changes_in=changes_in)


def _crash_message(container: FirstContainer) -> str:
    if container.tag == "oom":
        return f'Container "{container.name}" runs out of memory ({container.memory})'
    return f'Container "{container.name}" ends again and again (exit code 1)'
