"""Loops of the provider: one per Instance, one per teardown, and the sweep over all of them.

```
event ─► flag ─► observe ─► plan ─► apply ─► wait (flag, the plan's time, ten minutes)
```

Each pass derives everything from what it reads: a missed event costs time and nothing else. A
failed pass waits in memory and never raises into kopf, which would drop the finalizer of an
Instance whose Pod still runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels
from compute_api_types.meta import format_timestamp
from compute_api_types.wire import JsonObject
from compute_operator_kit.controller.reconcile import NoSpans, Spans
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.errors import ConflictError, ReconcileError
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.intents.intents import RecordEvent
from compute_pod_provider import delays
from compute_pod_provider import metrics as metric_names
from compute_pod_provider import plan as planning
from compute_pod_provider.apply import HOME, INSTANCE, Applied, Applier
from compute_pod_provider.cluster.client import ClusterClient
from compute_pod_provider.instance_facts import ObservedInstance, read_instance
from compute_pod_provider.observe import (
    Document,
    Indexes,
    InstanceKey,
    derive_key,
    derive_version,
    observe,
    observe_live,
    read_own_pod,
)
from compute_pod_provider.options import PodOptions
from compute_pod_provider.plan import EventIntent, Memory, Observed, plan
from compute_pod_provider.pod_facts import NoPod, ObservedPod, find_mount_failure
from compute_pod_provider.verdict import State
from compute_pod_provider.wakers import Stopped, Wakers, wait_for, wait_until

CONTROLLER: Final = "pods"
"""What spans name a pass by."""
QUICK_CONFLICTS: Final = 3  # a conflict is answered at once, a series of them is not

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDeps:
    """Ports of the provider."""

    client: ClusterClient
    options: PodOptions
    record: Callable[[RecordEvent], None]
    metrics: MetricsPort
    clock: Clock
    random: Random
    spans: Spans = field(default_factory=NoSpans)


class PodProvider:
    """All loops of one process."""

    def __init__(self, deps: ProviderDeps) -> None:
        self.options = deps.options
        self._deps = deps
        self._client = deps.client
        self._applier = Applier(
            deps.client, deps.options, deps.record, deps.metrics, deps.clock.now
        )
        self._wakers = Wakers()
        self._teardowns: set[InstanceKey] = set()
        self._states: dict[InstanceKey, State] = {}
        self._refusals: set[asyncio.Task[None]] = set()
        self._unguarded: set[InstanceKey] = set()
        self._indexes: Indexes | None = None

    # what handlers call --------------------------------------------------------------------------

    def bind(self, indexes: Indexes) -> None:
        """The indexes of the kopf operator that runs now."""
        self._indexes = indexes

    def needs_finalizer(self, document: Document) -> bool:
        return planning.needs_finalizer(read_instance(document), self.options)

    def notice(self, document: Document) -> None:
        """An event of an Instance or of its Pod, which has the same key."""
        self._wakers.wake(derive_key(document))

    def notice_instance(self, document: Document) -> None:
        """An event of an Instance; one that is refused has no daemon and is reported here."""
        self.notice(document)
        instance = read_instance(document)
        if self._is_reported_without_daemon(instance):
            task = asyncio.create_task(self._report_refusal(derive_key(document), instance.uid))
            self._refusals.add(task)
            task.add_done_callback(self._refusals.discard)

    def _is_reported_without_daemon(self, instance: ObservedInstance) -> bool:
        is_waiting = instance.is_gated or instance.is_deleting or instance.has_finalizer
        if is_waiting or not planning.is_ours(instance, self.options):
            return False
        return not planning.needs_finalizer(instance, self.options)

    async def attend(self, document: Document, indexes: Indexes, stopped: Stopped) -> None:
        """The loop of one Instance, until it is deleted or the process ends. One of the same name
        that was made in a watch gap has a loop of its own.
        """
        self.bind(indexes)
        key, uid = derive_key(document), read_instance(document).uid
        flag = self._wakers.add(key)
        try:
            await self._loop(key, uid, flag, stopped)
        finally:
            self._wakers.remove(key, flag)
            if not self._wakers.is_attended(key):
                self._states.pop(key, None)

    async def close(self) -> None:
        """Ends what runs outside of kopf's tasks, after kopf has ended."""
        tasks = {*self._refusals}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # one Instance --------------------------------------------------------------------------------

    async def _loop(
        self, key: InstanceKey, uid: str, flag: asyncio.Event, stopped: Stopped
    ) -> None:
        memory, failures, is_live = Memory(), 0, False
        while not stopped:
            try:
                found = await self._pass(key, memory, uid, is_live=is_live)
                failures = 0
            except ConflictError:
                failures += 1
                is_live = True
                if failures > QUICK_CONFLICTS:
                    await wait_for(flag, stopped, self._back_off(failures - QUICK_CONFLICTS))
                continue
            except ReconcileError as trouble:
                failures += 1
                is_live = True  # an unknown outcome is read before anything is sent again
                pause = self._back_off(failures)
                self._log_trouble(key, trouble, pause)
                await wait_for(flag, stopped, pause)
                continue
            if found is None:
                return
            applied, look_at = found
            is_answered = applied.memory.post is not None and memory.post != applied.memory.post
            memory = applied.memory
            await self._await_own_write(key, flag, applied)
            if is_answered:  # a refusal is reported at once
                is_live = False
                continue
            pause, is_live = self._until(look_at)
            if await wait_for(flag, stopped, pause):
                is_live = False

    async def _pass(
        self, key: InstanceKey, memory: Memory, uid: str, *, is_live: bool
    ) -> tuple[Applied, datetime | None] | None:
        """One pass, in a span; None where there is no Instance of that UID."""
        subject = ObjectKey(HOME, INSTANCE, key.namespace, key.name)
        with self._deps.spans.reconcile(CONTROLLER, subject) as span:
            try:
                found = await self._look(key, memory, uid, is_live=is_live)
            except ReconcileError as trouble:
                span.set_outcome(type(trouble).__name__)
                raise
            span.set_outcome("done")
            return found

    async def _look(
        self, key: InstanceKey, memory: Memory, uid: str, *, is_live: bool
    ) -> tuple[Applied, datetime | None] | None:
        """The steps of a pass: observe, plan, apply."""
        now, spans = self._deps.clock.now(), self._deps.spans
        with spans.step("observe"):
            observed = (
                await observe_live(key, self._client, now)
                if is_live
                else observe(key, self._bound, now)
            )
        if observed is None or observed.instance.uid != uid:
            return None
        with spans.step("plan"):
            planned = plan(observed, memory, self.options)
        if planned.confirms_stop and not is_live:
            return await self._look(key, memory, uid, is_live=True)
        if planned.reads_mount_events:
            failure = await self._read_mount_failure(key, observed)
            if failure != planned.memory.mount_failure:
                planned = plan(
                    observed, replace(planned.memory, mount_failure=failure), self.options
                )
        if planned.state is not None:
            self._measure(key, planned.state, planned.memory)
        with spans.step("apply"):
            return await self._applier.apply(key, observed, planned), planned.look_at

    async def _read_mount_failure(self, key: InstanceKey, observed: Observed) -> str:
        if isinstance(observed.pod, NoPod):
            return ""
        events = await self._client.list_pod_events(key.namespace, observed.pod.uid)
        return find_mount_failure(events)

    @property
    def _bound(self) -> Indexes:
        return self._indexes or Indexes({}, {})

    def _measure(self, key: InstanceKey, state: State, memory: Memory) -> None:
        before = self._states.get(key)
        self._states[key] = state
        is_new = state is State.AVAILABLE and before not in {None, State.AVAILABLE}
        if is_new and memory.ungated_at is not None:
            waited = (self._deps.clock.now() - memory.ungated_at).total_seconds()
            self._deps.metrics.observe(metric_names.AVAILABLE_SECONDS, waited)

    async def _await_own_write(
        self, key: InstanceKey, flag: asyncio.Event, applied: Applied
    ) -> None:
        """Holds the next pass until the indexes have our write: a stale one would conflict."""
        if not applied.version and not applied.pod_uid:
            return

        def is_reached() -> bool:
            document = self._bound.find_instance(key)
            version = applied.version
            is_current = not version or document is None or _is_newer(document, version)
            has_pod = not applied.pod_uid or self._bound.find_pod(applied.pod_uid) is not None
            return is_current and has_pod

        if await wait_until(flag, is_reached, delays.OWN_WRITE):
            flag.set()  # what woke us may be more than our own write

    def _until(self, look_at: datetime | None) -> tuple[timedelta, bool]:
        """How long to wait, and whether the pass after it reads live."""
        spread = delays.RESYNC_SPREAD * (2 * self._deps.random.random() - 1)
        resync = delays.RESYNC * (1 + spread)
        if look_at is None:
            return resync, True
        pause = look_at - self._deps.clock.now()
        return (pause, False) if pause < resync else (resync, True)

    def _back_off(self, failures: int) -> timedelta:
        pause = delays.ERROR_FIRST * (1 << min(failures - 1, 10))
        return min(pause, delays.ERROR_LONGEST) * (0.5 + self._deps.random.random() / 2)

    def _log_trouble(self, key: InstanceKey, trouble: ReconcileError, pause: timedelta) -> None:
        logger.warning(
            "Retrying Instance",
            extra={
                "Instance": f"{key.namespace}/{key.name}",
                "reason": trouble.reason,
                "error": str(trouble),
                "retryAfter": pause.total_seconds(),
            },
        )

    async def _report_refusal(self, key: InstanceKey, uid: str) -> None:
        """One attempt; the sweep repeats one that failed."""
        try:
            await self._pass(key, Memory(), uid, is_live=True)
        except ReconcileError as trouble:
            self._log_trouble(key, trouble, delays.SWEEP)

    # teardown ------------------------------------------------------------------------------------

    async def tear_down(self, document: Document) -> None:
        """Deletes the Pod of a deleting Instance and returns when it is gone; raises nothing."""
        instance, key = read_instance(document), derive_key(document)
        flag = self._wakers.add(key)
        self._teardowns.add(key)
        started = self._deps.clock.now()
        try:
            await self._delete_until_gone(key, instance.uid, flag)
            waited = (self._deps.clock.now() - started).total_seconds()
            self._deps.metrics.observe(metric_names.STOP_SECONDS, waited)
        finally:
            self._teardowns.discard(key)
            self._wakers.remove(key, flag)

    async def _delete_until_gone(self, key: InstanceKey, uid: str, flag: asyncio.Event) -> None:
        started, failures, is_reported = self._deps.clock.now(), 0, False
        while True:
            try:
                if await self._is_torn_down(key, uid):
                    return
                failures, pause = 0, delays.TEARDOWN_READ
            except ReconcileError as trouble:
                failures += 1
                pause = min(self._back_off(failures), delays.TEARDOWN_READ)
                self._log_trouble(key, trouble, pause)
            waited = self._deps.clock.now() - started
            if not is_reported and waited > self.options.grace + delays.TEARDOWN_STUCK:
                is_reported = True
                self._report_stuck(key, uid)
            await wait_for(flag, None, pause)

    async def _is_torn_down(self, key: InstanceKey, uid: str) -> bool:
        pod = await read_own_pod(key, self._client, uid)
        if isinstance(pod, ObservedPod) and not pod.is_deleting:
            logger.info("Deleting Pod", extra={"Instance": f"{key.namespace}/{key.name}"})
            await self._client.delete_pod(key.namespace, key.name, pod.uid)
            # Without a kubelet in between it is gone at once.
            pod = await read_own_pod(key, self._client, uid)
        if isinstance(pod, ObservedPod):
            return False
        await self._applier.remove_policy(key, uid)
        return True

    def _report_stuck(self, key: InstanceKey, uid: str) -> None:
        self._deps.metrics.count(metric_names.STUCK_TEARDOWNS)
        message = "The Pod of the instance does not end; its node may be away"
        self._applier.record(
            key, uid, EventIntent("Warning", planning.INSTANCE_NOT_STOPPING, message)
        )

    # sweep ---------------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Every minute: finalizers that kopf gave up, unreported refusals, gauges."""
        while True:
            await self._deps.clock.sleep(delays.SWEEP)
            keys = self._bound.list_keys()
            unguarded = {key for key in keys if await self._sweep_one(key)}
            self._unguarded = unguarded
            # Refused Instances have no loop that would forget them.
            for key in self._states.keys() - set(keys):
                del self._states[key]
            self.set_gauges()

    async def _sweep_one(self, key: InstanceKey) -> bool:
        """Whether the Instance waits for our finalizer; in two sweeps in a row, its PATCH is
        lost.
        """
        document = self._bound.find_instance(key)
        if document is None:
            return False
        instance = read_instance(document)
        is_unguarded = self._is_unguarded(instance)
        if self._is_reported_without_daemon(instance):
            await self._report_refusal(key, instance.uid)
        elif self._is_lost(key, instance) or (is_unguarded and key in self._unguarded):
            await self._look_again(key)
        return is_unguarded

    def _is_unguarded(self, instance: ObservedInstance) -> bool:
        """One that may start and that kopf has not put our finalizer on."""
        if instance.has_finalizer or instance.is_deleting:
            return False
        return planning.needs_finalizer(instance, self.options)

    def _is_lost(self, key: InstanceKey, instance: ObservedInstance) -> bool:
        """A deleting Instance with our finalizer and no loop at it."""
        if instance.deleted_at is None or not instance.has_finalizer or key in self._teardowns:
            return False
        return self._deps.clock.now() - instance.deleted_at > delays.LOST_TEARDOWN

    async def _look_again(self, key: InstanceKey) -> None:
        now = format_timestamp(self._deps.clock.now())
        body: JsonObject = {"metadata": {"annotations": {labels.LOOK_AGAIN: now}}}
        try:
            await self._client.patch_instance(key.namespace, key.name, body)
        except ReconcileError as trouble:
            self._log_trouble(key, trouble, delays.SWEEP)

    def set_gauges(self) -> None:
        counts = Counter(self._states.values())
        counts[State.STOPPING] += len(self._teardowns)
        for state in State:
            self._deps.metrics.gauge(metric_names.INSTANCES, counts[state], state=state.value)


def _is_newer(document: Document, version: str) -> bool:
    """Whether a cached object has a version or a later one; versions of one server are numbers."""
    cached = derive_version(document)
    if cached.isdecimal() and version.isdecimal():
        return int(cached) >= int(version)
    return cached == version
