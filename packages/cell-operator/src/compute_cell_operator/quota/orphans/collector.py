"""The orphan collector: lists the claims of this cell in its projects, and has orphans released.

At start it lists every project that a Namespace of the cell names, at most five per second; later
those with an Instance in the cell, and each once more after its last Instance is gone. A project
that cannot be listed is listed when it answers, or in the next period. A cell that was restored
empty makes every claim an orphan: many at once are refused until a second list, a minute later,
shows the same ones (faults.md D9).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import reasons
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.quota.claim import find_other_resource, read_subject
from compute_cell_operator.quota.orphans.observe import ObservedCell, observe_cell
from compute_cell_operator.quota.orphans.plan import (
    ListedClaim,
    ListedProject,
    OrphanedClaim,
    OrphanPlan,
    plan_orphans,
)
from compute_cell_operator.quota.project_client import ProjectClients, derive_selector
from compute_cell_operator.quota.project_ref import ClaimRef
from compute_cell_operator.quota.release import SWEPT, SWEPT_KIND, release_claim
from compute_cell_operator.quota.state import SlotTable
from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.controller.mass_delete import MassDeleteGuard, RemovalAllowed, RemovalHeld
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import PlaneName, Uid
from compute_operator_kit.intents.intents import RecordEvent
from compute_quota_client import Absent, FoundClaim, QuotaError, QuotaUnavailableError, Released

PACE: Final = timedelta(milliseconds=200)  # cell.md 12: at most 5 projects per second
JITTER: Final = 0.1
REFUSALS: Final = "compute_sweep_refusals_total"
SWEEPING: Final = "Sweeping"
ANY_CLAIM: Final = ("default", "instance-probe")  # a 404 is an answer too
ALL_PROJECTS: Final = PlaneName("@quota")  # scope of the guard for a periodic list

logger = logging.getLogger(__name__)


class OrphanCollector:
    """Lists projects by period and on demand."""

    def __init__(self, deps: Dependencies, slots: SlotTable, projects: ProjectClients) -> None:
        self._deps = deps
        self._slots = slots
        self._projects = projects
        self._guard = MassDeleteGuard()
        self._is_requested = asyncio.Event()
        self._requested: set[str] = set()  # projects to list before the period is over
        self._unlisted: set[str] = set()  # projects with a list that failed, or was not acted on
        self._populated: frozenset[str] = frozenset()
        self._period_ends = ZERO  # when all projects are listed again, by the monotonic clock
        self._held: dict[str, timedelta] = {}  # projects with orphans that need a second list
        # A series that begins with its first event would hide that event from `increase`.
        deps.metrics.count(REFUSALS, 0, kind=SWEPT_KIND)

    def enqueue(self, project: str) -> None:
        """Has a project listed soon."""
        self._requested.add(project)
        self._is_requested.set()

    def on_answer(self, project: str) -> None:
        """A project answers again: its list, if it failed, is repeated."""
        if project in self._unlisted:
            self.enqueue(project)

    async def run(self, caches: Caches) -> None:
        """Lists until cancelled, beginning with all projects."""
        is_first = True
        while True:
            observed = observe_cell(caches, self._deps.settings.is_in_scope)
            if observed is not None:
                await self._collect_due(observed, is_first=is_first)
                is_first = False
            await self._wait()

    async def _collect_due(self, observed: ObservedCell, *, is_first: bool) -> None:
        for project in self._take_requested():
            await self._collect(observed, (project,), PlaneName(project))
        if self._deps.clock.monotonic() < self._period_ends:
            return
        self._period_ends = self._deps.clock.monotonic() + self._derive_period()
        named = observed.named if is_first else frozenset[str]()
        # Once more after the last Instance is gone: its release may have been lost.
        projects = named | observed.populated | self._populated | self._unlisted
        self._populated = observed.populated
        self._projects.keep_only(observed.named)
        await self._collect(observed, projects, ALL_PROJECTS)

    def _take_requested(self) -> list[str]:
        now = self._deps.clock.monotonic()
        due = {project for project, at in self._held.items() if at <= now}
        self._held = {project: at for project, at in self._held.items() if at > now}
        requested, self._requested = self._requested, set[str]()
        return sorted(requested | due)

    def _derive_period(self) -> timedelta:
        chance = 2.0 * self._deps.random.random() - 1.0
        return self._deps.settings.quota.sweep_interval * (1.0 + JITTER * chance)

    async def _wait(self) -> None:
        """Until the period or a hold is over, or a project is requested."""
        left = min((self._period_ends, *self._held.values())) - self._deps.clock.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(PACE, left).total_seconds()):
                await self._is_requested.wait()
        self._is_requested.clear()

    # list ----------------------------------------------------------------------------------------

    async def _collect(
        self, observed: ObservedCell, projects: Iterable[str], scope: PlaneName
    ) -> None:
        plan = OrphanPlan()
        for name in sorted(projects):
            plan = plan.join(await self._list_project(observed, name))
            await self._deps.clock.sleep(PACE)
        inferred = [orphan for orphan in plan.orphans if not self._was_seen_deleted(orphan)]
        for orphan in plan.orphans:
            if orphan not in inferred:
                await self._hand_over(orphan)
        await self._hand_over_allowed(inferred, plan.listed, scope)

    async def _list_project(self, observed: ObservedCell, name: str) -> OrphanPlan:
        project = self._projects.get(name)
        try:
            claims = await project.quota.list(derive_selector(self._deps.settings.cell.name))
        except QuotaError as error:
            self._unlisted.add(name)
            logger.debug("Sweeping later", extra={"reason": type(error).__name__})
            if isinstance(error, QuotaUnavailableError):
                self._projects.await_answer(project, ClaimRef(name, *ANY_CLAIM), error)
            return OrphanPlan()
        self._unlisted.discard(name)
        ours = (claim for claim in claims if find_other_resource(claim) is None)
        listed = tuple(self._observe(observed, name, claim) for claim in ours)
        plan = plan_orphans(ListedProject(listed, dict(observed.started(name))))
        for key in plan.checks:
            self._slots.check(key)
        return plan

    def _observe(self, observed: ObservedCell, project: str, claim: FoundClaim) -> ListedClaim:
        ref, subject = ClaimRef(project, claim.namespace, claim.name), read_subject(claim)
        here = observed.slot_of_claim(ref)
        if here is not None and here.is_kept:
            # The last verdict proves a held grant, also for a slot between two Instances.
            slot = self._slots.open(here.key)
            self._slots.set_claim(slot, ref)
            slot.note_claim(claim)
        recorded = observed.slot_of_subject(subject.namespace, claim.name)
        return ListedClaim(ref, claim.uid, subject, here, recorded)

    def _was_seen_deleted(self, orphan: OrphanedClaim) -> bool:
        """Whether a watch event deleted the Instance, so that its absence is not inferred."""
        slot = self._slots.find(orphan.key) if orphan.key is not None else None
        return slot is not None and slot.was_seen_deleted

    # orphans -------------------------------------------------------------------------------------

    async def _hand_over_allowed(
        self, orphans: list[OrphanedClaim], listed: int, scope: PlaneName
    ) -> None:
        now = self._deps.clock.monotonic()
        missing = frozenset(orphan.ref for orphan in orphans)
        if not missing or self._guard.needs_look(scope, min(missing), now):
            self._guard.record(scope, missing, listed, now)
        for orphan in orphans:
            ruling = self._guard.judge(scope, orphan.ref, now)
            if isinstance(ruling, RemovalAllowed):
                await self._hand_over(orphan)
            else:
                self._unlisted.add(orphan.ref.project)
                self._hold(ruling, scope)

    def _hold(self, held: RemovalHeld, scope: PlaneName) -> None:
        again = self._deps.clock.monotonic() + held.wait
        if scope == ALL_PROJECTS:
            self._period_ends = min(self._period_ends, again)
        else:
            self._held[scope] = again
        if not held.is_news:
            return
        self._deps.metrics.count(REFUSALS, kind=SWEPT_KIND)
        message = (
            f"{held.missing} of {held.total} quota claims have no Instance in this cell; they are "
            "released if a second look says the same"
        )
        self._deps.event_recorder.record(
            RecordEvent(
                self._deps.operator,
                Uid(""),
                reasons.MASS_DELETE_REFUSED,
                message,
                SWEEPING,
                type="Warning",
            )
        )

    async def _hand_over(self, orphan: OrphanedClaim) -> None:
        """To the reconcile of its slot, which reads the cell live; a claim without a slot is
        released here.
        """
        if orphan.key is None:
            await self._release(orphan)
            return
        slot = self._slots.open(orphan.key)
        if slot.instance is None:
            self._slots.set_claim(slot, orphan.ref)
        slot.is_orphaned = True
        self._slots.check(orphan.key)

    async def _release(self, orphan: OrphanedClaim) -> None:
        ref = orphan.ref
        project = self._projects.get(ref.project)
        try:
            verdict = await project.quota.read(ref.namespace, ref.name)
            if isinstance(verdict, Absent) or verdict.found.uid != orphan.uid:
                return
            released = await release_claim(project, verdict.found, self._deps.settings.cell.name)
        except QuotaError as error:
            logger.debug("Sweeping later", extra={"reason": type(error).__name__})
            return
        if isinstance(released, Released):
            self._deps.metrics.count(SWEPT, kind=SWEPT_KIND)
