"""The reconcile of one write-back key: its copy is written, deleted or left alone (cell.md 11, 12).

```
caches ─► plan ─► settled
             └──► live reads of the hub ─► caches again ─► plan ─► written, refused, or waits
```

State between reconciles only saves requests or delays them: a new process decides the same without
it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeAlias

from compute_api_types import labels, reasons
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.planes import HUB, INSTANCE
from compute_cell_operator.write_back.checks import Refusal
from compute_cell_operator.write_back.hub_reads import HubReads
from compute_cell_operator.write_back.observe import (
    NOTHING_KEPT,
    HubFacts,
    InstanceDocument,
    Kept,
    ObservedCopy,
    Vanished,
    observe,
)
from compute_cell_operator.write_back.orphans import OrphanedCopies
from compute_cell_operator.write_back.plan import (
    AskHub,
    Decided,
    derive_hashes,
    plan,
    plan_refusal,
    plan_removal,
)
from compute_cell_operator.write_back.shared_server import SharedServer
from compute_cell_operator.write_back.status_lag import End
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.mass_delete import RemovalHeld
from compute_operator_kit.controller.reconcile import ReconcileContext
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.errors import ConflictError, InvariantError
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.intents.intents import Delete, Ensure, Plan, RequeueAfter
from compute_operator_kit.intents.outcomes import Applied, Effect

REFUSALS: Final = "compute_writeback_refusals_total"
SWEEP_DELETIONS: Final = "compute_sweep_deletions_total"
SWEEP_REFUSALS: Final = "compute_sweep_refusals_total"
TAKEN: Final = "AlreadyExists"  # reason of the kit's error for a create of a name that exists

logger = logging.getLogger(__name__)

Done: TypeAlias = tuple[Applied, End]


class WriteBackReconciler:
    """The reconcile of all names, and what is kept between two of them."""

    def __init__(self, deps: Dependencies, orphans: OrphanedCopies, writer: FieldOwner) -> None:
        self._deps = deps
        self._orphans = orphans
        self._cell = deps.settings.cell.name
        self._hub_reads = HubReads(lambda: deps.context.kube(HUB, writer), deps.clock)
        self._shared_server = SharedServer(deps.context, writer)
        self._kept: dict[ObjectKey, Kept] = {}
        self._refused: dict[ObjectKey, Refusal] = {}
        self._gathering: dict[ObjectKey, timedelta] = {}  # creates that wait, since when
        # `increase()` misses the event that creates a series, so the series starts at zero.
        deps.metrics.count(SWEEP_REFUSALS, 0, kind=INSTANCE.kind)

    def __len__(self) -> int:
        """The number of names with kept state."""
        return len(self._kept.keys() | self._refused.keys() | self._gathering.keys())

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Done:
        with work.spans.step("observe"):
            observed = observe(key, work.caches, self._cell, kept=self._kept.get(key, NOTHING_KEPT))
        if observed is None:
            return Applied(), End.NOT_YET
        if isinstance(observed, Vanished):
            return await self._remove(key, observed, work)
        with work.spans.step("plan"):
            decision = plan(observed)
        if isinstance(decision, AskHub):
            return await self._ask_hub(observed, decision, work)
        return self._conclude(observed, decision, await self._apply(decision, work))

    async def _ask_hub(self, observed: ObservedCopy, asked: AskHub, work: ReconcileContext) -> Done:
        """Plans again with live reads of the hub and the caches of that moment."""
        if (left := self._gather(observed.instance.key, asked)) > ZERO:
            waits = Plan.of(RequeueAfter(observed.instance.key, reasons.ABSENT, left))
            return await work.session.apply(waits), End.NOT_YET
        if await self._shared_server.is_proven():
            return Applied(), End.NOTHING_TO_DO
        kept = self._kept.get(observed.instance.key, NOTHING_KEPT)
        hub = await self._hub_reads.read(
            observed, is_create=asked.is_create, is_taken=asked.is_create and kept.is_taken
        )
        return await self._decide(observed, asked, hub, work)

    async def _decide(
        self, observed: ObservedCopy, asked: AskHub, hub: HubFacts, work: ReconcileContext
    ) -> Done:
        key = observed.instance.key
        kept = self._kept.get(key, NOTHING_KEPT)
        again = observe(key, work.caches, self._cell, kept=kept, hub=hub)
        if not isinstance(again, ObservedCopy) or not is_read_for(again, observed, asked):
            return Applied(), End.NOT_YET  # the change meanwhile has enqueued the key again
        decision = plan(again)
        if isinstance(decision, AskHub):
            raise InvariantError(f"writing {key} back: the hub was asked, and it is not enough")
        applied = await self._apply(decision, work)
        if hub.copy is None and is_name_taken(applied):
            # Again from check 5 on, with the existing object (cell.md 11).
            copy = await self._hub_reads.read_copy(observed.copy_key)
            return await self._decide(observed, asked, replace(hub, copy=copy), work)
        return self._conclude(again, decision, applied)

    def _gather(self, key: ObjectKey, asked: AskHub) -> timedelta:
        """How much longer a create waits, because the Instance is about to change.

        Counted from the first reconcile, so that a stream of changes cannot defer it for ever.
        """
        if not asked.is_provisional:
            self._gathering.pop(key, None)
            return ZERO
        now = self._deps.clock.monotonic()
        since = self._gathering.setdefault(key, now)
        return max(ZERO, since + self._deps.settings.clients.status_settle - now)

    async def _apply(self, decision: Decided, work: ReconcileContext) -> Applied:
        with work.spans.step("apply"):
            return await work.session.apply(decision.plan)

    def _conclude(self, observed: ObservedCopy, decision: Decided, applied: Applied) -> Done:
        self._note(observed, decision, applied)
        return applied, derive_end(decision.plan, applied)

    def _note(self, observed: ObservedCopy, decision: Decided, applied: Applied) -> None:
        key = observed.instance.key
        if decision.plan.writes and not applied.errors:
            self._gathering.pop(key, None)
        self._note_refusal(key, decision.refusal)
        misses = observed.owner_misses + 1 if decision.is_ownerless else 0
        written = observed.written
        if decision.plan.writes and not applied.errors:
            # All fields equal though the hashes differ: an older hub has pruned some of them. The
            # difference that remains is neither written nor read for again.
            is_residue = all(outcome.effect is Effect.EQUAL for outcome in applied.outcomes)
            written = derive_hashes(replace(observed, written=None)) if is_residue else None
        is_taken = observed.hub is not None and isinstance(observed.hub.copy, InstanceDocument)
        self._keep(key, Kept(written, misses, is_taken=is_taken))

    def _keep(self, key: ObjectKey, kept: Kept) -> None:
        if kept == NOTHING_KEPT:
            self._kept.pop(key, None)
        else:
            self._kept[key] = kept

    def _note_refusal(self, key: ObjectKey, refusal: Refusal | None) -> None:
        """Counted every time, logged when it changes."""
        before = self._refused.pop(key, None)
        if refusal is None:
            return
        self._refused[key] = refusal
        self._deps.metrics.count(REFUSALS, reason=refusal.reason.value)
        if refusal != before:
            fields = {"Instance": f"{key.namespace}/{key.name}", "reason": refusal.reason.value}
            logger.warning(
                "Leaving the copy of an Instance as it is",
                extra={**fields, "error": refusal.message},
            )

    # --- removal --------------------------------------------------------------------------------

    async def _remove(self, key: ObjectKey, observed: Vanished, work: ReconcileContext) -> Done:
        self._kept.pop(key, None)
        self._refused.pop(key, None)
        self._gathering.pop(key, None)
        if not isinstance(observed.copy, InstanceDocument):
            self._orphans.forget(key)
            return Applied(), End.NOTHING_TO_DO
        if await self._shared_server.is_proven():
            return Applied(), End.NOTHING_TO_DO
        ruling = await self._orphans.rule(key)
        if isinstance(ruling, RemovalHeld):
            return await self._refuse(key, ruling, work), End.NOT_YET
        is_inferred = not self._orphans.is_seen_deleted(key)
        decided = plan_removal(self._cell, key, observed.copy)
        applied = await work.session.apply(decided)
        self._count_removal(applied, is_inferred=is_inferred)
        return applied, derive_end(decided, applied)

    async def _refuse(self, key: ObjectKey, held: RemovalHeld, work: ReconcileContext) -> Applied:
        if held.is_news:
            self._deps.metrics.count(SWEEP_REFUSALS, kind=INSTANCE.kind)
        return await work.session.apply(plan_refusal(key, held, self._deps.operator))

    def _count_removal(self, applied: Applied, *, is_inferred: bool) -> None:
        for outcome in applied.outcomes:
            is_gone = isinstance(outcome.intent, Delete) and outcome.effect is Effect.WRITTEN
            if is_gone and is_inferred:
                self._deps.metrics.count(SWEEP_DELETIONS, kind=INSTANCE.kind)


def is_name_taken(applied: Applied) -> bool:
    """Whether a copy could not be created because an object of its name exists."""
    return any(
        isinstance(outcome.intent, Ensure)
        and isinstance(outcome.error, ConflictError)
        and outcome.error.reason == TAKEN
        for outcome in applied.outcomes
    )


def is_read_for(again: ObservedCopy, observed: ObservedCopy, asked: AskHub) -> bool:
    """Whether the live reads are those that the caches of now require.

    They do not cover another owner; and a copy deleted meanwhile needs a create, for which reads
    made for an update may be too old.
    """
    name = labels.WORKLOAD_DEPLOYMENT_NAME
    before, after = observed.instance.metadata.labels, again.instance.metadata.labels
    is_create = not isinstance(again.copy, InstanceDocument)
    return before.get(name) == after.get(name) and (asked.is_create or not is_create)


def derive_end(decided: Plan, applied: Applied) -> End:
    """What this reconcile did about the change."""
    if not decided.writes:
        # A missing owner and a refusal are answers of the hub; an unreadable hub is a delay.
        is_unknown = any(
            isinstance(intent, RequeueAfter) and intent.reason not in _ANSWERED
            for intent in decided
        )
        return End.NOT_YET if is_unknown else End.NOTHING_TO_DO
    if any(isinstance(intent, Delete) and intent.reason == reasons.REPLACED for intent in decided):
        return End.NOT_YET  # the copy of the new Instance follows
    effects = {outcome.effect for outcome in applied.outcomes if outcome.intent in decided.writes}
    if effects - {Effect.WRITTEN, Effect.EQUAL}:
        return End.NOT_YET
    return End.ACKNOWLEDGED if Effect.WRITTEN in effects else End.NOTHING_TO_DO


_ANSWERED: Final = frozenset({reasons.OWNER_ABSENT, reasons.REFUSED})
