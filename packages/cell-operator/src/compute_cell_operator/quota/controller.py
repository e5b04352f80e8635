"""The quota controller: one key per slot, in a Manager of its own.

```
watches of the cell ─┐           ┌─► OccupiedSlot ─► apply ─► QuotaResult ─► instance controller
watches of claims   ─┼─► slots ──┤
probes, orphans     ─┘           └─► EmptySlot ─► release
```

A request to a project may take seconds. With workers of its own, and at most four per project, a
project that does not answer delays neither another controller of the cell nor another project. A
failed request never grants: the result is then the grant that is held, if it covers the Instance,
or the failure, and the slot waits for the project's probe.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from compute_api_types.sizes import Size
from compute_cell_operator.delays import RESYNC
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.quota.apply import ClaimApplier, ClaimWork
from compute_cell_operator.quota.claim import derive_claim, is_covered
from compute_cell_operator.quota.live_reads import OWNER, QuotaLiveReads
from compute_cell_operator.quota.observe import (
    EmptySlot,
    InstanceFacts,
    OccupiedSlot,
    observe_failure,
    observe_slot,
)
from compute_cell_operator.quota.orphans.collector import OrphanCollector
from compute_cell_operator.quota.project_client import ProjectClient, ProjectClients
from compute_cell_operator.quota.project_ref import BillingProject, derive_claim_ref
from compute_cell_operator.quota.release import SlotRelease
from compute_cell_operator.quota.result import (
    BackendUnavailable,
    ClaimGranted,
    ClaimPending,
    ClaimState,
    ProjectSuspended,
    QuotaResult,
    QuotaResults,
    Undecided,
)
from compute_cell_operator.quota.retry import RETRY_REFUSED
from compute_cell_operator.quota.state import SlotState, SlotTable
from compute_cell_operator.quota.status import GRACE
from compute_cell_operator.quota.watches import CACHED_KINDS, CellSynced, ClaimWatch, QuotaWatches
from compute_cell_operator.retries import RETRY
from compute_operator_kit.controller.manager import Workers
from compute_operator_kit.controller.reconcile import ReconcileContext, Result
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller
from compute_operator_kit.core import metrics as kit_metrics
from compute_operator_kit.core.clock import ZERO
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.tasks import SupervisedTasks
from compute_operator_kit.planes.engaged_plane import PlaneState
from compute_quota_client import (
    Granted,
    QuotaClient,
    QuotaError,
    QuotaProjectSuspendedError,
    QuotaUnavailableError,
    QuotaUsageError,
)

NAME: Final = "quota"
WORKERS: Final = Workers(total=16, per_fairness_key=4)
ENFORCED: Final = "compute_quota_enforcement_enabled"
ADOPTIONS_PENDING: Final = "compute_quota_adoptions_pending"
RESTART_AFTER: Final = timedelta(seconds=5)  # a collector that ended by a bug


class QuotaController:
    """Reconciles slots; `publish` enqueues an Instance after its result has changed."""

    def __init__(
        self, deps: Dependencies, client: QuotaClient, publish: Callable[[ObjectKey], None]
    ) -> None:
        self._deps = deps
        self._publish = publish
        cell = deps.settings.cell.name
        live_reads = QuotaLiveReads(deps.context)
        self._slots = SlotTable(partial(deps.context.enqueue, NAME))
        self._projects = ProjectClients(client, cell, deps.clock, deps.random, self._on_answer)
        self._applier = ClaimApplier(deps, live_reads, publish)
        self._collector = OrphanCollector(deps, self._slots, self._projects)
        self._release = SlotRelease(
            deps, self._slots, self._projects, live_reads, self._collector.enqueue
        )
        self._claim_watch = ClaimWatch(self._slots, deps.clock)
        self._watches = QuotaWatches(self._slots, deps.settings.is_in_scope)
        self._synced = CellSynced(lambda: deps.context.planes)

    # for the instance controller -----------------------------------------------------------------

    def result(self, instance: ObjectKey) -> QuotaResult | None:
        slot = self._slots.find(instance)
        return slot.result if slot is not None else None

    def enqueue(self, instance: ObjectKey) -> None:
        self._slots.check(instance)

    # reconcile -----------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        observed = observe_slot(key, work.caches)
        if observed is None:
            return Result()
        if isinstance(observed, EmptySlot):
            # Also out of scope: a claim of this cell may name any Namespace, and is released.
            return await self._release.reconcile(key, observed)
        if not self._deps.settings.is_in_scope(key.namespace):
            self._slots.forget(key)
            return Result()
        return await self._reconcile_instance(self._slots.open(key), observed)

    async def _reconcile_instance(self, slot: SlotState, observed: OccupiedSlot) -> Result:
        instance, billing = observed.instance, observed.billing
        slot.occupy(instance, self._deps.clock.now())
        if not isinstance(billing, BillingProject) or not isinstance(instance.size, Size):
            # The instance controller derives the state by itself; there is nothing to claim.
            self._projects.unfollow(slot.key, slot.claim)
            slot.result = None
            return Result()
        slot.billing = billing
        self._slots.set_claim(slot, derive_claim_ref(billing, instance.ref.name))
        if observed.is_suspended:
            return self._suspend(slot, instance)
        try:
            project = self._projects.get(billing.project)
            if not instance.is_terminating and not self._needs_requests(slot, instance):
                self._follow(project, slot, instance)
                return Result(self._derive_wait(slot))
            desired = derive_claim(
                self._deps.settings.cell.name, billing, instance.ref, instance.size
            )
        except QuotaUsageError as refused:
            state = BackendUnavailable(billing.project, "building", str(refused))
            return self._finish(slot, instance, state)
        work = ClaimWork(slot, instance, billing, project, desired)
        if instance.is_terminating:
            await self._applier.release_refused(work)
            return Result()
        return self._finish(slot, instance, await self._check(work), project)

    def _suspend(self, slot: SlotState, instance: InstanceFacts) -> Result:
        """No claim is made, adopted, replaced or released while the deployment is suspended: a
        result stays, and the claim is checked after the resume.
        """
        self._projects.unfollow(slot.key, slot.claim)
        slot.needs_check = True
        is_granted = isinstance(slot.result.state, ClaimGranted) if slot.result else False
        if instance.is_terminating or (is_granted and slot.has_result_for(instance)):
            return Result()
        if slot.set_result(instance, slot.keep_denial(instance, ProjectSuspended())):
            self._publish(slot.key)
        return Result()

    def _needs_requests(self, slot: SlotState, instance: InstanceFacts) -> bool:
        """Whether the state of the claim may have changed, or was never read for this Instance."""
        is_due = slot.due is not None and self._deps.clock.now() >= slot.due
        if slot.needs_check or is_due:
            return True
        return not instance.is_started and not slot.has_result_for(instance)

    async def _check(self, work: ClaimWork) -> ClaimState:
        """Reads and applies; the slot needs another check where that does not come to its end."""
        slot, is_done = work.slot, False
        slot.needs_check, slot.retry_at = False, None
        try:
            state = await self._derive_state(work)
            is_done = True
        finally:
            slot.needs_check |= not is_done
        return state

    async def _derive_state(self, work: ClaimWork) -> ClaimState:
        if work.project.outage is not None:
            return self._derive_outage_state(work, work.project.outage)
        if work.project.suspension.holds(work.slot.key):
            return work.keep_denial(ProjectSuspended())
        try:
            refused = await work.project.prove(work.billing, self._deps.clock)
            return refused if refused is not None else await self._applier.reconcile(work)
        except QuotaUnavailableError as error:
            return self._derive_outage_state(work, error)
        except QuotaProjectSuspendedError:
            self._projects.await_resume(work.project, work.slot.key)
            return work.keep_denial(ProjectSuspended())
        except QuotaError as error:
            return work.keep_denial(observe_failure(error, work.billing))

    def _derive_outage_state(self, work: ClaimWork, error: QuotaUnavailableError) -> ClaimState:
        """The grant that is held, if it covers this Instance (quota.md B6), else the outage."""
        self._projects.await_answer(work.project, work.ref, error, work.slot.key)
        last = work.slot.verdict
        is_proven = work.project.is_proven(work.billing)
        if isinstance(last, Granted) and is_proven and is_covered(last, work.desired):
            return ClaimGranted(last.message, is_held=True)
        return work.keep_denial(observe_failure(error, work.billing))

    # the end of a reconcile ----------------------------------------------------------------------

    def _finish(
        self,
        slot: SlotState,
        instance: InstanceFacts,
        state: ClaimState,
        project: ProjectClient | None = None,
    ) -> Result:
        before = slot.result
        is_changed = slot.set_result(instance, state)
        if is_changed and not self._is_first_wait(before, instance, state):
            self._publish(slot.key)
        if project is not None:
            self._follow(project, slot, instance)
        is_refused = not isinstance(state, ClaimGranted | ClaimPending | Undecided)
        is_waiting = project is not None and (
            slot.key in project.waiting or project.suspension.is_waiting(slot.key)
        )
        if instance.is_started and is_refused and not is_waiting and slot.postponed is None:
            # The instance controller requeues only Instances that have not started.
            slot.retry_at = self._deps.clock.now() + RETRY_REFUSED
        return Result(self._derive_wait(slot))

    def _is_first_wait(
        self, before: QuotaResult | None, instance: InstanceFacts, state: ClaimState
    ) -> bool:
        """Whether the condition is the same with the first result as without one: a claim that was
        just made is reported as none is.
        """
        if before is not None or instance.had_claim:
            return False
        if isinstance(state, ClaimPending):
            return self._deps.clock.now() - state.since < GRACE
        return isinstance(state, Undecided)

    def _follow(self, project: ProjectClient, slot: SlotState, instance: InstanceFacts) -> None:
        """Watches the claims of a project while one of them is undecided."""
        is_open = not instance.is_started
        if instance.is_started and slot.result is not None:
            is_open = isinstance(slot.result.state, ClaimPending)
        if is_open:
            project.follow(slot.key, partial(self._claim_watch.on_change, project))
        else:
            project.unfollow(slot.key)

    def _derive_wait(self, slot: SlotState) -> timedelta | None:
        """Until the slot is due; once it is, an event enqueues it."""
        if slot.due is None:
            return None
        left = slot.due - self._deps.clock.now()
        return left if left > ZERO else None

    # beside reconciles ---------------------------------------------------------------------------

    def _on_answer(self, project: str, waiting: tuple[ObjectKey, ...]) -> None:
        for key in waiting:
            self._slots.check(key)
        self._collector.on_answer(project)

    async def run_as_leader(self) -> None:
        """Runs probes and the collector until cancelled."""
        tasks = self._projects.tasks = SupervisedTasks("quota")
        try:
            self._start_collector(tasks, ZERO)
            await asyncio.get_running_loop().create_future()
        finally:
            await tasks.stop()
            self._projects.close()

    def _start_collector(self, tasks: SupervisedTasks, delay: timedelta) -> None:
        async def run() -> None:
            await self._deps.clock.sleep(delay)
            await self._synced.event.wait()
            await self._collector.run(self._deps.context.caches)

        restart = partial(self._start_collector, tasks, RESTART_AFTER)
        tasks.start(run(), "sweeps", on_crash=restart)

    def update_gauges(self) -> None:
        metrics = self._deps.metrics
        metrics.gauge(ADOPTIONS_PENDING, sum(slot.is_adoption_due for slot in self._slots))
        metrics.gauge(ENFORCED, 1)
        states = Counter(one.state for one in self._projects)
        for state in PlaneState:
            metrics.gauge(
                kit_metrics.PLANES, states[state], plane=Role.QUOTA.value, state=state.value
            )

    # setup ---------------------------------------------------------------------------------------

    def build(self) -> ControllerSetup:
        controller = Controller(
            name=NAME,
            owner=OWNER,
            watches=self._watches.declare(),
            reconcile=self.reconcile,
            fairness_key=self._watches.derive_fairness_key,
            resync=RESYNC,
            retry=RETRY,
            deadline=self._deps.settings.clients.reconcile_timeout,
        )
        return ControllerSetup(
            controller=controller,
            cached_kinds=CACHED_KINDS,
            listeners=(self._synced,),
            update_gauges=self.update_gauges,
            run_as_leader=self.run_as_leader,
            workers=WORKERS,
        )


def build(
    deps: Dependencies, client: QuotaClient, publish: Callable[[ObjectKey], None]
) -> tuple[ControllerSetup, QuotaResults]:
    controller = QuotaController(deps, client, publish)
    return controller.build(), controller
