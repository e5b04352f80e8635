"""The apply context of one reconcile: lookup, guards, sending once, and write expectations.

It is shared by all kinds of intents. It remembers the writes of its reconcile, so that a later
intent builds on them and not on a cache that cannot have seen them yet, which would be a conflict.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from compute_operator_kit.apply.guards import Locks, find_refusal
from compute_operator_kit.apply.write_expectations import WriteExpectations
from compute_operator_kit.apply.write_memory import ObjectSection, WriteMemory
from compute_operator_kit.client.interface import EVERYTHING, FieldOwner, KubeClient
from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.errors import (
    ConflictError,
    OutcomeUnknownError,
    ReconcileError,
    TransientError,
)
from compute_operator_kit.core.json import JsonValue
from compute_operator_kit.core.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.intents.intents import (
    Ensure,
    Guard,
    Intent,
    RecordEvent,
    RequireExists,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Effect, Outcome
from compute_operator_kit.planes.registry import Planes

T = TypeVar("T")

logger = logging.getLogger(__name__)

_UNGUARDED: Final[AbstractAsyncContextManager[None]] = nullcontext(None)


class Leadership(Protocol):
    """Whether this process holds the Lease now."""

    @property
    def is_leading(self) -> bool: ...


class AlwaysLeading:
    """Leadership without election: for a single process and for tests."""

    @property
    def is_leading(self) -> bool:
        return True


class EventRecorder(Protocol):
    """Queues a Kubernetes Event; never raises, never waits."""

    def record(self, emit: RecordEvent) -> None: ...


class NoEventRecorder:
    """Drops events."""

    def record(self, emit: RecordEvent) -> None:
        pass


@dataclass(frozen=True, slots=True)
class ApplyDeps:
    """Dependencies that all appliers of a process share."""

    planes: Planes
    clock: Clock
    leadership: Leadership = field(default_factory=AlwaysLeading)
    recorder: EventRecorder = field(default_factory=NoEventRecorder)
    status_defer: timedelta = timedelta(milliseconds=200)  # runtime.md, provisional status
    locks: Locks = field(default_factory=Locks)


class OwnWrite(msgspec.Struct, frozen=True):
    """The object before the first write of this reconcile to it, and after the last."""

    before: Snapshot
    after: Snapshot


@dataclass(frozen=True, slots=True)
class Refusal:
    """A guard that refused a write, and the reason."""

    guard: Guard
    why: str

    def outcome(self, intent: Intent) -> Outcome:
        return Outcome(intent, Effect.REFUSED, self.why, wait=self.guard.retry_after)


class ApplyContext(msgspec.Struct, frozen=True):
    """What the intents of one reconcile share."""

    root: ObjectKey
    deps: ApplyDeps
    writer: FieldOwner
    expectations: WriteExpectations
    memory: WriteMemory
    own_write: dict[ObjectKey, OwnWrite] = msgspec.field(default_factory=dict)

    # lookup ----------------------------------------------------------------------------------

    async def find_object(self, key: ObjectKey, *, is_known: bool = True) -> Snapshot | Absent:
        """The object as this reconcile wrote it, else from the cache, else by a live read.

        `is_known`: the plan observed the object. If a cache with a selector lacks it, it is read
        live, because the selector may exclude it.
        """
        if key in self.own_write:
            return self.own_write[key].after
        store = self.deps.planes.find_store(key.plane, key.kind)
        cached = Unreadable("NotWatched") if store is None else store.get(key.namespace, key.name)
        may_be_excluded = is_known and isinstance(cached, Absent) and self._is_selected(key)
        lacks_body = isinstance(cached, Snapshot) and not cached.has_body
        if isinstance(cached, Unreadable) or may_be_excluded or lacks_body:
            return await self.kube_to_read(key).get(key)
        return cached

    def _is_selected(self, key: ObjectKey) -> bool:
        engaged = self.deps.planes.find(key.plane)
        watched = engaged.watched.get(key.kind) if engaged is not None else None
        return watched is not None and watched.selector != EVERYTHING

    async def find_same(self, key: ObjectKey, uid: Uid) -> Snapshot:
        """The object with the UID that the plan observed; a conflict if it is absent or another."""
        existing = await self.find_object(key)
        if isinstance(existing, Absent) or existing.metadata.uid != uid:
            raise moved_on(key)
        return existing

    def kube_to_read(self, key: ObjectKey) -> KubeClient:
        return self.deps.planes.get(key.plane).kube.as_owner(self.writer)

    def kube_to_write(self, key: ObjectKey) -> KubeClient:
        """The client for one write; leadership is checked for each, as the Lease may be lost."""
        if not self.deps.leadership.is_leading:
            raise TransientError("NotLeading", f"writing {key}: another process leads")
        return self.kube_to_read(key)

    # before a write --------------------------------------------------------------------------

    def defer(self, intent: Ensure | SetStatus, section: ObjectSection) -> Outcome | None:
        """The outcome of a provisional write that is deferred; None if it is to be sent now."""
        if not intent.may_defer:
            return None
        defer_for = self.deps.status_defer if intent.defer_for is None else intent.defer_for
        left = self.memory.defer(intent.key, section, defer_for, self.deps.clock.monotonic())
        return Outcome(intent, Effect.HELD, "Provisional", wait=left) if left > ZERO else None

    def guarded(self, guards: Sequence[Guard]) -> AbstractAsyncContextManager[Refusal | None]:
        """Holds the locks of the guards, sorted against deadlocks, and checks the guards."""
        return self._guarded(guards) if guards else _UNGUARDED

    @asynccontextmanager
    async def _guarded(self, guards: Sequence[Guard]) -> AsyncGenerator[Refusal | None]:
        locks, held = self.deps.locks, list[ObjectKey]()
        try:
            for lock in sorted({guard.lock for guard in guards if guard.lock is not None}):
                await locks.take(lock)
                held.append(lock)
            yield await self._find_refusal(guards)
        finally:
            for lock in held:
                locks.release(lock)

    async def _find_refusal(self, guards: Sequence[Guard]) -> Refusal | None:
        locks = self.deps.locks
        for guard in guards:
            read_at = self.deps.clock.monotonic()
            if locks.is_known_alive(guard, read_at):
                continue
            why = await find_refusal(
                guard, lambda plane: self.deps.planes.get(plane).kube.as_owner(self.writer)
            )
            locks.record(guard, read_at, is_refused=why is not None)
            if why is not None:
                self._await_root_gone(guard)
                return Refusal(guard, why)
        return None

    def _await_root_gone(self, guard: Guard) -> None:
        """Holds the key of a root that is gone on the server but cached: otherwise each child that
        the garbage collector deletes would enqueue the key and be created again.
        """
        if isinstance(guard, RequireExists) and guard.uid is not None and guard.key == self.root:
            self.expectations.expect_deleting(self.root, guard.key, guard.uid)

    def log_write(self, message: str, intent: Intent, paths: Sequence[str] = ()) -> None:
        """Logs a write before it is sent, with the paths of the patch and never with values."""
        key = intent.key
        name = f"{key.namespace}/{key.name}" if key.namespace else key.name
        fields: dict[str, object] = {key.kind.kind: name, "onPlane": key.plane}
        if paths:
            fields["diff"] = list(paths)
        # Writes to a suspended project are not sent: its one line is logged by the registry.
        engaged = self.deps.planes.find(key.plane)
        is_held = engaged is not None and engaged.lane.suspension.is_suspended
        level = logging.DEBUG if is_held else logging.INFO
        logger.log(level, message, extra={**fields, "reason": intent.reason})

    # sending ---------------------------------------------------------------------------------

    async def or_read(
        self,
        request: Awaitable[T],
        key: ObjectKey,
        *,
        is_done: Callable[[Snapshot | Absent], bool],
    ) -> T | Snapshot | Absent:
        """The response; if it was lost, the live object, provided that the write `is_done`."""
        cached = self._cached(key)
        try:
            return await request
        except ConflictError:
            if self._cached(key) == cached:
                await self._await_live(key)
            raise
        except OutcomeUnknownError as unknown:
            try:
                live = await self.kube_to_read(key).get(key)
            except ReconcileError:
                raise unknown from None  # still unknown; the next reconcile reads first
            if isinstance(live, Snapshot):
                self.expectations.expect_written(self.root, live)
            if is_done(live):
                return live
            raise

    def _cached(self, key: ObjectKey) -> Metadata | None:
        store = self.deps.planes.find_store(key.plane, key.kind)
        entry = None if store is None else store.entry(key.namespace, key.name)
        return None if entry is None else entry.metadata

    async def _await_live(self, key: ObjectKey) -> None:
        """Holds the key after a conflict until the cache has the live version. Without this, the
        outdated version is sent again and again until the watch has caught up.
        """
        try:
            live = await self.kube_to_read(key).get(key)
        except ReconcileError:
            return  # the retry meets the same conflict or a newer cache
        cached = self._cached(key)
        if isinstance(live, Snapshot):
            self.expectations.expect_written(self.root, live)
        elif cached is not None:
            self.expectations.expect_gone(self.root, key, cached.uid)

    async def patch(
        self,
        existing: Snapshot,
        steps: Sequence[PatchStep],
        *,
        is_done: Callable[[Snapshot | Absent], bool],
    ) -> Snapshot | Absent:
        """Sends a JSON patch with a test of the UID; a failed test is a conflict."""
        key = existing.key
        tests = (test_of(existing.metadata.uid, "metadata", "uid"),)
        request = self.kube_to_write(key).patch_json(
            key, [*tests, *steps], is_terminating=existing.metadata.is_deleting
        )
        answer = await self.or_read(request, key, is_done=is_done)
        self.note_write(existing, answer)
        return answer

    # after a write ---------------------------------------------------------------------------

    def note_write(
        self, existing: Snapshot, answer: Snapshot | Absent, *, ignore_own_event: bool = False
    ) -> None:
        """Remembers a write and holds the key until the caches have seen it."""
        if isinstance(answer, Absent) or _is_released(answer):
            self.expectations.expect_gone(self.root, existing.key, existing.metadata.uid)
            return
        first = self.own_write.get(existing.key)
        self.own_write[existing.key] = OwnWrite(first.before if first else existing, answer)
        self.expectations.expect_written(self.root, answer, ignore_own_event=ignore_own_event)

    def equal(self, intent: Ensure | SetStatus, section: ObjectSection) -> Outcome:
        self.memory.end_deferral(intent.key, section)
        return Outcome(intent, Effect.EQUAL)


def _is_released(answer: Snapshot) -> bool:
    """Whether a deleting object has no finalizer left: the server deletes it with this write."""
    return answer.metadata.is_deleting and not answer.metadata.finalizers


def moved_on(key: ObjectKey) -> ConflictError:
    """The conflict for an object that is not the one that the plan observed."""
    return ConflictError("MovedOn", f"writing {key}: it is not as it was seen", plane=key.plane)


def test_of(value: JsonValue, *path: str | int) -> PatchStep:
    return PatchStep(PatchOp.TEST, pointer(*path), value)
