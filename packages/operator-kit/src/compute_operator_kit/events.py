"""The recorder of core `v1` Events: repeats are counted on the same Event, floods are cut, and it
never raises.

Recording puts a value into a bounded queue and returns; `run` does the writing, so that no pass
waits for an Event or fails with it. While all workers are busy it waits: an Event costs as much as
a write that brings somebody's Workload on. Core `v1` is the one event API that every plane serves.
Messages carry data of others: they are escaped and cut here, and never used as a format.
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

from compute_operator_kit.answers import NAMESPACE_ABSENT, NAMESPACE_TERMINATING
from compute_operator_kit.clock import Clock
from compute_operator_kit.errors import ReconcileError, ThrottledError
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.kube import AlreadyExists
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.printable import cut_to_bytes, escape_unprintable
from compute_operator_kit.wire import JsonMapping, JsonObject, UndecodableError

EVENT: Final = Kind("", "v1", "events", "Event")
MAX_MESSAGE_BYTES: Final = 1024  # the API's own limit
CUT: Final = "..."  # cell.md 14: how a message ends that was longer
MAX_NAME: Final = 253
DEFAULT_NAMESPACE: Final = "default"  # where Events about objects without a namespace live
QUEUE_LIMIT: Final = 200  # per plane; a plane that is away must not fill our memory
REMEMBERED: Final = 4096  # objects and repeats kept in mind, as in client-go
# cell.md 14. What happens again later than that is news; API servers forget an Event an hour after
# its last change anyway.
REPEATS_FOR: Final = timedelta(minutes=10)
# client-go's numbers for one object: a transition storm shows its beginning, then one Event in five
# minutes.
BURST: Final = 25
REFILL: Final = timedelta(minutes=5)
# A server that asks to come again is obeyed, so often: a fresh project puts off whoever touches a
# kind first (neighbours.md 2.1), and that is where the story of a Workload begins.
TRIES: Final = 5
LONGEST_PAUSE: Final = timedelta(seconds=30)
# A namespace that is terminating, or gone, takes no Event about any object in it: for so long it is
# not asked again. One that is made again under its name has to wait for the rest of it.
CLOSED_FOR: Final = timedelta(minutes=1)
CLOSED: Final = frozenset({NAMESPACE_TERMINATING, NAMESPACE_ABSENT})
# How long what is worth telling waits for what is to be done, and how often it looks.
GIVES_WAY_FOR: Final = timedelta(seconds=30)
LOOKS_EVERY: Final = timedelta(milliseconds=250)
# Then there may be something to tell on every plane, and each request needs a connection.
AT_ONCE: Final = 8

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT")


class Events(Protocol):
    """The part of the port `Kube` that Events need: exactly the verbs our roles grant."""

    async def create(self, key: ObjectKey, body: JsonMapping) -> Snapshot | AlreadyExists: ...

    async def patch_merge(self, key: ObjectKey, body: JsonMapping) -> Snapshot | Absent: ...


class About(msgspec.Struct, frozen=True):
    """The object an Event is shown on."""

    key: ObjectKey
    uid: Uid


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who says so: the operator and the one process of it."""

    component: str
    instance: str


class Noted(msgspec.Struct, frozen=True):
    """What is to be told, and when it happened."""

    emit: Emit
    at: datetime


class Repeat(msgspec.Struct, frozen=True):
    """An Event already written, and how often what it says has happened since."""

    name: str
    count: int
    first: datetime
    last: datetime
    message: str


class Bucket(msgspec.Struct, frozen=True):
    """Tokens of one object."""

    tokens: float
    filled_at: timedelta

    def refilled(self, now: timedelta) -> Bucket:
        return Bucket(min(BURST, self.tokens + (now - self.filled_at) / REFILL), now)


