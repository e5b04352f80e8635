"""The applier: it carries out plans, and is the only writer of a controller.

Before each write the owned fields are compared, so that a settled object gets no request; each
destructive write carries the UID it means. A failed intent stops none of the others. Written
versions are recorded in `WriteExpectations`, so that the next reconcile does not start from older
caches.

```
look up (cache, else live) → compare → equal? → defer? → guards → send → record the expectation
                                                                  └ no response: read and compare
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from compute_operator_kit.apply import finalizers, objects, scale, status
from compute_operator_kit.apply.context import ApplyContext, ApplyDeps
from compute_operator_kit.apply.write_expectations import WriteExpectations
from compute_operator_kit.apply.write_memory import WriteMemory
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import (
    ProjectSuspendedError,
    ReconcileError,
    RejectedError,
)
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.intents import (
    AddFinalizer,
    Delete,
    Ensure,
    Intent,
    Plan,
    RecordEvent,
    RemoveFinalizer,
    RemoveGate,
    RequeueAfter,
    SetScale,
    SetStatus,
)
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome


class Applier:
    """The writer of one controller, for all its reconciles."""

    def __init__(self, deps: ApplyDeps, owner: FieldOwner, expectations: WriteExpectations) -> None:
        self._deps = deps
        self._owner = owner
        self._expectations = expectations
        self._memory = WriteMemory()

    def begin(self, root: ObjectKey) -> Session:
        """A session for one reconcile."""
        return Session(
            ApplyContext(root, self._deps, self._owner, self._expectations, self._memory)
        )

    def forget(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        """Drops the memory of objects of a plane that is gone."""
        self._memory.forget(is_gone)


class Session:
    """The writes of one reconcile; each plan builds on the writes of the plans before it."""

    def __init__(self, context: ApplyContext) -> None:
        self._context = context
        self._outcomes: list[Outcome] = []

    @property
    def so_far(self) -> Applied:
        """The outcomes of all plans of this reconcile."""
        return Applied(tuple(self._outcomes))

    async def apply(self, plan: Plan) -> Applied:
        """Carries out all intents; errors are outcomes, so that a status can report them."""
        begin = len(self._outcomes)
        for intent in plan:
            self._outcomes.append(await self._attempt(intent))
        return Applied(tuple(self._outcomes[begin:]))

    async def read(self, key: ObjectKey) -> Snapshot | Absent:
        """A live read, for objects that no cache holds."""
        return await self._context.kube_to_read(key).get(key)

    async def _attempt(self, intent: Intent) -> Outcome:
        memory, clock = self._context.memory, self._context.deps.clock
        refused = memory.find_refused(intent)
        if refused is not None and (left := refused.until - clock.monotonic()) > ZERO:
            reason = refused.error.reason
            return Outcome(intent, Effect.REFUSED, reason, wait=left, error=refused.error)
        try:
            return await self._carry_out(intent)
        except ProjectSuspendedError as error:  # sent again at once after the resume
            return Outcome(intent, Effect.FAILED, error.reason, error=error)
        except RejectedError as error:
            if not intent.key.kind.is_confidential:
                memory.refuse(intent, error, clock.monotonic())
            return Outcome(intent, Effect.FAILED, error.reason, error=error)
        except ReconcileError as error:
            return Outcome(intent, Effect.FAILED, error.reason, error=error)

    async def _carry_out(self, intent: Intent) -> Outcome:
        match intent:
            case Ensure():
                return await objects.ensure(self._context, intent)
            case Delete():
                return await objects.delete(self._context, intent)
            case SetStatus():
                return await status.set_status(self._context, intent)
            case AddFinalizer():
                return await finalizers.add_finalizer(self._context, intent)
            case RemoveFinalizer():
                return await finalizers.remove_finalizer(self._context, intent)
            case RemoveGate():
                return await self._remove_gate(intent)
            case SetScale():
                return await scale.set_scale(self._context, intent)
            case RecordEvent():
                return self._record_event(intent)
            case RequeueAfter(reason=reason, retry_after=delay):
                return Outcome(intent, Effect.NOTED, reason, wait=delay)
            case _:
                assert_never(intent)

    async def _remove_gate(self, intent: RemoveGate) -> Outcome:
        """Removes a gate only if the status that it depends on is stored on the server."""
        if intent.after is not None:
            is_stored = self._effect_of(intent.after) in {Effect.WRITTEN, Effect.EQUAL}
            if not is_stored:
                return Outcome(intent, Effect.SKIPPED, "StatusNotWritten")
        return await finalizers.remove_gate(self._context, intent)

    def _record_event(self, intent: RecordEvent) -> Outcome:
        if intent.after is not None and self._effect_of(intent.after) is not Effect.WRITTEN:
            return Outcome(intent, Effect.SKIPPED, "NothingHappened")
        self._context.deps.recorder.record(intent)
        return Outcome(intent, Effect.NOTED, intent.reason)

    def _effect_of(self, intent: Intent) -> Effect | None:
        """The effect of an earlier intent of this reconcile."""
        matching = (outcome for outcome in reversed(self._outcomes) if outcome.intent == intent)
        return next((outcome.effect for outcome in matching), None)
