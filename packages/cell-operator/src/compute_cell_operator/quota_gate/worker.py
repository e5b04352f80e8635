"""The quota worker: looks after the claim of every slot, beside the passes of the cell.

```
 watches of the cell ─┐                         ┌─► look at an Instance's claim ─┐
 watches of claims   ─┼─► queue, by project  ───┤                                ├─► finding ─► pass
 probes, sweeps,     ─┘   (one look per slot)   └─► look at a vacant slot        ┘
 the pass's own time
```

Changes only wake slots. Queues fill on every replica; looks, probes and sweeps run inside `attend`,
under the Lease, once the caches of the cell are complete. No pass waits for anything in here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from compute_api_types import labels
from compute_cell_operator.assembly import Tools
from compute_cell_operator.quota_gate.apply import Applier
from compute_cell_operator.quota_gate.findings import Finding, Granted
from compute_cell_operator.quota_gate.ledger import Ledger, Record
from compute_cell_operator.quota_gate.live import LiveCell
from compute_cell_operator.quota_gate.look import Looker
from compute_cell_operator.quota_gate.occupancy import Vacant, observe_slot
from compute_cell_operator.quota_gate.place import Place
from compute_cell_operator.quota_gate.port import Gate, Tell
from compute_cell_operator.quota_gate.projects import Project, Projects
from compute_cell_operator.quota_gate.runner import Runner
from compute_cell_operator.quota_gate.settling import Settler
from compute_cell_operator.quota_gate.sweeping import Sweeper
from compute_cell_operator.quota_gate.vacancy import Vacancies
from compute_cell_operator.quota_gate.waking import WATCHED, Waker, find_payer
from compute_operator_kit import measures as kit_measures
from compute_operator_kit.apply.desk import Recorder
from compute_operator_kit.clock import ZERO, Clock
from compute_operator_kit.crew import Crew
from compute_operator_kit.keys import ObjectKey, Role
from compute_operator_kit.measures import Measures
from compute_operator_kit.parts import Part
from compute_operator_kit.planes import State
from compute_operator_kit.reconcile import Result
from compute_quota_client import (
    Absent,
    ClaimKey,
    Pending,
    QuotaClient,
    QuotaUnavailableError,
    Verdict,
)
from compute_quota_client import Granted as GrantedClaim

ENFORCED: Final = "compute_quota_enforcement_enabled"
ADOPTIONS_PENDING: Final = "compute_quota_adoptions_pending"
AFTER_A_BUG: Final = timedelta(seconds=5)


class Worker:
    """See the module's text."""

    def __init__(self, tools: Tools, client: QuotaClient, tell: Tell) -> None:
        self._tools = tools
        self._tell = tell
        self._ledger = Ledger()
        self._projects = Projects(client, tools.settings.cell.name, tools.clock)
        self._crew: Crew | None = None
        cell = LiveCell(tools.reach)
        settler = Settler(self, cell, Applier(cell, tools.clock, tools.measures))
        self._looker = Looker(self, self._ledger, settler)
        self._vacancies = Vacancies(self, self._ledger, cell)
        self._sweeper = Sweeper(
            self, self._ledger, tools.settings, tools.random, operator=tools.operator
        )
        self._runner = Runner(
            self._look,
            self._share,
            tools.clock,
            tools.random,
            deadline=tools.settings.clients.reconcile_timeout,
        )
        self.waker = Waker(
            tools.reach,
            self._ledger,
            self._runner,
            is_in_scope=tools.settings.is_in_scope,
        )

    # for the instance pass -----------------------------------------------------------------------

    def finding(self, instance: ObjectKey) -> Finding | None:
        record = self._ledger.find(instance)
        return record.finding if record is not None else None

    def look(self, instance: ObjectKey) -> None:
        self.wake(instance)

    # for its parts -------------------------------------------------------------------------------

    @property
    def cell(self) -> str:
        return self._tools.settings.cell.name

    @property
    def clock(self) -> Clock:
        return self._tools.clock

    @property
    def measures(self) -> Measures:
        return self._tools.measures

    @property
    def recorder(self) -> Recorder:
        return self._tools.recorder

    @property
    def projects(self) -> Projects:
        return self._projects

    def tell(self, key: ObjectKey) -> None:
        self._tell(key)

    def wake(self, key: ObjectKey) -> None:
        self._ledger.open(key).is_suspect = True
        self._runner.add(key)

    def claim_changed(self, project: Project, claim: ClaimKey) -> None:
        record = self._ledger.at(Place(project.name, claim.namespace, claim.name))
        if record is None:
            return  # of a slot that nobody has looked at: sweeps find those
        verdict = project.last_watched(claim)
        if verdict is not None:
            is_told = is_repeated(record.last, verdict)
            record.note_verdict(verdict, self.clock.now())
            if not is_told and not _is_settled(record, verdict):
                self.wake(record.key)

    def put_aside(self, project: Project, record: Record, error: QuotaUnavailableError) -> None:
        project.waiting[record.key] = None
        if record.place is not None:
            self.await_answer(project, record.place, error)

    def await_answer(self, project: Project, place: Place, error: QuotaUnavailableError) -> None:
        if self._crew is not None:
            self._projects.await_answer(project, error, self._crew, self, place=place)

    def ask_sweep(self, project: str) -> None:
        self._sweeper.ask(project)

    def stop_following(self, record: Record) -> None:
        project = self._projects.find(record.place.project) if record.place is not None else None
        if project is not None:
            project.unfollow(record.key)

    def answers(self, project: str, waiting: tuple[ObjectKey, ...]) -> None:
        """A project that was away answers again."""
        for key in waiting:
            self.wake(key)
        self._sweeper.answers(project)

    # looking -------------------------------------------------------------------------------------

    def _share(self, key: ObjectKey) -> str:
        """Slots of one project take turns with those of another."""
        payer = find_payer(key, self._ledger, self._tools.reach)
        return payer.project if payer is not None else key.namespace

    async def _look(self, key: ObjectKey) -> Result:
        seen = observe_slot(key, self._tools.reach.caches)
        if seen is None:
            return Result()  # a cache is not complete; when it is, everything is looked at
        if isinstance(seen, Vacant):
            # Also out of scope: a claim of ours may name any Namespace, and goes like the others.
            return await self._vacancies.look(key, seen)
        if not self._tools.settings.is_in_scope(key.namespace):
            self._ledger.forget(key)
            return Result()
        return await self._looker.look(key, seen)

    # running -------------------------------------------------------------------------------------

    async def attend(self) -> None:
        await self.waker.synced_event.wait()
        self._crew = crew = Crew("quota")
        try:
            self._run("looks", self._runner.run)
            self._run("sweeps", lambda: self._sweeper.run(self._tools.reach.caches))
            await asyncio.get_running_loop().create_future()
        finally:
            await crew.stop()
            self._projects.close()

    def _run(
        self,
        name: str,
        work: Callable[[], Coroutine[object, object, None]],
        delay: timedelta = ZERO,
    ) -> None:
        """Runs until we stop; one that ended by a bug begins again, after a while."""

        async def run() -> None:
            await self.clock.sleep(delay)
            await work()

        if self._crew is not None:
            again = partial(self._run, name, work, AFTER_A_BUG)
            self._crew.start(run(), name, on_crash=again)

    def report(self) -> None:
        """Gauges, every few seconds."""
        pending = sum(record.is_adoption_due for record in self._ledger)
        self.measures.gauge(ADOPTIONS_PENDING, pending)
        self.measures.gauge(ENFORCED, 1)
        states = Counter(State.DOWN if one.away else State.UP for one in self._projects)
        for state in State:
            self.measures.gauge(
                kit_measures.PLANES, states[state], plane=Role.QUOTA.value, state=state.value
            )


