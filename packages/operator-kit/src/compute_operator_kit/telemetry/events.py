"""The recorder of core `v1` Events: repeats increase the count of one Event, and floods are cut.

`record` adds to a bounded queue and never raises; `run` writes, so that no reconcile waits for an
Event or fails with it. While all workers are busy, Events wait: each costs as much as a write to a
Workload. Core `v1` is the event API that every plane serves. Messages contain data of tenants: they
are escaped and cut, and never used as a format.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from compute_operator_kit.client.interface import AlreadyExists
from compute_operator_kit.client.status_errors import NAMESPACE_ABSENT, NAMESPACE_TERMINATING
from compute_operator_kit.core.clock import Clock
from compute_operator_kit.core.errors import ReconcileError, ThrottledError
from compute_operator_kit.core.json import JsonMapping, JsonObject, UndecodableError
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.core.text import cut_to_bytes, escape_unprintable
from compute_operator_kit.intents.intents import RecordEvent

EVENT: Final = Kind("", "v1", "events", "Event")
MAX_MESSAGE_BYTES: Final = 1024  # the API's own limit
CUT: Final = "..."  # cell.md 14: the end of a message that was cut
MAX_NAME: Final = 253
DEFAULT_NAMESPACE: Final = "default"  # of Events about objects without a namespace
QUEUE_LIMIT: Final = 200  # per plane; a plane that is away must not fill our memory
REMEMBERED: Final = 4096  # objects and repeats in memory, as in client-go
# cell.md 14. Later repeats are new Events; API servers delete an Event an hour after its change.
REPEATS_FOR: Final = timedelta(minutes=10)
# client-go's numbers for one object: the first Events of a flood, then one in five minutes.
BURST: Final = 25
REFILL: Final = timedelta(minutes=5)
# Attempts while a server throttles: a new project throttles the first request for each kind
# (neighbours.md 2.1), and the first Events of a Workload must not be lost.
TRIES: Final = 5
LONGEST_PAUSE: Final = timedelta(seconds=30)
# A namespace that is terminating or gone accepts no Events: for this time none is sent. A namespace
# that is created again under its name waits for the rest of it.
CLOSED_FOR: Final = timedelta(minutes=1)
CLOSED: Final = frozenset({NAMESPACE_TERMINATING, NAMESPACE_ABSENT})
# How long Events wait for busy workers, and how often that is checked.
GIVES_WAY_FOR: Final = timedelta(seconds=30)
LOOKS_EVERY: Final = timedelta(milliseconds=250)
# After that there may be Events for every plane, and each request needs a connection.
AT_ONCE: Final = 8

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT")


class EventClient(Protocol):
    """The methods of `KubeClient` that Events need, with the verbs that our roles grant."""

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists: ...

    async def patch_merge(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent: ...


class EventSubject(msgspec.Struct, frozen=True):
    """The object of an Event."""

    key: ObjectKey
    uid: Uid


@dataclass(frozen=True, slots=True)
class EventSource:
    """The source of Events: the component and the process."""

    component: str
    instance: str


class QueuedEvent(msgspec.Struct, frozen=True):
    """An Event to be written, with its time."""

    emit: RecordEvent
    at: datetime


class RepeatedEvent(msgspec.Struct, frozen=True):
    """A written Event with its count."""

    name: str
    count: int
    first: datetime
    last: datetime
    message: str


class EventBucket(msgspec.Struct, frozen=True):
    """The token bucket of one object."""

    tokens: float
    filled_at: timedelta

    def refilled(self, now: timedelta) -> EventBucket:
        return EventBucket(min(BURST, self.tokens + (now - self.filled_at) / REFILL), now)


def derive_event_name(emit: RecordEvent, reporter: EventSource, first: datetime) -> str:
    """A name that is new for each first occurrence, and equal if a create is sent twice."""
    what = (str(emit.key), emit.uid, emit.type, emit.reason, first.isoformat())
    text = "|".join((*what, reporter.component, reporter.instance))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{emit.key.name[: MAX_NAME - len(digest) - 1].rstrip('.-')}.{digest}"


def sanitise_message(message: str) -> str:
    """The message as one printable line, cut to the length that the API allows."""
    printable = escape_unprintable(message)
    if len(printable.encode("utf-8")) <= MAX_MESSAGE_BYTES:
        return printable
    return cut_to_bytes(printable, MAX_MESSAGE_BYTES - len(CUT)) + CUT


class EventSink:
    """Records Events on every plane of one process."""

    def __init__(
        self,
        find: Callable[[PlaneName], EventClient | None],
        reporter: EventSource,
        clock: Clock,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._find = find
        self._reporter = reporter
        self._clock = clock
        self._is_busy = is_busy
        self._pending: dict[PlaneName, deque[QueuedEvent]] = {}
        self._busy: set[PlaneName] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._has_pending = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._repeats: OrderedDict[tuple[EventSubject, str, str], RepeatedEvent] = OrderedDict()
        self._buckets: OrderedDict[EventSubject, EventBucket] = OrderedDict()
        self._closed: dict[tuple[PlaneName, str], timedelta] = {}  # namespaces, each with the end
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """The number of Events that were not written."""
        return self._dropped

    def record(self, emit: RecordEvent) -> None:
        """Queues an Event; it is written soon, or dropped."""
        pending = self._pending.setdefault(emit.key.plane, deque())
        if len(pending) >= QUEUE_LIMIT:
            self._drop("QueueFull")
            return
        # `after` has happened, and would keep a whole object in memory.
        pending.append(QueuedEvent(msgspec.structs.replace(emit, after=None), self._clock.now()))
        self._idle.clear()
        self._has_pending.set()

    async def run(self) -> None:
        """Writes queued Events until cancelled; a plane that hangs does not delay others."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._has_pending.wait()
                await self._give_way()
                self._has_pending.clear()
                for plane in sorted(self._pending.keys() - self._busy):
                    self._busy.add(plane)
                    tasks.create_task(self._write_all(plane), name=f"events of {plane}")

    async def drain(self) -> None:
        """Waits until all queued Events are written or dropped; `run` must be running."""
        await self._idle.wait()

    async def _give_way(self) -> None:
        """Waits while all workers are busy, up to a limit, and not until a queue overflows."""
        until = self._clock.monotonic() + GIVES_WAY_FOR
        while self._is_busy() and self._clock.monotonic() < until:
            if any(len(pending) > QUEUE_LIMIT // 2 for pending in self._pending.values()):
                return
            await self._clock.sleep(LOOKS_EVERY)

    async def _write_all(self, plane: PlaneName) -> None:
        pending = self._pending[plane]
        for _ in range(len(pending)):  # Events queued meanwhile wait for busy workers again
            queued = pending.popleft()
            try:
                await self._write(queued)
            except ReconcileError as cause:
                if cause.reason in CLOSED:
                    self._close(_subject_of(queued.emit))
                self._drop(cause.reason)
            except (UndecodableError, TimeoutError):
                self._drop("Unreadable")
        self._busy.discard(plane)
        if pending:
            self._has_pending.set()
            return
        del self._pending[plane]
        if not self._pending:
            self._idle.set()

    async def _write(self, queued: QueuedEvent) -> None:
        emit, now = queued.emit, queued.at
        if self._is_closed(_subject_of(emit)):
            self._drop(NAMESPACE_TERMINATING)
            return
        repeat, is_repeated = self._count(emit, now)
        if not self._take_token(_subject_of(emit)):
            self._drop("RateLimited")
            return
        kube = self._find(emit.key.plane)
        if kube is None:
            self._drop("PlaneGone")
            return
        key = _event_key(_subject_of(emit), repeat.name)
        if is_repeated:
            patch = _patch_body(repeat)
            written = await self._send_with_retries(lambda: kube.patch_merge(key, patch))
            if not isinstance(written, Absent):
                return
            # The Event was deleted, by its time to live or by a user: it is created again.
            repeat = self._start_over(emit, now)
        body, fresh = self._body(emit, repeat), _event_key(_subject_of(emit), repeat.name)
        # `AlreadyExists` is this Event: the response to an earlier attempt was lost.
        await self._send_with_retries(lambda: kube.create(fresh, body))

    def _close(self, subject: EventSubject) -> None:
        now = self._clock.monotonic()
        self._closed = {at: until for at, until in self._closed.items() if until > now}
        self._closed[_namespace_key(subject)] = now + CLOSED_FOR

    def _is_closed(self, subject: EventSubject) -> bool:
        until = self._closed.get(_namespace_key(subject))
        return until is not None and until > self._clock.monotonic()

    async def _send_with_retries(self, send: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """Sends a request, again after each 429; only Events of its plane wait."""
        for _ in range(TRIES - 1):
            try:
                async with self._slots:
                    return await send()
            except ThrottledError as throttled:
                await self._clock.sleep(min(throttled.retry_after, LONGEST_PAUSE))
        async with self._slots:
            return await send()

    def _count(self, emit: RecordEvent, now: datetime) -> tuple[RepeatedEvent, bool]:
        """Counts before the rate limit, so that dropped repeats are in the next count."""
        identity = (_subject_of(emit), emit.type, emit.reason)
        repeat = self._repeats.get(identity)
        if repeat is None or now - repeat.last > REPEATS_FOR:
            return self._start_over(emit, now), False
        message = sanitise_message(emit.message)
        last = max(repeat.last, now)  # the clock may step back
        count = repeat.count + 1
        counted = msgspec.structs.replace(repeat, count=count, last=last, message=message)
        self._remember(identity, counted)
        return counted, True

    def _start_over(self, emit: RecordEvent, now: datetime) -> RepeatedEvent:
        name = derive_event_name(emit, self._reporter, now)
        started = RepeatedEvent(name, 1, now, now, sanitise_message(emit.message))
        self._remember((_subject_of(emit), emit.type, emit.reason), started)
        return started

    def _remember(self, identity: tuple[EventSubject, str, str], repeat: RepeatedEvent) -> None:
        self._repeats[identity] = repeat
        self._repeats.move_to_end(identity)
        while len(self._repeats) > REMEMBERED:
            self._repeats.popitem(last=False)

    def _take_token(self, subject: EventSubject) -> bool:
        now = self._clock.monotonic()
        bucket = self._buckets.get(subject, EventBucket(BURST, now)).refilled(now)
        has_token = bucket.tokens >= 1
        self._buckets[subject] = EventBucket(bucket.tokens - 1, now) if has_token else bucket
        self._buckets.move_to_end(subject)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return has_token

    def _drop(self, reason: str) -> None:
        self._dropped += 1
        logger.debug("Dropping Event", extra={"reason": reason, "dropped": self._dropped})

    def _body(self, emit: RecordEvent, repeat: RepeatedEvent) -> JsonObject:
        subject = _subject_of(emit)
        metadata: JsonObject = {"name": repeat.name, "namespace": _namespace_for(subject)}
        body: JsonObject = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": metadata,
            "involvedObject": _reference(subject),
            "type": emit.type,
            "reason": emit.reason,
            "action": emit.action or emit.reason,
            "reportingComponent": self._reporter.component,
            "reportingInstance": self._reporter.instance,
            "source": {"component": self._reporter.component},
            "firstTimestamp": _format_time(repeat.first),
            **_patch_body(repeat),
        }
        if emit.related is not None:
            body["related"] = _reference(EventSubject(emit.related, emit.related_uid or Uid("")))
        return body


def _subject_of(emit: RecordEvent) -> EventSubject:
    return EventSubject(emit.key, emit.uid)


def _patch_body(repeat: RepeatedEvent) -> JsonObject:
    return {
        "count": repeat.count,
        "lastTimestamp": _format_time(repeat.last),
        "message": repeat.message,
    }


def _event_key(subject: EventSubject, name: str) -> ObjectKey:
    return ObjectKey(subject.key.plane, EVENT, _namespace_for(subject), name)


def _namespace_key(subject: EventSubject) -> tuple[PlaneName, str]:
    return subject.key.plane, _namespace_for(subject)


def _namespace_for(subject: EventSubject) -> str:
    return subject.key.namespace or DEFAULT_NAMESPACE


def _reference(subject: EventSubject) -> JsonObject:
    reference: JsonObject = {
        "apiVersion": subject.key.kind.api_version,
        "kind": subject.key.kind.kind,
        "name": subject.key.name,
        "uid": subject.uid,
    }
    return reference | {"namespace": subject.key.namespace} if subject.key.namespace else reference


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
