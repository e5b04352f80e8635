"""The plan for one Instance: create or delete its Pod, write its status, look again. Pure.

```
deleting ─► nothing (teardown)      gated ─► nothing at all       suspended ─► Pod deleted
refused ─► conditions, no Pod       no Pod ─► create, with back-off after a loss
Pod ended ─► deleted, then made again          Pod there ─► its verdict
```

An Instance never has two Pods: a Pod is made only where none is seen, under the name of the
Instance, and a Pod that terminates is waited for and never forced (pod-provider.md 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal

from compute_api_types import reasons
from compute_api_types.wire import JsonObject
from compute_pod_provider import delays, verdict
from compute_pod_provider.instance_facts import ObservedInstance
from compute_pod_provider.options import PodOptions
from compute_pod_provider.pod_facts import NO_POD, NoPod, ObservedPod
from compute_pod_provider.render import render
from compute_pod_provider.render.refusal import Refusal, RefusalKind
from compute_pod_provider.status import report
from compute_pod_provider.verdict import Evidence, Run, State, Verdict, update_runs

# Reasons of a condition that reports nothing about a start yet.
UNREPORTED: Final = frozenset({"", reasons.PENDING, reasons.PENDING_QUOTA})
POD_CREATED: Final = "PodCreated"
POD_REPLACED: Final = "PodReplaced"
POD_GONE: Final = "The Pod is gone and is made again"
EVICTED: Final = "Evicted"  # kubelet's reason
INSTANCE_AVAILABLE: Final = "InstanceAvailable"
INSTANCE_NOT_STOPPING: Final = "InstanceNotStopping"
TROUBLE: Final = frozenset(
    {reasons.IMAGE_UNAVAILABLE, reasons.INSTANCE_CRASHING, reasons.CONFIGURATION_ERROR}
)


class Loss(StrEnum):
    """How a Pod was lost that is made again."""

    EVICTED = "evicted"  # its node ran short of something
    FAILED = "failed"  # ended otherwise
    DELETED = "deleted"  # not by this provider
    VANISHED = "vanished"  # with its node, or while nothing watched


class PostResult(StrEnum):
    """How the API server answered a POST that made no Pod."""

    TAKEN = "taken"
    QUOTA = "quota"
    REFUSED = "refused"


RETRIES: Final[Mapping[PostResult, timedelta]] = {
    PostResult.TAKEN: delays.TAKEN_RETRY,
    PostResult.QUOTA: delays.QUOTA_RETRY,
    PostResult.REFUSED: delays.REFUSED_RETRY,
}


@dataclass(frozen=True, slots=True)
class Post:
    """A POST that made no Pod: repeated after a time, or when the spec changes."""

    result: PostResult
    message: str
    at: datetime
    generation: int

    @property
    def retry_at(self) -> datetime:
        return self.at + RETRIES[self.result]

    def holds(self, instance: ObservedInstance, now: datetime) -> bool:
        return now < self.retry_at and instance.generation == self.generation


@dataclass(frozen=True, slots=True)
class Memory:
    """What one process remembers of an Instance; a new process starts without it."""

    ungated_at: datetime | None = None
    made_uid: str = ""  # of the Pod that this process made
    pod_uid: str = ""  # of the Pod last seen
    runs: Mapping[str, Run] = field(default_factory=dict[str, Run])
    loss: Loss | None = None  # why the Pod last seen is going
    recreations: int = 0
    create_at: datetime | None = None  # not before
    available_since: datetime | None = None
    post: Post | None = None
    mount_failure: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """One Instance with its Pod at one moment."""

    instance: ObservedInstance
    pod: ObservedPod | NoPod
    now: datetime


@dataclass(frozen=True, slots=True)
class EventIntent:
    """An Event about the Instance."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done now; empty at rest."""

    memory: Memory
    creates_pod: bool = False
    deletes_pod: str = ""  # the UID
    status: JsonObject | None = None
    events: tuple[EventIntent, ...] = ()
    lost: Loss | None = None  # a Pod that is made again
    refused: RefusalKind | None = None
    look_at: datetime | None = None
    state: State | None = None
    reads_mount_events: bool = False
    confirms_stop: bool = False  # only by a live read: an index may lack a Pod that runs


