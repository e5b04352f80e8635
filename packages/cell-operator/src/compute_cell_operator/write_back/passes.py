"""One pass over one name: its copy is written, or taken away, or left alone (cell.md 11, 12).

```
caches ─► plan ─► settled
             └──► the hub is asked ─► caches, once more ─► plan ─► written, refused, or waits
```

What is kept between passes only saves requests or delays them; a process that was restarted does
the same without it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Final, TypeAlias

from compute_api_types import labels, reasons
from compute_cell_operator.assembly import Tools
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import HUB
from compute_cell_operator.write_back.checks import Refusal
from compute_cell_operator.write_back.hub_answers import HubAnswers
from compute_cell_operator.write_back.lag import End
from compute_cell_operator.write_back.leftovers import Copies
from compute_cell_operator.write_back.observe import (
    NOTHING_KEPT,
    Document,
    HubAnswer,
    Kept,
    Seen,
    Vanished,
    observe,
)
from compute_cell_operator.write_back.plan import (
    AskHub,
    Decided,
    derive_hashes,
    plan,
    plan_removal,
)
from compute_cell_operator.write_back.same_server import SameServer
from compute_cell_operator.write_back.sweep import plan_refusal
from compute_operator_kit.clock import ZERO
from compute_operator_kit.errors import ConflictError, InvariantError
from compute_operator_kit.intents import Delete, Ensure, Plan, Wait
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.kube import Writer
from compute_operator_kit.mass_delete import Held
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.reconcile import Pass

REFUSALS: Final = "compute_writeback_refusals_total"
SWEEP_DELETIONS: Final = "compute_sweep_deletions_total"
SWEEP_REFUSALS: Final = "compute_sweep_refusals_total"
TAKEN: Final = "AlreadyExists"  # what the kit says of a create whose name is taken

logger = logging.getLogger(__name__)

Done: TypeAlias = tuple[Applied, End]


class Passes:
    """Over all names."""

    def __init__(self, tools: Tools, copies: Copies, writer: Writer) -> None:
        self._tools = tools
        self._copies = copies
        self._cell = tools.settings.cell.name
        self._answers = HubAnswers(lambda: tools.reach.kube(HUB, writer), tools.clock)
        self._same_server = SameServer(tools.reach, writer)
        self._kept: dict[ObjectKey, Kept] = {}
        self._refused: dict[ObjectKey, Refusal] = {}
        self._gathering: dict[ObjectKey, timedelta] = {}  # creates that wait, since when
        # An increase of a series that begins with its first event misses that event.
        tools.measures.count(SWEEP_REFUSALS, 0, kind=INSTANCE.kind)

    def __len__(self) -> int:
        """Of how many names anything is kept."""
        return len(self._kept.keys() | self._refused.keys() | self._gathering.keys())

    async def look(self, key: ObjectKey, work: Pass) -> Done:
        with work.spans.step("observe"):
            seen = observe(key, work.caches, self._cell, kept=self._kept.get(key, NOTHING_KEPT))
        if seen is None:
            return Applied(), End.NOT_YET
        if isinstance(seen, Vanished):
            return await self._remove(key, seen, work)
        with work.spans.step("plan"):
            decision = plan(seen)
        if isinstance(decision, AskHub):
            return await self._ask(seen, decision, work)
        return self._conclude(seen, decision, await self._apply(decision, work))

    async def _ask(self, seen: Seen, asked: AskHub, work: Pass) -> Done:
        """Decides again with what the hub said, and with what the caches say by now."""
        if (left := self._gather(seen.instance.key, asked)) > ZERO:
            waits = Plan.of(Wait(seen.instance.key, reasons.ABSENT, left))
            return await work.session.apply(waits), End.NOT_YET
        if await self._same_server.is_proven():
            return Applied(), End.NOTHING_TO_DO
        kept = self._kept.get(seen.instance.key, NOTHING_KEPT)
        answer = await self._answers.ask(
            seen, is_create=asked.is_create, is_taken=asked.is_create and kept.is_taken
        )
        return await self._decide(seen, asked, answer, work)

    async def _decide(self, seen: Seen, asked: AskHub, answer: HubAnswer, work: Pass) -> Done:
        key = seen.instance.key
        kept = self._kept.get(key, NOTHING_KEPT)
        again = observe(key, work.caches, self._cell, kept=kept, hub=answer)
        if not isinstance(again, Seen) or not is_answer_for(again, seen, asked):
            return Applied(), End.NOT_YET  # what changed meanwhile has woken the key again
        decision = plan(again)
        if isinstance(decision, AskHub):
            raise InvariantError(f"writing {key} back: the hub was asked, and it is not enough")
        applied = await self._apply(decision, work)
        if answer.copy is None and is_name_taken(applied):
            # Once more, from check 5 on, with what is there (cell.md 11).
            found = await self._answers.find_copy(seen.copy_key)
            return await self._decide(seen, asked, replace(answer, copy=found), work)
        return self._conclude(again, decision, applied)

    def _gather(self, key: ObjectKey, asked: AskHub) -> timedelta:
        """How much longer a copy is not made, because what it says is about to change.

        Counted from the first look, so that a stream of changes cannot put it off for ever.
        """
        if not asked.is_provisional:
            self._gathering.pop(key, None)
            return ZERO
        now = self._tools.clock.monotonic()
        since = self._gathering.setdefault(key, now)
        return max(ZERO, since + self._tools.settings.clients.status_settle - now)

    async def _apply(self, decision: Decided, work: Pass) -> Applied:
        with work.spans.step("apply"):
            return await work.session.apply(decision.plan)

    def _conclude(self, seen: Seen, decision: Decided, applied: Applied) -> Done:
        self._note(seen, decision, applied)
        return applied, derive_end(decision.plan, applied)

    def _note(self, seen: Seen, decision: Decided, applied: Applied) -> None:
        key = seen.instance.key
        if decision.plan.writes and not applied.errors:
            self._gathering.pop(key, None)
        self._tell_refusal(key, decision.refusal)
        misses = seen.owner_misses + 1 if decision.is_ownerless else 0
        written = seen.written
        if decision.plan.writes and not applied.errors:
            # Everything equal though the hashes differ: an older hub has pruned what we sent, and
            # what is left of the difference is not sent, nor asked about, again.
            is_residue = all(found.effect is Effect.EQUAL for found in applied.outcomes)
            written = derive_hashes(replace(seen, written=None)) if is_residue else None
        is_taken = seen.hub is not None and isinstance(seen.hub.copy, Document)
        self._keep(key, Kept(written, misses, is_taken=is_taken))

    def _keep(self, key: ObjectKey, kept: Kept) -> None:
        if kept == NOTHING_KEPT:
            self._kept.pop(key, None)
        else:
            self._kept[key] = kept

    def _tell_refusal(self, key: ObjectKey, refusal: Refusal | None) -> None:
        """Counted every time, logged once per state."""
        before = self._refused.pop(key, None)
        if refusal is None:
            return
        self._refused[key] = refusal
        self._tools.measures.count(REFUSALS, reason=refusal.reason.value)
        if refusal != before:
            fields = {"Instance": f"{key.namespace}/{key.name}", "reason": refusal.reason.value}
            logger.warning(
                "Leaving the copy of an Instance as it is",
                extra={**fields, "error": refusal.message},
            )

    # --- release --------------------------------------------------------------------------------

    async def _remove(self, key: ObjectKey, seen: Vanished, work: Pass) -> Done:
        self._kept.pop(key, None)
        self._refused.pop(key, None)
        self._gathering.pop(key, None)
        if not isinstance(seen.copy, Document):
            self._copies.forget(key)
            return Applied(), End.NOTHING_TO_DO
        if await self._same_server.is_proven():
            return Applied(), End.NOTHING_TO_DO
        ruling = await self._copies.rule(key)
        if isinstance(ruling, Held):
            return await self._refuse(key, ruling, work), End.NOT_YET
        is_inferred = not self._copies.is_seen_going(key)
        decided = plan_removal(self._cell, key, seen.copy)
        applied = await work.session.apply(decided)
        self._count_removal(applied, is_inferred=is_inferred)
        return applied, derive_end(decided, applied)

    async def _refuse(self, key: ObjectKey, held: Held, work: Pass) -> Applied:
        if held.is_news:
            self._tools.measures.count(SWEEP_REFUSALS, kind=INSTANCE.kind)
        return await work.session.apply(plan_refusal(key, held, self._tools.operator))

    def _count_removal(self, applied: Applied, *, is_inferred: bool) -> None:
        for outcome in applied.outcomes:
            is_gone = isinstance(outcome.intent, Delete) and outcome.effect is Effect.WRITTEN
            if is_gone and is_inferred:
                self._tools.measures.count(SWEEP_DELETIONS, kind=INSTANCE.kind)


def is_name_taken(applied: Applied) -> bool:
    """Whether a copy could not be made because there is something of its name."""
    return any(
        isinstance(found.intent, Ensure)
        and isinstance(found.error, ConflictError)
        and found.error.reason == TAKEN
        for found in applied.outcomes
    )


def is_answer_for(again: Seen, seen: Seen, asked: AskHub) -> bool:
    """Whether what the hub said is about what the caches say now.

    Of another owner it says nothing, and a copy that has gone meanwhile would be a create, for
    which the answer may be too old.
    """
    name = labels.WORKLOAD_DEPLOYMENT_NAME
    before, after = seen.instance.metadata.labels, again.instance.metadata.labels
    is_create = not isinstance(again.copy, Document)
    return before.get(name) == after.get(name) and (asked.is_create or not is_create)


def derive_end(decided: Plan, applied: Applied) -> End:
    """What became of the change that led here."""
    if not decided.writes:
        # An owner that is not there, a refusal: not the hub's delay. What is unreadable is.
        is_unknown = any(
            isinstance(intent, Wait) and intent.reason not in _ANSWERED for intent in decided
        )
        return End.NOT_YET if is_unknown else End.NOTHING_TO_DO
    if any(isinstance(intent, Delete) and intent.reason == reasons.REPLACED for intent in decided):
        return End.NOT_YET  # the copy of the new Instance is still to come
    effects = {found.effect for found in applied.outcomes if found.intent in decided.writes}
    if effects - {Effect.WRITTEN, Effect.EQUAL}:
        return End.NOT_YET
    return End.ACKNOWLEDGED if Effect.WRITTEN in effects else End.NOTHING_TO_DO


_ANSWERED: Final = frozenset({reasons.OWNER_ABSENT, reasons.REFUSED})
