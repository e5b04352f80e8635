"""What every kind of write has in common: finding the object, guards, sending once, telling the
gate.

One desk serves one pass on one key. It remembers what this pass wrote, so that a later intent of
the same pass builds on it instead of on a cache that cannot have seen it yet. Which intent needs
what is decided by its neighbours.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from compute_operator_kit.clock import ZERO, Clock
from compute_operator_kit.errors import (
    ConflictError,
    OutcomeUnknownError,
    ReconcileError,
    TransientError,
)
from compute_operator_kit.guards import Locks, find_refusal
from compute_operator_kit.holding import Memory, Part
from compute_operator_kit.intents import Emit, Ensure, Guard, Intent, OnlyUnder, SetStatus
from compute_operator_kit.json_patch import PatchOp, PatchStep, pointer
from compute_operator_kit.keys import ObjectKey, Uid
from compute_operator_kit.kube import EVERYTHING, Kube, Writer
from compute_operator_kit.objects import Absent, Metadata, Snapshot, Unreadable
from compute_operator_kit.outcomes import Effect, Outcome
from compute_operator_kit.planes import Planes
from compute_operator_kit.wire import JsonValue
from compute_operator_kit.write_gate import WriteGate

T = TypeVar("T")

logger = logging.getLogger(__name__)

_UNGUARDED: Final[AbstractAsyncContextManager[None]] = nullcontext(None)


class Leadership(Protocol):
    """Whether this process may write at this very moment."""

    @property
    def is_leading(self) -> bool: ...


class AlwaysLeading:
    """For one process alone, and for tests."""

    @property
    def is_leading(self) -> bool:
        return True


class Recorder(Protocol):
    """Takes note of an event; never raises, never waits."""

    def record(self, emit: Emit) -> None: ...


class NoRecorder:
    """Drops events."""

    def record(self, emit: Emit) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Means:
    """What the writers of one process share."""

    planes: Planes
    clock: Clock
    leadership: Leadership = field(default_factory=AlwaysLeading)
    recorder: Recorder = field(default_factory=NoRecorder)
    status_settle: timedelta = timedelta(milliseconds=200)  # runtime.md, provisional status
    locks: Locks = field(default_factory=Locks)


class Own(msgspec.Struct, frozen=True):
    """What this pass wrote to one object: the object before the first write and after the last."""

    before: Snapshot
    after: Snapshot


@dataclass(frozen=True, slots=True)
class Refusal:
    """A guard that said no, and why."""

    guard: Guard
    why: str

    def outcome(self, intent: Intent) -> Outcome:
        return Outcome(intent, Effect.REFUSED, self.why, wait=self.guard.retry_after)


class Desk(msgspec.Struct, frozen=True):
    """For one pass on one key."""

    root: ObjectKey
    means: Means
    writer: Writer
    gate: WriteGate
    memory: Memory
    own: dict[ObjectKey, Own] = msgspec.field(default_factory=dict)

    # finding ---------------------------------------------------------------------------------

    async def find(self, key: ObjectKey, *, is_known: bool = True) -> Snapshot | Absent:
        """As this pass wrote it, else as the cache has it, else as the plane says.

        `is_known`: somebody has seen the object. Then its absence from a cache that holds only what
        a selector chose says nothing.
        """
        if key in self.own:
            return self.own[key].after
        store = self.means.planes.find_store(key.plane, key.kind)
        cached = Unreadable("NotWatched") if store is None else store.get(key.namespace, key.name)
        is_beside = is_known and isinstance(cached, Absent) and self._is_selected(key)
        is_hollow = isinstance(cached, Snapshot) and not cached.has_body
        if isinstance(cached, Unreadable) or is_beside or is_hollow:
            return await self.kube_to_read(key).get(key)
        return cached

    def _is_selected(self, key: ObjectKey) -> bool:
        engaged = self.means.planes.find(key.plane)
        watched = engaged.watched.get(key.kind) if engaged is not None else None
        return watched is not None and watched.selector != EVERYTHING

    async def find_same(self, key: ObjectKey, uid: Uid) -> Snapshot:
        """The very object the plan saw; anything else means that the world moved on."""
        found = await self.find(key)
        if isinstance(found, Absent) or found.metadata.uid != uid:
            raise moved_on(key)
        return found

    def kube_to_read(self, key: ObjectKey) -> Kube:
        return self.means.planes.get(key.plane).kube.acting_as(self.writer)

    def kube_to_write(self, key: ObjectKey) -> Kube:
        """Asked for right before each request: a Lease may be lost between two of them."""
        if not self.means.leadership.is_leading:
            raise TransientError("NotLeading", f"writing {key}: another process leads")
        return self.kube_to_read(key)

    # before a write --------------------------------------------------------------------------

    def hold(self, intent: Ensure | SetStatus, part: Part) -> Outcome | None:
        """Keeps a provisional write back for its moment; None when it goes out now."""
        if not intent.provisional:
            return None
        settle = self.means.status_settle if intent.settle is None else intent.settle
        left = self.memory.hold(intent.key, part, settle, self.means.clock.monotonic())
        return Outcome(intent, Effect.HELD, "Provisional", wait=left) if left > ZERO else None

    def guarded(self, guards: Sequence[Guard]) -> AbstractAsyncContextManager[Refusal | None]:
        """Holds the guards' locks, in one order for everybody, and asks the guards under them."""
        return self._guarded(guards) if guards else _UNGUARDED

    @asynccontextmanager
    async def _guarded(self, guards: Sequence[Guard]) -> AsyncGenerator[Refusal | None]:
        locks, held = self.means.locks, list[ObjectKey]()
        try:
            for lock in sorted({guard.lock for guard in guards if guard.lock is not None}):
                await locks.take(lock)
                held.append(lock)
            yield await self._find_refusal(guards)
        finally:
            for lock in held:
                locks.give_back(lock)

    async def _find_refusal(self, guards: Sequence[Guard]) -> Refusal | None:
        locks = self.means.locks
        for guard in guards:
            asked_at = self.means.clock.monotonic()
            if locks.is_known_alive(guard, asked_at):
                continue
            why = await find_refusal(
                guard, lambda plane: self.means.planes.get(plane).kube.acting_as(self.writer)
            )
            locks.note(guard, asked_at, is_refused=why is not None)
            if why is not None:
                self._await_root_gone(guard)
                return Refusal(guard, why)
        return None

    def _await_root_gone(self, guard: Guard) -> None:
        """A root that is gone on the server and not in the cache: every child that the garbage
        collector takes would wake the key, and be wanted again.
        """
        if isinstance(guard, OnlyUnder) and guard.uid is not None and guard.key == self.root:
            self.gate.deleted(self.root, guard.key, guard.uid)

    def announce(self, doing: str, intent: Intent, paths: Sequence[str] = ()) -> None:
        """The world is about to change: one line, with paths and never with values."""
        key = intent.key
        place = f"{key.namespace}/{key.name}" if key.namespace else key.name
        fields: dict[str, object] = {key.kind.kind: place, "onPlane": key.plane}
        if paths:
            fields["diff"] = list(paths)
        logger.info(doing, extra={**fields, "reason": intent.reason})

    # sending ---------------------------------------------------------------------------------

    async def or_read(
        self,
        request: Awaitable[T],
        key: ObjectKey,
        *,
        is_done: Callable[[Snapshot | Absent], bool],
    ) -> T | Snapshot | Absent:
        """The answer; where none came, what is there now, if that is what the request was for."""
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
                raise unknown from None  # still not known; the next pass reads first
            if isinstance(live, Snapshot):
                self.gate.wrote_at(self.root, live)
            if is_done(live):
                return live
            raise

    def _cached(self, key: ObjectKey) -> Metadata | None:
        store = self.means.planes.find_store(key.plane, key.kind)
        entry = None if store is None else store.entry(key.namespace, key.name)
        return None if entry is None else entry.metadata

    async def _await_live(self, key: ObjectKey) -> None:
        """After a conflict that the cache cannot explain yet: the key waits until it can. Without
        this, the same version is sent again until the watch has caught up.
        """
        try:
            live = await self.kube_to_read(key).get(key)
        except ReconcileError:
            return  # the retry finds out
        cached = self._cached(key)
        if isinstance(live, Snapshot):
            self.gate.wrote_at(self.root, live)
        elif cached is not None:
            self.gate.vanished(self.root, key, cached.uid)

    async def patch(
        self,
        found: Snapshot,
        steps: Sequence[PatchStep],
        *,
        is_done: Callable[[Snapshot | Absent], bool],
    ) -> Snapshot | Absent:
        """One JSON patch under a test of the UID; a failed test is a conflict."""
        key = found.key
        tests = (test_of(found.metadata.uid, "metadata", "uid"),)
        request = self.kube_to_write(key).patch_json(key, [*tests, *steps])
        answer = await self.or_read(request, key, is_done=is_done)
        self.note(found, answer)
        return answer

    # after a write ---------------------------------------------------------------------------

    def note(self, found: Snapshot, answer: Snapshot | Absent, *, is_final: bool = False) -> None:
        """Remembers a write, and has the key wait until the caches have seen it."""
        if isinstance(answer, Absent) or _is_released(answer):
            self.gate.vanished(self.root, found.key, found.metadata.uid)
            return
        first = self.own.get(found.key)
        self.own[found.key] = Own(first.before if first else found, answer)
        self.gate.wrote_at(self.root, answer, is_final=is_final)

    def equal(self, intent: Ensure | SetStatus, part: Part) -> Outcome:
        self.memory.settle(intent.key, part)
        return Outcome(intent, Effect.EQUAL)


def _is_released(answer: Snapshot) -> bool:
    """Nothing holds a deleting object any more: this answer is the last that will be
    heard of it.
    """
    return answer.metadata.is_deleting and not answer.metadata.finalizers


def moved_on(key: ObjectKey) -> ConflictError:
    """The object is not the one the plan was made for."""
    return ConflictError("MovedOn", f"writing {key}: it is not as it was seen", plane=key.plane)


def test_of(value: JsonValue, *place: str | int) -> PatchStep:
    return PatchStep(PatchOp.TEST, pointer(*place), value)