def is_ours(instance: ObservedInstance, options: PodOptions) -> bool:
    """Whether an Instance is looked after here; whether it may run is `may_create`."""
    if not options.is_in_scope(instance.namespace):
        return False
    if instance.has_finalizer or instance.has_sandbox:
        return True
    return not (instance.has_virtual_machine and options.ignores_virtual_machines)


def needs_finalizer(instance: ObservedInstance, options: PodOptions) -> bool:
    """Whether kopf guards an Instance. What has the finalizer keeps it until it is deleted: one
    that no longer matched would lose it with its Pod still running.
    """
    if not options.is_in_scope(instance.namespace):
        return False
    if instance.has_finalizer:
        return True
    is_startable = instance.has_sandbox and not instance.is_gated and not instance.is_suspended
    return is_startable and not isinstance(render(instance, options), Refusal)


def may_create(instance: ObservedInstance, options: PodOptions) -> bool:
    """Whether a POST is allowed; asked again of the live read before it."""
    return (
        options.is_in_scope(instance.namespace)
        and instance.has_finalizer
        and not instance.is_gated
        and not instance.is_suspended
        and not instance.is_deleting
    )


def plan(observed: Observed, memory: Memory, options: PodOptions) -> Plan:
    """One pass over one Instance."""
    instance, now = observed.instance, observed.now
    # Not ours, or going: teardown has a loop of its own and writes no status.
    if instance.is_deleting or not is_ours(instance, options):
        return Plan(memory=memory)
    # Behind a gate nothing is started, stopped or reported.
    if instance.is_gated:
        return Plan(memory=replace(memory, ungated_at=None), state=State.WAITING)
    memory = replace(memory, ungated_at=memory.ungated_at or now)
    if instance.is_suspended:
        return _suspend(observed, memory)
    if isinstance(observed.pod, NoPod):
        return _without_pod(observed, memory, options)
    return _with_pod(observed, observed.pod, memory, options)


def _suspend(observed: Observed, memory: Memory) -> Plan:
    """The Pod goes, all else stays; a loss on purpose is no loss.

    One status write where the cell operator has reported the suspension: when the Pod is gone, with
    its confirmation, and the address goes with it.
    """
    instance, pod, shown = observed.instance, observed.pod, verdict.suspended()
    memory = Memory(ungated_at=memory.ungated_at)
    if isinstance(pod, NoPod):
        status = report(instance, NO_POD, shown, observed.now, is_stopped=True)
        return Plan(
            memory=memory, status=status, state=State.SUSPENDED, confirms_stop=status is not None
        )
    is_reported = instance.available is not None and (
        instance.available.reason == shown.available.reason
    )
    return Plan(
        memory=memory,
        deletes_pod="" if pod.is_deleting else pod.uid,
        status=None if is_reported else report(instance, NO_POD, shown, observed.now),
        state=State.SUSPENDED,
    )


def _without_pod(observed: Observed, memory: Memory, options: PodOptions) -> Plan:
    instance, now = observed.instance, observed.now
    rendered = render(instance, options)
    if isinstance(rendered, Refusal):
        reported = _reported(observed, memory, verdict.refused(rendered.message), options)
        return replace(reported, refused=rendered.kind)
    # kopf has not put the finalizer on yet; its event wakes this Instance.
    if not instance.has_finalizer:
        return Plan(memory=memory, state=State.WAITING)
    lost, memory = _count_loss(memory, now)
    events = () if lost is None else (EventIntent("Warning", POD_REPLACED, POD_GONE),)
    if memory.create_at is not None and now < memory.create_at:
        shown = verdict.no_pod_yet() if _is_true(instance) else None
        held = _reported(observed, memory, shown, options)
        return replace(held, look_at=memory.create_at, events=events + held.events, lost=lost)
    if memory.post is not None and memory.post.holds(instance, now):
        reported = _reported(observed, memory, _post_verdict(memory.post, instance), options)
        return replace(reported, look_at=memory.post.retry_at)
    memory = replace(memory, post=None)
    started = _reported(observed, memory, verdict.no_pod_yet(), options)
    return replace(started, creates_pod=True, events=events + started.events, lost=lost)


def _post_verdict(post: Post, instance: ObservedInstance) -> Verdict:
    if post.result is PostResult.TAKEN:
        return verdict.name_taken(post.message, instance.name)
    if post.result is PostResult.QUOTA:
        return verdict.no_quota()
    return verdict.refused(f"The Pod was refused: {post.message}")


