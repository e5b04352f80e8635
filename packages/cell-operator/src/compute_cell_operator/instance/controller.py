"""The instance controller: its watches, its reconcile and its metrics, for `wiring`.

Between reconciles it keeps only when each claim is due for a check and when a grant arrived: a new
process that has neither decides the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, reasons
from compute_cell_operator import suspension
from compute_cell_operator.delays import RESYNC
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.first_passes import FirstPasses
from compute_cell_operator.indexes import keys_of_kind
from compute_cell_operator.instance import watches
from compute_cell_operator.instance.metrics import QuotaMetrics
from compute_cell_operator.instance.observe import InstanceContext, ObservedInstance, observe
from compute_cell_operator.instance.plan import plan
from compute_cell_operator.instance.suspension import SuspensionWrites, remember, report_refused
from compute_cell_operator.instance_facts import InstanceState
from compute_cell_operator.network.watches import CACHED_KINDS as NETWORKING_KINDS
from compute_cell_operator.planes import CELL, DEPLOYMENT, INSTANCE, NAMESPACE, NETWORK_BINDING
from compute_cell_operator.quota.result import ClaimGranted, NoQuotaResults, QuotaResults
from compute_cell_operator.referenced_data import metrics as data_metrics
from compute_cell_operator.referenced_data import watches as data_watches
from compute_cell_operator.referenced_data.judgement import DataMode
from compute_cell_operator.retries import RETRY
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, DroppedChange, Watch
from compute_operator_kit.core.errors import TransientError
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.intents.intents import Plan, RecordEvent, RequeueAfter
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.planes.engaged_plane import CachedKind

NAME: Final = "instance"
WRITER: Final = FieldOwner(NAME, labels.INSTANCE_MANAGER)
ENFORCED: Final = "compute_quota_enforcement_enabled"
NOT_OURS: Final = DroppedChange("not_ours")


@dataclass(frozen=True, slots=True)
class InstanceReconciler:
    """The steps of one reconcile."""

    context: InstanceContext
    memory: SuspensionWrites | None = None

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedInstance | None:
        return observe(key, caches, self.context)

    def plan(self, observed: ObservedInstance, now: datetime) -> Plan:
        return plan(observed, now, self.memory)

    def report(self, observed: ObservedInstance, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()  # the plan writes the status: the removal of the gate has to follow it


class Instances:
    """The reconcile of all Instances, and what is kept between two of them."""

    def __init__(self, deps: Dependencies, passes: FirstPasses | None = None) -> None:
        self._deps = deps
        self._passes = passes or FirstPasses((NAME,))
        self._quota_results: QuotaResults = NoQuotaResults()
        self._quota_metrics = QuotaMetrics(deps.metrics)
        self._claim_check_due: dict[ObjectKey, timedelta] = {}
        self._suspensions: dict[ObjectKey, SuspensionWrites] = {}
        self._data = data_watches.derive_mode(deps.settings)
        deps.networking.add_listener(self._enqueue_all)

    def bind(self, quota_results: QuotaResults) -> None:
        """Sets where quota results are read; once, before any reconcile."""
        self._quota_results = quota_results

    def enqueue(self, key: ObjectKey) -> None:
        """The quota result of this Instance has changed."""
        result = self._quota_results.result(key)
        if result is not None and isinstance(result.state, ClaimGranted):
            self._quota_metrics.note_grant(key, self._deps.clock.monotonic())
        self._deps.context.enqueue(NAME, key)

    # --- mapping --------------------------------------------------------------------------------

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey | DroppedChange]:
        is_ours = self._deps.settings.is_in_scope(change.key.namespace)
        return (change.key if is_ours else NOT_OURS,)

    def _enqueue_all(self) -> None:
        for key in keys_of_kind(self._deps.context.caches, INSTANCE):
            self._deps.context.enqueue(NAME, key)

    # --- reconcile ------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        if not self._deps.settings.is_in_scope(key.namespace):
            return Result()
        context = InstanceContext(
            quota_results=self._quota_results,
            is_quota_enforced=self._deps.settings.is_quota_enforced,
            networking=self._deps.networking.state,
            data=self._data,
        )
        steps = InstanceReconciler(context, self._suspensions.get(key))
        result = await run_steps(steps, key, work)
        if result.observed is None:
            self._forget(key)
        else:
            self._note(result.observed, work.session.so_far)
        if not any(isinstance(error, TransientError) for error in result.errors):
            self._passes.note(NAME, key)
        return result

    def _note(self, observed: ObservedInstance, applied: Applied) -> None:
        clock = self._deps.clock
        self._note_suspension(observed, applied)
        self._quota_metrics.count(observed, applied, clock.now(), clock.monotonic())
        data_metrics.time_gate(applied, observed.instance.age(clock.now()), self._deps.metrics)
        waits = (
            outcome.intent
            for outcome in applied.outcomes
            if isinstance(outcome.intent, RequeueAfter)
            and outcome.intent.reason not in {reasons.SUSPENDED, reasons.CACHE_NOT_SYNCED}
        )
        self._schedule(observed.instance, next(waits, None), clock.monotonic())

    def _note_suspension(self, observed: ObservedInstance, applied: Applied) -> None:
        """Keeps what was done for a suspension, and records once that it failed."""
        key, now = observed.instance.key, self._deps.clock.now()
        memory = remember(observed, self._suspensions.pop(key, None), applied, now)
        for event in report_refused(observed, applied):
            memory = memory or SuspensionWrites(observed.instance.metadata.uid)
            if not memory.is_reported:
                self._deps.event_recorder.record(event)
            memory = replace(memory, is_reported=True)
        if memory is not None:
            is_recorded = any(
                isinstance(outcome.intent, RecordEvent)
                and outcome.intent.reason == reasons.PAUSE_FAILED
                for outcome in applied.outcomes
            )
            self._suspensions[key] = replace(memory, is_reported=memory.is_reported or is_recorded)

    def _schedule(self, instance: InstanceState, wait: RequeueAfter | None, now: timedelta) -> None:
        """Has the claim checked once its wait is over, whatever enqueued the key meanwhile.

        The first check is a whole wait after the first reconcile: the Instance's creation has
        enqueued its claim already.
        """
        due = self._claim_check_due.get(instance.key)
        if wait is None or instance.metadata.is_deleting:
            self._claim_check_due.pop(instance.key, None)
        elif due is None or now >= due:
            self._claim_check_due[instance.key] = now + wait.retry_after
            if due is not None:
                self._quota_results.enqueue(instance.key)
        else:  # a wait that has become shorter counts from now
            self._claim_check_due[instance.key] = min(due, now + wait.retry_after)

    def _forget(self, key: ObjectKey) -> None:
        self._claim_check_due.pop(key, None)
        self._suspensions.pop(key, None)
        self._quota_metrics.forget(key)

    def update_gauges(self) -> None:
        is_enforced = self._deps.settings.is_quota_enforced
        self._deps.metrics.gauge(ENFORCED, float(is_enforced))
        if CELL in self._deps.context.caches.planes(Role.HOME):
            self._quota_metrics.update_gauges(self._deps.context.caches)
            if self._data is not DataMode.OFF:
                data_metrics.update_gauges(self._deps.context.caches, self._deps.metrics)

    # --- setup ----------------------------------------------------------------------------------

    def build(self) -> ControllerSetup:
        is_consulted = self._deps.networking.is_consulted
        # Not needed: quota must be reported also while networking kinds cannot be read.
        bindings = Watch(Role.HOME, NETWORK_BINDING, watches.map_binding, is_needed=False)
        controller = Controller(
            name=NAME,
            owner=WRITER,
            watches=(
                Watch(Role.HOME, INSTANCE, self.map_instance),
                Watch(Role.HOME, DEPLOYMENT, suspension.map_deployment),
                Watch(Role.HOME, NAMESPACE, watches.map_namespace),
                *((bindings,) if is_consulted else ()),
                *(DATA_WATCHES if self._data is not DataMode.OFF else ()),
            ),
            reconcile=self.reconcile,
            fairness_key=lambda key, _: key.namespace,
            resync=RESYNC,
            retry=RETRY,
            deadline=self._deps.settings.clients.reconcile_timeout,
            dropped_metric="compute_cell_dropped_events_total",
        )
        return ControllerSetup(
            controller=controller,
            # ConfigMaps and Secrets are cached for the deployment controller, by its selector.
            cached_kinds=(
                *(OWN_KINDS if self._data is DataMode.OFF else KINDS_WITH_DATA),
                *(NETWORKING_KINDS if is_consulted else ()),
            ),
            update_gauges=self.update_gauges,
        )


# Not needed: quota must be reported also while ConfigMaps and Secrets cannot be read.
DATA_WATCHES: Final = (
    Watch(Role.HOME, DEPLOYMENT, data_watches.map_deployment),
    *(
        Watch(Role.HOME, kind, data_watches.map_to_instances, is_needed=False)
        for kind in data_watches.KINDS
    ),
)
OWN_KINDS: Final = (CachedKind(Role.HOME, INSTANCE, indexes=watches.INDEXES),)
KINDS_WITH_DATA: Final = (
    CachedKind(
        Role.HOME,
        INSTANCE,
        indexes={**watches.INDEXES, data_metrics.WAITING: data_metrics.index_by_wait},
    ),
)
