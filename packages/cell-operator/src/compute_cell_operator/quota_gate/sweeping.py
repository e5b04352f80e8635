"""Sweeps: lists the claims of this cell in its projects and hands on what needs a look.

At start every project that a Namespace of the cell names is swept, at most five per second; later,
slowly, those that have an Instance here, and each once more after its last has gone. A project that
cannot be listed is swept again when it answers, or with the next sweep. What would remove too much
at once on absence alone is refused until a second sweep, a minute later, has found the same
(faults.md D9).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_cell_operator.quota_gate.census import CellSeen, observe_cell
from compute_cell_operator.quota_gate.claim import find_other_resource
from compute_cell_operator.quota_gate.ledger import Ledger
from compute_cell_operator.quota_gate.observe import read_recorded
from compute_cell_operator.quota_gate.place import Place
from compute_cell_operator.quota_gate.projects import derive_selector
from compute_cell_operator.quota_gate.surroundings import Around
from compute_cell_operator.quota_gate.sweep import Leftover, Listed, SweepPlan, Swept, plan_sweep
from compute_cell_operator.quota_gate.vacancy import SWEPT, SWEPT_KIND, release_claim
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.cache import Caches
from compute_operator_kit.clock import ZERO, Random
from compute_operator_kit.intents import Emit
from compute_operator_kit.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.mass_delete import Allowed, Held, MassDeleteGuard
from compute_quota_client import Absent, FoundClaim, QuotaError, QuotaUnavailableError, Released

PACE: Final = timedelta(milliseconds=200)  # cell.md 12: at most 5 projects per second
JITTER: Final = 0.1
REFUSALS: Final = "compute_sweep_refusals_total"
SWEEPING: Final = "Sweeping"
ANY_CLAIM: Final = ("default", "instance-probe")  # that there is none is an answer too
EVERYTHING: Final = PlaneName("@quota")  # what a slow sweep looks at, as one

logger = logging.getLogger(__name__)


class Sweeper:
    """Looks for claims nobody looks after."""

    def __init__(
        self,
        around: Around,
        ledger: Ledger,
        settings: CellSettings,
        random: Random,
        *,
        operator: ObjectKey,
    ) -> None:
        self._around = around
        self._ledger = ledger
        self._settings = settings
        self._random = random
        self._operator = operator
        self._guard = MassDeleteGuard()
        self._asked = asyncio.Event()
        self._wanted: set[str] = set()  # projects to sweep out of turn
        self._unswept: set[str] = set()  # projects that were not listed, or not dealt with
        self._populated: frozenset[str] = frozenset()
        self._full_at = ZERO  # when everything is swept, by the monotonic clock
        self._held: dict[str, timedelta] = {}  # projects whose finding must be made a second time
        # An increase of a series that begins with its first event misses that event.
        around.measures.count(REFUSALS, 0, kind=SWEPT_KIND)

    def ask(self, project: str) -> None:
        """Has a project swept soon."""
        self._wanted.add(project)
        self._asked.set()

    def answers(self, project: str) -> None:
        """A project plane is back: what could not be listed can be now."""
        if project in self._unswept:
            self.ask(project)

    async def run(self, caches: Caches) -> None:
        """Sweeps for ever; begins with everything."""
        is_first = True
        while True:
            seen = observe_cell(caches, self._settings.is_in_scope)
            if seen is not None:
                await self._sweep_due(seen, is_first=is_first)
                is_first = False
            await self._pause()

    async def _sweep_due(self, seen: CellSeen, *, is_first: bool) -> None:
        for project in self._take_wanted():
            await self._sweep(seen, (project,), PlaneName(project))
        if self._around.clock.monotonic() < self._full_at:
            return
        self._full_at = self._around.clock.monotonic() + self._derive_interval()
        named = seen.named if is_first else frozenset[str]()
        # Once more after the last Instance is gone: its release may have been lost.
        projects = named | seen.populated | self._populated | self._unswept
        self._populated = seen.populated
        self._around.projects.keep_only(seen.named)
        await self._sweep(seen, projects, EVERYTHING)

    def _take_wanted(self) -> list[str]:
        now = self._around.clock.monotonic()
        due = {project for project, at in self._held.items() if at <= now}
        self._held = {project: at for project, at in self._held.items() if at > now}
        wanted, self._wanted = self._wanted, set[str]()
        return sorted(wanted | due)

    def _derive_interval(self) -> timedelta:
        chance = 2.0 * self._random.random() - 1.0
        return self._settings.quota.sweep_interval * (1.0 + JITTER * chance)

    async def _pause(self) -> None:
        """Waits for the next sweep, or for somebody who asks for one."""
        left = min((self._full_at, *self._held.values())) - self._around.clock.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(PACE, left).total_seconds()):
                await self._asked.wait()
        self._asked.clear()

    # one sweep -----------------------------------------------------------------------------------

    async def _sweep(self, seen: CellSeen, projects: Iterable[str], scope: PlaneName) -> None:
        found = SweepPlan()
        for name in sorted(projects):
            found = found.join(await self._sweep_project(seen, name))
            await self._around.clock.sleep(PACE)
        inferred = [leftover for leftover in found.leftovers if not self._is_seen_going(leftover)]
        for leftover in found.leftovers:
            if leftover not in inferred:
                await self._hand_over(leftover)
        await self._rule(inferred, found.looked_at, scope)

    async def _sweep_project(self, seen: CellSeen, name: str) -> SweepPlan:
        project = self._around.projects.get(name)
        try:
            claims = await project.quota.list(derive_selector(self._around.cell))
        except QuotaError as error:
            self._unswept.add(name)
            logger.debug("Sweeping later", extra={"reason": type(error).__name__})
            if isinstance(error, QuotaUnavailableError):
                self._around.await_answer(project, Place(name, *ANY_CLAIM), error)
            return SweepPlan()
        self._unswept.discard(name)
        ours = (claim for claim in claims if find_other_resource(claim) is None)
        listed = tuple(self._read(seen, name, claim) for claim in ours)
        plan = plan_sweep(Swept(listed, dict(seen.started(name))))
        for key in plan.suspects:
            self._around.wake(key)
        return plan

    def _read(self, seen: CellSeen, project: str, claim: FoundClaim) -> Listed:
        place, recorded = Place(project, claim.namespace, claim.name), read_recorded(claim)
        here = seen.slot_at(place)
        if here is not None and here.is_kept:
            # What a held grant stands on, for slots between two Instances too.
            record = self._ledger.open(here.key)
            self._ledger.place(record, place)
            record.note(claim)
        return Listed(
            place, claim.uid, recorded, here, seen.slot_named(recorded.namespace, claim.name)
        )

    def _is_seen_going(self, leftover: Leftover) -> bool:
        """Its Instance was seen to be deleted: that it is gone is no inference."""
        record = self._ledger.find(leftover.key) if leftover.key is not None else None
        return record is not None and record.is_seen_going

    # leftovers -----------------------------------------------------------------------------------

    async def _rule(self, leftovers: list[Leftover], looked_at: int, scope: PlaneName) -> None:
        now = self._around.clock.monotonic()
        missing = frozenset(leftover.place for leftover in leftovers)
        if not missing or self._guard.needs_look(scope, min(missing), now):
            self._guard.record(scope, missing, looked_at, now)
        for leftover in leftovers:
            ruling = self._guard.judge(scope, leftover.place, now)
            if isinstance(ruling, Allowed):
                await self._hand_over(leftover)
            else:
                self._unswept.add(leftover.place.project)
                self._hold(ruling, scope)

    def _hold(self, held: Held, scope: PlaneName) -> None:
        again = self._around.clock.monotonic() + held.wait
        if scope == EVERYTHING:
            self._full_at = min(self._full_at, again)
        else:
            self._held[scope] = again
        if not held.is_news:
            return
        self._around.measures.count(REFUSALS, kind=SWEPT_KIND)
        message = (
            f"{held.missing} of {held.total} quota claims have no Instance in this cell; they are "
            "released if a second look says the same"
        )
        self._around.recorder.record(
            Emit(
                self._operator,
                Uid(""),
                reasons.MASS_DELETE_REFUSED,
                message,
                SWEEPING,
                type="Warning",
            )
        )

    async def _hand_over(self, leftover: Leftover) -> None:
        """To the slot's own look, which asks the cell; a claim that names no slot is nobody's."""
        if leftover.key is None:
            await self._release(leftover)
            return
        record = self._ledger.open(leftover.key)
        if record.subject is None:
            self._ledger.place(record, leftover.place)
        record.is_swept = True
        self._around.wake(leftover.key)

    async def _release(self, leftover: Leftover) -> None:
        place = leftover.place
        project = self._around.projects.get(place.project)
        try:
            verdict = await project.quota.read(place.namespace, place.name)
            if isinstance(verdict, Absent) or verdict.found.uid != leftover.uid:
                return
            released = await release_claim(project, verdict.found, self._around.cell)
        except QuotaError as error:
            logger.debug("Sweeping later", extra={"reason": type(error).__name__})
            return
        if isinstance(released, Released):
            self._around.measures.count(SWEPT, kind=SWEPT_KIND)
