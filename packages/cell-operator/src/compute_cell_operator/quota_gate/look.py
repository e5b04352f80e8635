"""One look at an Instance's claim: whether it needs one, what the project says, and what that means
for the Instance.

```
Occupied ─► nothing may be news ──────────────────────────────────────────► as it was
         ─► plane away ─► the grant that is held, or none; put aside ─┐
         ─► proof ─► settled (`settling`) ────────────────────────────┴───► finding
```

A look is level-triggered: whoever wakes it only says that something may be news. It never grants
upon an error. Where a request fails because the plane is away, the slot is put aside until the
project's one probe is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from compute_cell_operator.quota_gate.apply import Work
from compute_cell_operator.quota_gate.case import Case
from compute_cell_operator.quota_gate.claim import derive_claim, is_covered
from compute_cell_operator.quota_gate.evidence import Payer
from compute_cell_operator.quota_gate.findings import (
    BackendUnavailable,
    Finding,
    Granted,
    Said,
    Step,
    Undecided,
    Unevaluated,
)
from compute_cell_operator.quota_gate.ledger import Ledger, Record
from compute_cell_operator.quota_gate.observe import observe_failure
from compute_cell_operator.quota_gate.occupancy import Occupied, Subject
from compute_cell_operator.quota_gate.place import derive_place
from compute_cell_operator.quota_gate.projects import Project
from compute_cell_operator.quota_gate.settling import Settler
from compute_cell_operator.quota_gate.size import Size
from compute_cell_operator.quota_gate.status import GRACE
from compute_cell_operator.quota_gate.surroundings import Around
from compute_operator_kit.clock import ZERO
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.reconcile import Result
from compute_quota_client import Granted as GrantedClaim
from compute_quota_client import (
    Operation,
    QuotaError,
    QuotaUnavailableError,
    QuotaUsageError,
)

REFUSED_AGAIN: Final = timedelta(minutes=5)  # cell.md 13: refused for good

_STEPS: Final[Mapping[Operation, Step]] = MappingProxyType(
    {Operation.CREATE: "creating", Operation.ADOPT: "adopting"}
)


class Looker:
    """Looks at slots with an Instance in them."""

    def __init__(self, around: Around, ledger: Ledger, settler: Settler) -> None:
        self._around = around
        self._ledger = ledger
        self._settler = settler

    async def look(self, key: ObjectKey, seen: Occupied) -> Result:
        subject = seen.subject
        record = self._ledger.open(key)
        record.enter(subject, self._around.clock.now())
        if not isinstance(seen.payer, Payer) or not isinstance(subject.size, Size):
            # The pass says so by itself, and there is nothing to claim.
            self._around.stop_following(record)
            record.finding = None
            return Result()
        record.payer = seen.payer
        self._ledger.place(record, derive_place(seen.payer, subject.occupant.name))
        try:
            if not subject.is_terminating and not self._needs_look(record, subject):
                self._follow(self._around.projects.get(seen.payer.project), record, subject)
                return Result(self._wait(record))
            case = self._open(record, subject, seen.payer, subject.size)
        except QuotaUsageError as refused:
            said = BackendUnavailable(seen.payer.project, "building", str(refused))
            return self._conclude(record, subject, said)
        if subject.is_terminating:
            await self._settler.let_go(case)
            return Result()
        return self._conclude(record, subject, await self._look_closely(case), case.project)

    def _open(self, record: Record, subject: Subject, payer: Payer, size: Size) -> Case:
        project = self._around.projects.get(payer.project)
        wanted = derive_claim(self._around.cell, payer, subject.occupant, size)
        return Case(record, subject, payer, project, Work(record, subject, project.quota, wanted))

    def _needs_look(self, record: Record, subject: Subject) -> bool:
        """Whether anything may be news. What was granted, or has started, is left in peace."""
        if record.is_suspect or self._is_due(record):
            return True
        return not subject.is_started and not record.is_known(subject)

    def _is_due(self, record: Record) -> bool:
        due = record.due
        return due is not None and self._around.clock.now() >= due

    async def _look_closely(self, case: Case) -> Said:
        """Looks, and stays suspicious where the look did not come to its end."""
        record, is_done = case.record, False
        record.is_suspect, record.retry_at = False, None
        try:
            said = await self._ask(case)
            is_done = True
        finally:
            record.is_suspect |= not is_done
        return said

    # the end of a look ---------------------------------------------------------------------------

    def _conclude(
        self, record: Record, subject: Subject, said: Said, project: Project | None = None
    ) -> Result:
        before = record.finding
        is_news = record.find(subject, said)
        if is_news and not self._is_silent(before, subject, said):
            self._around.tell(record.key)
        if project is not None:
            self._follow(project, record, subject)
        is_refused = not isinstance(said, Granted | Undecided | Unevaluated)
        is_waiting = project is not None and record.key in project.waiting
        if subject.is_started and is_refused and not is_waiting and record.postponed is None:
            # Nobody asks for the sake of a started Instance but us.
            record.retry_at = self._around.clock.now() + REFUSED_AGAIN
        return Result(self._wait(record))

    def _is_silent(self, before: Finding | None, subject: Subject, said: Said) -> bool:
        """Whether the pass would say the same as before: that a claim was made and is not decided
        is, for a while, no more than that none was found.
        """
        if before is not None or subject.had_claim or not isinstance(said, Undecided | Unevaluated):
            return False
        return isinstance(said, Undecided) or self._around.clock.now() - said.since < GRACE

    def _follow(self, project: Project, record: Record, subject: Subject) -> None:
        """Watches claims while one is undecided, and no longer."""
        found = record.finding
        is_open = not subject.is_started
        if subject.is_started and found is not None:
            is_open = isinstance(found.said, Unevaluated)
        if is_open:
            project.follow(record.key, lambda claim: self._around.claim_changed(project, claim))
        else:
            project.unfollow(record.key)

    def _wait(self, record: Record) -> timedelta | None:
        """Until its time comes; once it has come, whatever changes wakes the slot."""
        if record.due is None:
            return None
        left = record.due - self._around.clock.now()
        return left if left > ZERO else None

    # asking --------------------------------------------------------------------------------------

    async def _ask(self, case: Case) -> Said:
        if case.project.away is not None:
            return self._answer_without(case, case.project.away)
        try:
            refused = await case.project.prove(case.payer, self._around.clock)
            if refused is not None:
                return refused
            return await self._settler.settle(case)
        except QuotaUnavailableError as error:
            return self._answer_without(case, error)
        except QuotaError as error:
            return case.keep_denial(_read_failure(case, error))

    def _answer_without(self, case: Case, error: QuotaUnavailableError) -> Said:
        """The plane is away: the grant that is held, if it covers this Instance (quota.md B6)."""
        self._around.put_aside(case.project, case.record, error)
        last = case.record.last
        is_held = isinstance(last, GrantedClaim) and case.project.is_proven(case.payer)
        if isinstance(last, GrantedClaim) and is_held and is_covered(last, case.work.wanted):
            return Granted(last.message, is_held=True)
        return case.keep_denial(_read_failure(case, error))


def _read_failure(case: Case, error: QuotaError) -> Said:
    step = _STEPS.get(error.operation, "getting") if error.operation is not None else "getting"
    return observe_failure(error, step, case.payer.project, case.payer.namespace)