def derive_event_name(emit: Emit, reporter: Reporter, first: datetime) -> str:
    """A name of its own for each first time; the same again when a create is sent twice."""
    what = (str(emit.key), emit.uid, emit.type, emit.reason, first.isoformat())
    text = "|".join((*what, reporter.component, reporter.instance))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{emit.key.name[: MAX_NAME - len(digest) - 1].rstrip('.-')}.{digest}"


def sanitise_message(message: str) -> str:
    """One printable line, as long as the API allows; one that was cut says so."""
    printable = escape_unprintable(message)
    if len(printable.encode("utf-8")) <= MAX_MESSAGE_BYTES:
        return printable
    return cut_to_bytes(printable, MAX_MESSAGE_BYTES - len(CUT)) + CUT


class Recorder:
    """Records Events on every plane of one process."""

    def __init__(
        self,
        find: Callable[[PlaneName], Events | None],
        reporter: Reporter,
        clock: Clock,
        is_pressed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._find = find
        self._reporter = reporter
        self._clock = clock
        self._is_pressed = is_pressed
        self._pending: dict[PlaneName, deque[Noted]] = {}
        self._busy: set[PlaneName] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._repeats: OrderedDict[tuple[About, str, str], Repeat] = OrderedDict()
        self._buckets: OrderedDict[About, Bucket] = OrderedDict()
        self._closed: dict[tuple[PlaneName, str], timedelta] = {}  # namespaces, each until when
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many were never written, for want of tokens, room, rights or a plane."""
        return self._dropped

    def record(self, emit: Emit) -> None:
        """Takes note; the Event is written soon, or never."""
        pending = self._pending.setdefault(emit.key.plane, deque())
        if len(pending) >= QUEUE_LIMIT:
            self._drop("QueueFull")
            return
        # What it came after has happened, and holds a whole object in memory.
        pending.append(Noted(msgspec.structs.replace(emit, after=None), self._clock.now()))
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Writes what was recorded, for ever; a few planes that hang hold up no other."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wake.wait()
                await self._give_way()
                self._wake.clear()
                for plane in sorted(self._pending.keys() - self._busy):
                    self._busy.add(plane)
                    tasks.create_task(self._write_all(plane), name=f"events of {plane}")

    async def drain(self) -> None:
        """Waits until everything recorded is written or dropped; `run` must be running."""
        await self._idle.wait()

    async def _give_way(self) -> None:
        """Not longer than people would wait, and not until a queue overflows."""
        until = self._clock.monotonic() + GIVES_WAY_FOR
        while self._is_pressed() and self._clock.monotonic() < until:
            if any(len(pending) > QUEUE_LIMIT // 2 for pending in self._pending.values()):
                return
            await self._clock.sleep(LOOKS_EVERY)

    async def _write_all(self, plane: PlaneName) -> None:
        pending = self._pending[plane]
        for _ in range(len(pending)):  # what comes meanwhile gives way again
            noted = pending.popleft()
            try:
                await self._write(noted)
            except ReconcileError as cause:
                if cause.reason in CLOSED:
                    self._close(_about(noted.emit))
                self._drop(cause.reason)
            except (UndecodableError, TimeoutError):
                self._drop("Unreadable")
        self._busy.discard(plane)
        if pending:
            self._wake.set()
            return
        del self._pending[plane]
        if not self._pending:
            self._idle.set()

    async def _write(self, noted: Noted) -> None:
        emit, now = noted.emit, noted.at
        if self._is_closed(_about(emit)):
            self._drop(NAMESPACE_TERMINATING)
            return
        repeat, is_repeated = self._count(emit, now)
        if not self._take_token(_about(emit)):
            self._drop("RateLimited")
            return
        kube = self._find(emit.key.plane)
        if kube is None:
            self._drop("PlaneGone")
            return
        key = _event_key(_about(emit), repeat.name)
        if is_repeated:
            patch = _patch_body(repeat)
            written = await self._patiently(lambda: kube.patch_merge(key, patch))
            if not isinstance(written, Absent):
                return
            # The server's hour was over, or somebody deleted it: what is left to say is new again.
            repeat = self._start_over(emit, now)
        body, fresh = self._body(emit, repeat), _event_key(_about(emit), repeat.name)
        # A name that is taken is this very Event: the answer to an earlier attempt was lost.
        await self._patiently(lambda: kube.create(fresh, body))

    def _close(self, about: About) -> None:
        now = self._clock.monotonic()
        self._closed = {place: until for place, until in self._closed.items() if until > now}
        self._closed[_place_of(about)] = now + CLOSED_FOR

    def _is_closed(self, about: About) -> bool:
        until = self._closed.get(_place_of(about))
        return until is not None and until > self._clock.monotonic()

    async def _patiently(self, send: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """What a server answers once it no longer puts us off; only its own plane waits."""
        for _ in range(TRIES - 1):
            try:
                async with self._room:
                    return await send()
            except ThrottledError as put_off:
                await self._clock.sleep(min(put_off.retry_after, LONGEST_PAUSE))
        async with self._room:
            return await send()

    def _count(self, emit: Emit, now: datetime) -> tuple[Repeat, bool]:
        """Counts before asking for a token, so that what is held back shows in the next count."""
        identity = (_about(emit), emit.type, emit.reason)
        found = self._repeats.get(identity)
        if found is None or now - found.last > REPEATS_FOR:
            return self._start_over(emit, now), False
        message = sanitise_message(emit.message)
        last = max(found.last, now)  # a clock that steps back must not make an Event older
        counted = msgspec.structs.replace(found, count=found.count + 1, last=last, message=message)
        self._remember(identity, counted)
        return counted, True

    def _start_over(self, emit: Emit, now: datetime) -> Repeat:
        name = derive_event_name(emit, self._reporter, now)
        started = Repeat(name, 1, now, now, sanitise_message(emit.message))
        self._remember((_about(emit), emit.type, emit.reason), started)
        return started

    def _remember(self, identity: tuple[About, str, str], repeat: Repeat) -> None:
        self._repeats[identity] = repeat
        self._repeats.move_to_end(identity)
        while len(self._repeats) > REMEMBERED:
            self._repeats.popitem(last=False)

    def _take_token(self, about: About) -> bool:
        now = self._clock.monotonic()
        bucket = self._buckets.get(about, Bucket(BURST, now)).refilled(now)
        has_token = bucket.tokens >= 1
        self._buckets[about] = Bucket(bucket.tokens - 1, now) if has_token else bucket
        self._buckets.move_to_end(about)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return has_token

    def _drop(self, reason: str) -> None:
        self._dropped += 1
        logger.debug("Dropping Event", extra={"reason": reason, "dropped": self._dropped})

    def _body(self, emit: Emit, repeat: Repeat) -> JsonObject:
        about = _about(emit)
        metadata: JsonObject = {"name": repeat.name, "namespace": _namespace_for(about)}
        body: JsonObject = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": metadata,
            "involvedObject": _reference(about),
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
            body["related"] = _reference(About(emit.related, emit.related_uid or Uid("")))
        return body


def _about(emit: Emit) -> About:
    return About(emit.key, emit.uid)


def _patch_body(repeat: Repeat) -> JsonObject:
    return {
        "count": repeat.count,
        "lastTimestamp": _format_time(repeat.last),
        "message": repeat.message,
    }


def _event_key(about: About, name: str) -> ObjectKey:
    return ObjectKey(about.key.plane, EVENT, _namespace_for(about), name)


def _place_of(about: About) -> tuple[PlaneName, str]:
    return about.key.plane, _namespace_for(about)


def _namespace_for(about: About) -> str:
    return about.key.namespace or DEFAULT_NAMESPACE


def _reference(about: About) -> JsonObject:
    reference: JsonObject = {
        "apiVersion": about.key.kind.api_version,
        "kind": about.key.kind.kind,
        "name": about.key.name,
        "uid": about.uid,
    }
    return reference | {"namespace": about.key.namespace} if about.key.namespace else reference


def _format_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
