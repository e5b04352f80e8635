"""Brings the claim of one slot to where it should be: verdict, plan, steps, and again.

```
verdict (watch, else a read) ─► plan ─► steps ─┐
     ▲                                         │ at most so often; what is left comes with the
     └─────────────────────────────────────────┘ next look
```

What a watch says is good enough to leave a claim alone, and to ask for one, since that reads first.
Nothing is given up or handed on before a read has confirmed it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from compute_api_types import names
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.quota_gate.apply import Applier, Later, Moved
from compute_cell_operator.quota_gate.case import Case
from compute_cell_operator.quota_gate.events import tell_lost
from compute_cell_operator.quota_gate.findings import ClaimDenied, ClaimInvalid, Said, Undecided
from compute_cell_operator.quota_gate.found import Holder, Lookup, derive_holder
from compute_cell_operator.quota_gate.ledger import Record
from compute_cell_operator.quota_gate.live import LiveCell
from compute_cell_operator.quota_gate.observe import observe_claim, read_recorded
from compute_cell_operator.quota_gate.plan import (
    ClaimPlan,
    Postpone,
    Recreated,
    RequestClaim,
    plan_claim,
)
from compute_cell_operator.quota_gate.surroundings import Around
from compute_operator_kit.keys import ObjectKey
from compute_quota_client import Absent, FoundClaim, Mismatch, QuotaError, Verdict, judge

ROUNDS: Final = 5  # release, request and adopt each lead to one more; a race to another

logger = logging.getLogger(__name__)


class Settler:
    """See the module's text."""

    def __init__(self, around: Around, cell: LiveCell, applier: Applier) -> None:
        self._around = around
        self._cell = cell
        self._applier = applier

    async def settle(self, case: Case) -> Said:
        verdict, is_watched = await self._begin(case)
        for _ in range(ROUNDS):
            plan = await self._plan(verdict, case)
            if not plan.steps:
                return self._finish(plan.said, case)
            if is_watched and not _is_mere_request(plan):
                # A watch may lag behind our own writes; a claim is given up only after a read.
                verdict, is_watched = await self._read(case), False
                continue
            self._foretell(plan, case)
            work = replace(case.work, is_known_absent=_is_known_absent(verdict, plan, case))
            done = await self._applier.apply(plan.steps, _claim_of(verdict), work)
            if isinstance(done, Moved | Later):
                return self._finish(plan.said, case)
            verdict, is_watched = done, False
            case.record.note_verdict(verdict, self._around.clock.now())
        return Undecided()

    async def _begin(self, case: Case) -> tuple[Verdict | Absent, bool]:
        """What to begin with, and whether a read has to confirm it before a claim is given up."""
        record, now = case.record, self._around.clock.now()
        verdict = case.project.watched(case.place)
        if verdict is not None and record.is_unconfirmed(verdict, now):
            return await self._read(case), False
        if verdict is not None and not _is_released(verdict, record):
            record.note_verdict(verdict, now)
            return verdict, True
        is_fresh = record.last is None and record.postponed is None
        if is_fresh and not case.subject.is_started and not case.subject.is_terminating:
            return Absent(), True  # nobody has seen one; making it reads first
        return await self._read(case), False

    def _finish(self, said: Said, case: Case) -> Said:
        """While the next attempt is waited for, the denial stays what is known."""
        postponed = case.record.postponed
        is_denied = postponed is not None and postponed.because is Recreated.DENIED
        return case.keep_denial(said) if is_denied else said

    def _foretell(self, plan: ClaimPlan, case: Case) -> None:
        """What is known already counts, should a step fail; and a loss is told when it is seen."""
        if isinstance(plan.said, ClaimDenied | ClaimInvalid):
            case.record.find(case.subject, plan.said)
            self._around.tell(case.record.key)
        for step in plan.steps:
            if isinstance(step, Postpone) and step.until is not None:
                self._around.recorder.record(tell_lost(case.record.key, case.subject))

    async def _read(self, case: Case) -> Verdict | Absent:
        verdict = await case.project.quota.read(case.place.namespace, case.place.name)
        case.record.note_verdict(verdict, self._around.clock.now(), is_read=True)
        return verdict

    async def _plan(self, verdict: Verdict | Absent, case: Case) -> ClaimPlan:
        judged = verdict
        holder = Holder.OURSELVES
        if not isinstance(verdict, Absent):
            judged = judge(verdict.found, case.work.wanted)
            if isinstance(judged, Mismatch):
                holder = await self._find_holder(judged.found, case)
        found = observe_claim(judged, holder)
        return plan_claim(found, case.record.slot(case.subject), self._around.clock.now())

    async def _find_holder(self, found: FoundClaim, case: Case) -> Holder:
        """Who the recorded UID is; elsewhere than in our own namespace only the cell can tell."""
        recorded = read_recorded(found)
        key = case.record.key
        if not names.is_dns_label(recorded.namespace):
            return Holder.NOBODY
        looked_up: Lookup | None = None
        if recorded.uid and recorded.namespace != key.namespace:
            there = ObjectKey(key.plane, INSTANCE, recorded.namespace, key.name)
            looked_up = await self._cell.look_up(there)
        return derive_holder(recorded, key.namespace, case.subject.occupant.uid, looked_up)

    async def let_go(self, case: Case) -> None:
        """Nothing is asked for a terminating Instance; what a refused claim holds in part is given
        back where the watch shows it.
        """
        verdict = case.project.watched(case.place)
        case.project.unfollow(case.record.key)
        if verdict is None or case.project.away is not None:
            return
        plan = await self._plan(verdict, case)
        if not plan.steps:
            return
        try:
            await self._applier.apply(plan.steps, _claim_of(verdict), case.work)
        except QuotaError as error:
            # It goes with the slot, or the next Instance in it meets it.
            logger.debug("Keeping claim", extra={"reason": type(error).__name__})


def _is_released(verdict: Verdict | Absent, record: Record) -> bool:
    return not isinstance(verdict, Absent) and verdict.found.uid in record.released


def _is_mere_request(plan: ClaimPlan) -> bool:
    """A claim is made only where there is none, so nothing can be wrong with what the watch
    said.
    """
    return len(plan.steps) == 1 and isinstance(plan.steps[0], RequestClaim)


def _is_known_absent(verdict: Verdict | Absent, plan: ClaimPlan, case: Case) -> bool:
    """Whether a claim may be made without another read.

    Not for a slot that was looked at before: where another cell's claim has the name, which no
    watch of ours shows, every further look is a read and never a create (quota.md B5).
    """
    is_first = case.record.finding is None and _is_mere_request(plan)
    return is_first and isinstance(verdict, Absent) and case.project.is_watched


def _claim_of(verdict: Verdict | Absent) -> FoundClaim | None:
    return None if isinstance(verdict, Absent) else verdict.found