def _count_loss(memory: Memory, now: datetime) -> tuple[Loss | None, Memory]:
    """A Pod that was there is gone: the next is made at once, further ones ever later."""
    if not memory.pod_uid:
        return None, memory
    lost = memory.recreations + 1
    wait = timedelta()
    if lost > 1:
        wait = min(delays.RECREATE_FIRST * (1 << min(lost - 2, 10)), delays.RECREATE_LONGEST)
    kept = replace(
        memory,
        pod_uid="",
        runs={},
        loss=None,
        recreations=lost,
        create_at=now + wait,
        available_since=None,
    )
    return memory.loss or Loss.VANISHED, kept


def _derive_loss(pod: ObservedPod, memory: Memory) -> Loss | None:
    if pod.uid == memory.pod_uid and memory.loss is not None:
        return memory.loss  # its own deletion follows
    if pod.has_ended:
        return Loss.EVICTED if pod.reason == EVICTED else Loss.FAILED
    return Loss.DELETED if pod.is_deleting else None


def _with_pod(observed: Observed, pod: ObservedPod, memory: Memory, options: PodOptions) -> Plan:
    now = observed.now
    is_first = pod.uid not in {memory.pod_uid, memory.made_uid}
    known: Mapping[str, Run] = memory.runs if pod.uid == memory.pod_uid else {}
    runs = update_runs(known, pod, now, is_first=is_first)
    loss = _derive_loss(pod, memory)
    memory = replace(memory, pod_uid=pod.uid, runs=runs, loss=loss, post=None)
    available = observed.instance.available
    evidence = Evidence(
        now=now,
        options=options,
        runs=runs,
        previous_message=available.message if available else "",
        mount_failure=memory.mount_failure,
    )
    found = verdict.judge(pod, evidence)
    memory = _remember_available(memory, found, now)
    reported = _reported(observed, memory, found, options)
    needs_events = verdict.needs_mount_events(pod, now)
    return replace(
        reported,
        deletes_pod=pod.uid if pod.has_ended and not pod.is_deleting else "",
        reads_mount_events=needs_events,
        look_at=_soonest(reported.look_at, now + delays.MOUNT_EVENTS if needs_events else None),
    )


def _remember_available(memory: Memory, found: Verdict, now: datetime) -> Memory:
    if found.state is not State.AVAILABLE:
        return replace(memory, available_since=None)
    since = memory.available_since or now
    is_forgotten = now - since >= delays.RECREATE_FORGOTTEN
    return replace(
        memory, available_since=since, recreations=0 if is_forgotten else memory.recreations
    )


def _reported(
    observed: Observed, memory: Memory, found: Verdict | None, options: PodOptions
) -> Plan:
    """The plan that writes a verdict, where it differs and need not wait."""
    if found is None:
        return Plan(memory=memory, state=State.WAITING)
    instance, now = observed.instance, observed.now
    held_until = _held_until(instance, found, memory, options)
    if held_until is not None and now < held_until:
        return Plan(memory=memory, look_at=_soonest(held_until, found.look_at), state=found.state)
    status = report(instance, observed.pod, found, now)
    events = () if status is None else _events(instance, found)
    return Plan(
        memory=memory, status=status, events=events, look_at=found.look_at, state=found.state
    )


def _held_until(
    instance: ObservedInstance, found: Verdict, memory: Memory, options: PodOptions
) -> datetime | None:
    """A quick start costs one status write: its steps are left out for a moment."""
    if not found.is_provisional or memory.ungated_at is None:
        return None
    reported = instance.available.reason if instance.available else ""
    if reported in UNREPORTED:
        return memory.ungated_at + options.provisioning_after
    # `Provisioning` was reported; `Starting` a second before Available adds nothing.
    return found.look_at if reported == reasons.PROVISIONING else None


def _events(instance: ObservedInstance, found: Verdict) -> tuple[EventIntent, ...]:
    reported = instance.available.reason if instance.available else ""
    shown = found.available
    if shown.reason == reported:
        return ()
    if shown.reason in TROUBLE:
        return (EventIntent("Warning", shown.reason, shown.message),)
    if shown.reason == reasons.AVAILABLE:
        return (EventIntent("Normal", INSTANCE_AVAILABLE, shown.message),)
    return ()


def _is_true(instance: ObservedInstance) -> bool:
    return instance.available is not None and instance.available.is_true


def _soonest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
