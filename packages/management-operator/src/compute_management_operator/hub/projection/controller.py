"""The projection controller, assembled: its watches, live reads, reconciler and metrics.

What it remembers between reconciles is kept here and forgotten with its plane, or projects that
come and go would fill the memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels, reasons
from compute_api_types.reasons import QuarantineReason
from compute_management_operator.claims.controller import NAME as CLAIMS
from compute_management_operator.claims.observe import is_held_back
from compute_management_operator.dependencies import HUB_RATE_LIMIT, RESYNC, RETRY, Dependencies
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.caches import HUB_CACHES
from compute_management_operator.hub.hearing.dark_objects import CellHearing
from compute_management_operator.hub.latency import LatencyTracker
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.projection import status, watches
from compute_management_operator.hub.projection.live_reads import ProjectionLiveReads
from compute_management_operator.hub.projection.observe import (
    HubInstance,
    ObservedInstance,
    ProjectionLiveFacts,
    ProjectionMemory,
    observe,
)
from compute_management_operator.hub.projection.plan import plan
from compute_management_operator.hub.projection.recently_created import RecentlyCreated
from compute_management_operator.hub.projection.staleness import is_out_of_date
from compute_management_operator.hub.wait_tracker import WaitTracker
from compute_management_operator.hub.watches import fairness_by_project
from compute_management_operator.plane_listeners import ForgetPlanes
from compute_management_operator.planes import CLUSTER, DEPLOYMENT, HUB, INSTANCE, NAMESPACE
from compute_management_operator.stored_status import NO_STATUS
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.mass_delete import MassDeleteGuard
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.controller.workqueue import Priority
from compute_operator_kit.core.errors import ReconcileError
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.intents import Delete, Ensure, Plan, SetStatus
from compute_operator_kit.intents.outcomes import Applied, Effect
from compute_operator_kit.telemetry.span_attributes import annotate_reconcile

NAME: Final = "projection"
WRITER: Final = FieldOwner(NAME, labels.PROJECTION_MANAGER)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProjectionReconciler:
    """`observe`, `plan` and `report` of this folder, as the kit calls them for one reconcile."""

    live: ProjectionLiveFacts
    known: ProjectionMemory

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedInstance | None:
        return observe(key, caches, self.live, self.known)

    def plan(self, observed: ObservedInstance, now: datetime) -> Plan:
        return plan(observed, now)

    def report(self, observed: ObservedInstance, applied: Applied, now: datetime) -> Plan:
        return status.report(observed, applied, now)


class Projection:
    """The state of the controller between reconciles."""

    def __init__(self, deps: Dependencies, namespaces: NamespaceUids, hearing: CellHearing) -> None:
        self._deps = deps
        self._hearing = hearing
        self._namespaces = namespaces
        self._waits = WaitTracker()
        self._created = RecentlyCreated()
        self._guard = MassDeleteGuard()
        reads = ApiReader(deps.context, WRITER)
        self._live_reads = ProjectionLiveReads(reads, namespaces, self._guard, deps.clock)
        self._lag = LatencyTracker(metrics.PROJECTION_LAG, deps.clock, deps.metrics)
        # A rate over a series that begins with its first event misses that event.
        deps.metrics.count(metrics.IDENTITY_CONFLICTS, 0, controller=NAME)
        deps.metrics.count(metrics.SWEEP_REFUSALS, 0, kind=INSTANCE.kind)

    # --- mapping functions ----------------------------------------------------------------------

    def map_source(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        self._live_reads.note_change(change)
        self._lag.start(change.key)
        return (change.key,)

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        return watches.map_instance(change, self._namespaces.find_uid)

    def map_deployment(self, change: Change, caches: Caches) -> Iterable[ObjectKey]:
        return watches.map_deployment(change, caches, self._namespaces.find_uid)

    # --- reconcile ------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        if key.plane != HUB:
            return await self._enqueue_on_hub(key, work.caches)
        try:
            live = await self._live_reads.read(key, work.caches)
        except ReconcileError as error:
            metrics.count_hub_error(error, NAME, "read", self._deps.metrics)
            self._lag.note_reconcile(key, has_failed=metrics.is_deferred_for_project((error,)))
            raise
        if live is None:
            self._waits.end(key)
            self._created.forget(key)
            self._lag.end_key(key)
            self._hearing.instances.drop(key)
            return Result()
        steps = ProjectionReconciler(live, self._known(key))
        result = await run_steps(steps, key, work)
        if result.observed is not None:
            self._note(result.observed, result.plans, work.session.so_far)
        return result

    def _known(self, key: ObjectKey) -> ProjectionMemory:
        return ProjectionMemory(
            since=self._waits.of(key),
            needs_cell_label=self._deps.settings.projection.require_cell_label,
            operator=self._deps.operator,
            was_created=key in self._created,
            hearing=self._hearing.current,
        )

    async def _enqueue_on_hub(self, key: ObjectKey, caches: Caches) -> Result:
        """A key of a project object: reads the UID and enqueues the keys on the hub."""
        uid = await self._namespaces.find_or_read(watches.project_namespace_of(key))
        if not isinstance(uid, Absent):
            for source in watches.resolve(key, uid, caches):
                self._deps.context.enqueue(NAME, source, _priority_of(key))
        return Result()

    # --- memory and metrics ---------------------------------------------------------------------

    def _note(self, seen: ObservedInstance, plans: Iterable[Plan], applied: Applied) -> None:
        self._waits.note(seen.key, plans, self._deps.clock.now())
        annotate_reconcile(hub_namespace=seen.key.namespace)
        shown = seen.projection.status if isinstance(seen.projection, HubInstance) else NO_STATUS
        self._hearing.instances.note(seen.key, applied, shown.conditions)
        measures = self._deps.metrics
        metrics.count_writes(applied, measures)
        metrics.count_hub_errors(applied, NAME, measures)
        if metrics.has_recorded(applied, reasons.MASS_DELETE_REFUSED):
            measures.count(metrics.SWEEP_REFUSALS, kind=INSTANCE.kind)
        self._lag.note_reconcile(
            seen.key, has_failed=metrics.is_deferred_for_project(applied.failures)
        )
        for outcome in applied.outcomes:
            match outcome.intent:
                case Ensure(key=key, reason=reason) if key.plane == HUB:
                    self._log_quarantine(seen, reason, outcome.effect)
                case Ensure(uid=None) if outcome.effect is Effect.WRITTEN:
                    self._created.add(seen.key)
                case Delete():
                    # Deleted by this operator: it is created again without a live read.
                    self._created.forget(seen.key)
                case SetStatus():
                    metrics.end_latency(self._lag, seen.key, outcome)
                    self._enqueue_claim(seen)
                case _:
                    pass

    def _enqueue_claim(self, seen: ObservedInstance) -> None:
        """Enqueues the claim of a verified Instance that is held back: claims are not watched."""
        source = seen.source
        if isinstance(source, HubInstance) and is_held_back(source.status.conditions):
            self._deps.context.enqueue(CLAIMS, seen.key)

    def _log_quarantine(self, seen: ObservedInstance, reason: str, effect: Effect) -> None:
        """One line per quarantine; alerts match it, users do not see it."""
        if effect is not Effect.WRITTEN or not reason.startswith("Quarantined"):
            return
        if reason == QuarantineReason.IDENTITY_MISMATCH.event:
            measures = self._deps.metrics
            measures.count(metrics.IDENTITY_CONFLICTS, controller=NAME)
        place = f"{seen.key.namespace}/{seen.key.name}"
        logger.error("Quarantining Instance", extra={"Instance": place, "reason": reason})

    def update_gauges(self) -> None:
        """Gauges, from the cache and from pending keys."""
        oldest = self._lag.oldest.total_seconds()
        self._deps.metrics.gauge(metrics.OLDEST_PENDING, oldest, controller=NAME)
        caches = self._deps.context.caches
        if HUB not in caches.planes(Role.HUB):
            return
        view = caches.lister(HUB, INSTANCE)
        for reason in QuarantineReason:
            number = len(view.entries_by_index(indexes.QUARANTINE, reason.value))
            self._deps.metrics.gauge(metrics.QUARANTINED, number, reason=reason.value)

    # --- planes ---------------------------------------------------------------------------------

    def forget_plane(self, plane: PlaneName) -> None:
        self._guard.forget(lambda project: project == plane)
        self._namespaces.forget_plane(plane)
        if plane == HUB:
            self._waits.forget(lambda key: True)  # noqa: ARG005 - every key is the hub's
            self._lag.forget(lambda key: True)  # noqa: ARG005
            self._hearing.instances.forget(lambda key: True)  # noqa: ARG005


def _priority_of(key: ObjectKey) -> Priority:
    """Low for a whole namespace, which is enqueued when its project is engaged, and only then."""
    return Priority.LOW if key.kind == NAMESPACE else Priority.HIGH


def build(
    deps: Dependencies, namespaces: NamespaceUids, hearing: CellHearing | None = None
) -> ControllerSetup:
    projection = Projection(deps, namespaces, hearing or CellHearing())
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(
            Watch(Role.HUB, INSTANCE, projection.map_source),
            Watch(Role.PROJECT, INSTANCE, projection.map_instance),
            Watch(Role.PROJECT, DEPLOYMENT, projection.map_deployment),
            Watch(Role.HUB, NAMESPACE, watches.map_hub_namespace),
            # Not needed: while Clusters are unreadable, existing projections are updated.
            Watch(Role.HUB, CLUSTER, watches.map_cluster, is_needed=False),
        ),
        reconcile=projection.reconcile,
        fairness_key=fairness_by_project,
        keys_on_engage=watches.enqueue_instances,
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
        listeners=(ForgetPlanes(projection.forget_plane),),
        update_gauges=projection.update_gauges,
    )
