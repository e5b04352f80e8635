"""Carries out a plan: the one place that writes.

Every write is preceded by a comparison of the fields we own, so a settled world gets no request.
Every destructive one carries the UID it means. A failed intent stops none of the others, and each
failure is kept for the caller. What was written is told to the gate, so that the key is not looked
at again from a view older than that.

```
find (cache, else the plane) → compare → equal? → hold back? → guards → send → tell the gate
                                                                        └ no answer: read, and judge
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from compute_operator_kit.apply import entries, status, wanted
from compute_operator_kit.apply.desk import Desk, Means
from compute_operator_kit.clock import ZERO
from compute_operator_kit.errors import ReconcileError, RejectedError
from compute_operator_kit.holding import Memory
from compute_operator_kit.intents import (
    AddFinalizer,
    Delete,
    Emit,
    Ensure,
    Intent,
    Plan,
    RemoveFinalizer,
    RemoveGate,
    SetStatus,
    Wait,
)
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.kube import Writer
from compute_operator_kit.objects import Absent, Snapshot
from compute_operator_kit.outcomes import Applied, Effect, Outcome
from compute_operator_kit.write_gate import WriteGate


class Applier:
    """The writer of one controller, over all its passes."""

    def __init__(self, means: Means, writer: Writer, gate: WriteGate) -> None:
        self._means = means
        self._writer = writer
        self._gate = gate
        self._memory = Memory()

    def begin(self, root: ObjectKey) -> Session:
        """For one pass on one key."""
        return Session(Desk(root, self._means, self._writer, self._gate, self._memory))

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        """Drops what is remembered about objects of a plane that is gone."""
        self._memory.forget(is_gone)


class Session:
    """One pass: plans carried out one after another, each knowing what the one before wrote."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._outcomes: list[Outcome] = []

    @property
    def so_far(self) -> Applied:
        """What became of every plan of this pass."""
        return Applied(tuple(self._outcomes))

    async def apply(self, plan: Plan) -> Applied:
        """Carries out all of it; errors are in the answer, so that a status can still
        tell of them.
        """
        begin = len(self._outcomes)
        for intent in plan:
            self._outcomes.append(await self._attempt(intent))
        return Applied(tuple(self._outcomes[begin:]))

    async def read(self, key: ObjectKey) -> Snapshot | Absent:
        """A fresh answer of the plane, for what no cache holds; decide from caches
        wherever you can.
        """
        return await self._desk.kube_to_read(key).get(key)

    async def _attempt(self, intent: Intent) -> Outcome:
        memory, clock = self._desk.memory, self._desk.means.clock
        refused = memory.find_refused(intent)
        if refused is not None and (left := refused.until - clock.monotonic()) > ZERO:
            reason = refused.error.reason
            return Outcome(intent, Effect.REFUSED, reason, wait=left, error=refused.error)
        try:
            return await self._carry_out(intent)
        except RejectedError as error:
            memory.refuse(intent, error, clock.monotonic())
            return Outcome(intent, Effect.FAILED, error.reason, error=error)
        except ReconcileError as error:
            return Outcome(intent, Effect.FAILED, error.reason, error=error)

    async def _carry_out(self, intent: Intent) -> Outcome:
        match intent:
            case Ensure():
                return await wanted.ensure(self._desk, intent)
            case Delete():
                return await wanted.delete(self._desk, intent)
            case SetStatus():
                return await status.set_status(self._desk, intent)
            case AddFinalizer():
                return await entries.add_finalizer(self._desk, intent)
            case RemoveFinalizer():
                return await entries.remove_finalizer(self._desk, intent)
            case RemoveGate():
                return await self._remove_gate(intent)
            case Emit():
                return self._emit(intent)
            case Wait(reason=reason, retry_after=delay):
                return Outcome(intent, Effect.NOTED, reason, wait=delay)
            case _:
                assert_never(intent)

    async def _remove_gate(self, intent: RemoveGate) -> Outcome:
        """A gate opens on what stands on the server, never on what we only meant to write."""
        if intent.after is not None:
            stands = self._effect_of(intent.after) in {Effect.WRITTEN, Effect.EQUAL}
            if not stands:
                return Outcome(intent, Effect.SKIPPED, "StatusNotWritten")
        return await entries.remove_gate(self._desk, intent)

    def _emit(self, intent: Emit) -> Outcome:
        if intent.after is not None and self._effect_of(intent.after) is not Effect.WRITTEN:
            return Outcome(intent, Effect.SKIPPED, "NothingHappened")
        self._desk.means.recorder.record(intent)
        return Outcome(intent, Effect.NOTED, intent.reason)

    def _effect_of(self, intent: Intent) -> Effect | None:
        """What became of an earlier intent of this pass."""
        found = (outcome for outcome in reversed(self._outcomes) if outcome.intent == intent)
        return next((outcome.effect for outcome in found), None)
