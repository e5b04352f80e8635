"""The federation controller, assembled: its watches, live reads, reconciler and metrics.

What it remembers between reconciles is kept here and forgotten with its plane, or projects that
come and go would fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_management_operator.dependencies import HUB_RATE_LIMIT, RESYNC, RETRY, Dependencies
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.caches import HUB_CACHES
from compute_management_operator.hub.federation import status, watches
from compute_management_operator.hub.federation.live_reads import FederationLiveReads
from compute_management_operator.hub.federation.observe import (
    FederationLiveFacts,
    FederationMemory,
    ObservedDeployment,
    ProjectDeployment,
    derive_hub_name,
    observe,
)
from compute_management_operator.hub.federation.plan import plan, policies_to_enqueue
from compute_management_operator.hub.federation.staleness import is_out_of_date
from compute_management_operator.hub.federation.suspension_gauges import SuspensionGauges
from compute_management_operator.hub.federation.tracker import FederationTracker
from compute_management_operator.hub.hearing.dark_objects import CellHearing
from compute_management_operator.hub.latency import LatencyTracker
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.referenced_data.resolver import DataResolver
from compute_management_operator.plane_listeners import ForgetPlanes
from compute_management_operator.planes import (
    CLUSTER,
    DEPLOYMENT,
    HUB,
    NAMESPACE,
    POLICY,
    PROJECT,
)
from compute_management_operator.stored_status import StoredCondition
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.mass_delete import MassDeleteGuard
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, DroppedChange, Watch
from compute_operator_kit.core.errors import ReconcileError, UnavailableError
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Ensure, Plan, SetStatus
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.telemetry.span_attributes import annotate_reconcile

NAME: Final = "federation"
POLICY_CONTROLLER: Final = "policy"
WRITER: Final = FieldOwner(NAME, labels.FEDERATION_MANAGER)


@dataclass(frozen=True, slots=True)
class FederationReconciler:
    """`observe`, `plan` and `report` of this folder, as the kit calls them for one reconcile."""

    live: FederationLiveFacts
    known: Callable[[str], FederationMemory]

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedDeployment | None:
        hub_name = ""
        if isinstance(self.live.namespace, str):
            hub_name = names.derive_hub_namespace(self.live.namespace)
        return observe(key, caches, self.live, self.known(hub_name))

    def plan(self, observed: ObservedDeployment, now: datetime) -> Plan:
        return plan(observed, now)

    def report(self, observed: ObservedDeployment, applied: Applied, now: datetime) -> Plan:
        return status.report(observed, applied, now)


class Federation:
    """The state of the controller between reconciles."""

    def __init__(
        self,
        deps: Dependencies,
        namespaces: NamespaceUids,
        hearing: CellHearing,
        data: DataResolver | None = None,
    ) -> None:
        self._deps = deps
        self._data = data
        self._hearing = hearing
        self._memory = FederationTracker(deps.clock, deps.operator)
        self._guard = MassDeleteGuard()
        self._namespaces = namespaces
        reads = ApiReader(deps.context, WRITER)
        self._live_reads = FederationLiveReads(
            reads, namespaces, self._guard, self._memory.leftovers, deps.clock
        )
        self._latency = LatencyTracker(metrics.LATENCY, deps.clock, deps.metrics)
        self._mirror = LatencyTracker(metrics.MIRROR_LATENCY, deps.clock, deps.metrics)
        self._suspensions = SuspensionGauges(deps.clock, deps.metrics)
        # A rate over a series that begins with its first event misses that event.
        deps.metrics.count(metrics.IDENTITY_CONFLICTS, 0, controller=NAME)
        deps.metrics.count(metrics.SWEEP_REFUSALS, 0, kind=DEPLOYMENT.kind)

    # --- mapping functions ----------------------------------------------------------------------

    def map_deployment(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        if watches.concerns_copy(change):
            self._latency.start(change.key)
        return (change.key,)

    def map_copy(self, change: Change, caches: Caches) -> Iterable[ObjectKey | DroppedChange]:
        if change.after is None:
            self._memory.leftovers.note_gone(change.key.namespace, change.key.name)
        for key in watches.map_copy(change, caches):
            if isinstance(key, ObjectKey) and change.before is not None:
                self._mirror.start(key)  # a new copy has no status yet
            yield key

    # --- reconcile ------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        if names.parse_hub_namespace(key.namespace) is not None:
            return Result()  # a hub copy, should planes share an API server
        try:
            live = await self._live_reads.read(key, work.caches)
        except ReconcileError as error:
            self._note_error(key, error, work.caches)
            raise
        if live is None:
            self._forget_key(key)
            return Result()
        if self._data is not None:
            hub_name = derive_hub_name(Absent(), live.namespace)
            live = replace(live, data=await self._data.resolve(key, work.caches, hub_name))
        verdicts = self._hearing.current
        steps = FederationReconciler(live, lambda name: self._memory.known(key, name, verdicts))
        result = await run_steps(steps, key, work)
        if result.observed is not None:
            self._note(result.observed, result.plans, work.session.so_far)
        return result

    def _note(self, seen: ObservedDeployment, plans: Iterable[Plan], applied: Applied) -> None:
        self._memory.note(seen, plans, applied)
        self._hearing.deployments.note(seen.key, applied, _stored_conditions(seen.deployment))
        city = "" if isinstance(seen.deployment, Absent) else seen.deployment.city_code
        annotate_reconcile(hub_namespace=seen.hub_name, city_code=city)
        for error in applied.failures:
            if isinstance(error, UnavailableError) and error.plane == HUB:
                self._memory.note_hub_away(seen.key, is_deleting=_is_deleting(seen.deployment))
        for policy in policies_to_enqueue(seen):
            self._deps.context.enqueue(POLICY_CONTROLLER, policy)
        self._count(applied)
        self._time(seen, applied)

    def _note_error(self, key: ObjectKey, error: ReconcileError, caches: Caches) -> None:
        metrics.count_hub_error(error, NAME, "read", self._deps.metrics)
        self._latency.note_reconcile(key, has_failed=metrics.is_deferred_for_hub((error,)))
        if error.plane == HUB:
            entry = caches.lister(key.plane, DEPLOYMENT).entry(key.namespace, key.name)
            is_deleting = entry is not None and entry.metadata.is_deleting
            self._memory.note_hub_away(key, is_deleting=is_deleting)

    @property
    def _caches(self) -> Caches:
        return self._deps.context.caches

    def _forget_key(self, key: ObjectKey) -> None:
        self._memory.end(key)
        self._latency.end_key(key)
        self._mirror.drop(key)
        self._hearing.deployments.drop(key)
        if self._data is not None:
            self._data.drop(key)

    # --- metrics --------------------------------------------------------------------------------

    def _count(self, applied: Applied) -> None:
        measures = self._deps.metrics
        metrics.count_writes(applied, measures)
        metrics.count_hub_errors(applied, NAME, measures)
        # Its event is recorded once; each reconcile counts it for as long as it lasts.
        if metrics.is_waiting_for(applied, reasons.HUB_IDENTITY_CONFLICT):
            measures.count(metrics.IDENTITY_CONFLICTS, controller=NAME)
        if metrics.has_recorded(applied, reasons.MASS_DELETE_REFUSED):
            measures.count(metrics.SWEEP_REFUSALS, kind=DEPLOYMENT.kind)

    def _time(self, seen: ObservedDeployment, applied: Applied) -> None:
        """Ends the latencies of what was written; a key that waits for the hub keeps its time. A
        change of the copy without a status for the project is no report, and its time is dropped.
        """
        if not any(isinstance(outcome.intent, SetStatus) for outcome in applied.outcomes):
            self._mirror.drop(seen.key)
        self._latency.note_reconcile(
            seen.key, has_failed=metrics.is_deferred_for_hub(applied.failures)
        )
        for outcome in applied.outcomes:
            match outcome.intent:
                case Ensure(key=key) if key.plane == HUB and key.kind == DEPLOYMENT:
                    self._latency.end(seen.key, outcome.effect)
                case SetStatus():
                    metrics.end_latency(self._mirror, seen.key, outcome)
                case _:
                    pass

    def update_gauges(self) -> None:
        """Gauges, from caches and from what reconciles noted."""
        measures = self._deps.metrics
        for held, number in self._memory.count_held().items():
            measures.gauge(metrics.FINALIZERS_HELD, number, reason=held)
        orphans = self._memory.waits.count()[reasons.ORPHANED]
        measures.gauge(metrics.ORPHANED, orphans)
        self._suspensions.update(self._caches)
        oldest = self._latency.oldest.total_seconds()
        measures.gauge(metrics.OLDEST_PENDING, oldest, controller=NAME)
        if HUB in self._caches.planes(Role.HUB):
            view = self._caches.lister(HUB, DEPLOYMENT)
            for cells in ("0", "1", "many"):
                number = len(view.entries_by_index(indexes.CELLS, cells))
                measures.gauge(metrics.REPORTING_CELLS, number, cells=cells)

    # --- planes ---------------------------------------------------------------------------------

    def forget_plane(self, plane: PlaneName) -> None:
        """A project was disengaged: its keys are forgotten."""

        def is_gone(key: ObjectKey) -> bool:
            return key.plane == plane

        self._memory.forget(is_gone)
        self._latency.forget(is_gone)
        self._mirror.forget(is_gone)
        self._hearing.deployments.forget(is_gone)
        self._guard.forget(lambda project: project == plane)


def _is_deleting(deployment: ProjectDeployment | Absent) -> bool:
    return not isinstance(deployment, Absent) and deployment.metadata.is_deleting


def _stored_conditions(deployment: ProjectDeployment | Absent) -> tuple[StoredCondition, ...]:
    return () if isinstance(deployment, Absent) else tuple(deployment.status.stored.conditions)


def build(
    deps: Dependencies,
    namespaces: NamespaceUids,
    hearing: CellHearing | None = None,
    data: DataResolver | None = None,
) -> ControllerSetup:
    federation = Federation(deps, namespaces, hearing or CellHearing(), data)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(
            Watch(Role.PROJECT, DEPLOYMENT, federation.map_deployment),
            Watch(Role.HUB, DEPLOYMENT, federation.map_copy),
            Watch(Role.HUB, NAMESPACE, watches.map_hub_namespace),
            Watch(Role.HUB, POLICY, watches.map_policy),
            # Not needed: unreadable Clusters must not stop the delivery of deployments.
            Watch(Role.HUB, CLUSTER, watches.map_cluster, is_needed=False),
            # Not needed either: without the root a suspension stays as the hub has it.
            Watch(Role.ROOT, PROJECT, watches.map_project, is_needed=False),
        ),
        reconcile=federation.reconcile,
        keys_on_engage=watches.enqueue_deployments,
        is_out_of_date=is_out_of_date,
        rate_limit=HUB_RATE_LIMIT,
        retry=RETRY,
        resync=RESYNC,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric=metrics.DROPPED,
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=HUB_CACHES,
        listeners=(ForgetPlanes(federation.forget_plane),),
        update_gauges=federation.update_gauges,
    )