def is_repeated(before: Verdict | None, verdict: Verdict | Absent) -> bool:
    """Nothing new about a claim: the quota service writes one several times, once per resource,
    before and after it is decided.
    """
    if before == verdict:
        return True
    if not isinstance(before, Pending) or not isinstance(verdict, Pending):
        return False
    told, found = before.found, verdict.found
    undecided = replace(
        told,
        resource_version=found.resource_version,
        granted=found.granted,
        allocations=found.allocations,
    )
    return undecided == found


def _is_settled(record: Record, verdict: Verdict | Absent) -> bool:
    """Nothing new for a started Instance: the claim is granted, and records it."""
    subject, found = record.subject, record.finding
    if subject is None or not subject.is_started or record.postponed is not None:
        return False
    is_told = found is None or (isinstance(found.said, Granted) and not found.said.is_held)
    if not is_told or not isinstance(verdict, GrantedClaim):
        return False
    return verdict.found.value_of(labels.INSTANCE_UID) == subject.occupant.uid


def build(tools: Tools, client: QuotaClient, tell: Tell) -> tuple[Part, Gate]:
    worker = Worker(tools, client, tell)
    part = Part(
        watched=WATCHED, listeners=(worker.waker,), report=worker.report, attend=worker.attend
    )
    return part, worker
