"""The referenced-data controller, assembled: its watches, its live reads, its reconciler.

Values pass from one GET to one write inside one reconcile; what stays is a verdict without values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from typing import Final

from compute_api_types import labels, reasons
from compute_management_operator.dependencies import HUB_RATE_LIMIT, RESYNC, RETRY, Dependencies
from compute_management_operator.hub import metrics
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.caches import HUB_CACHES
from compute_management_operator.hub.federation.watches import find_source
from compute_management_operator.hub.latency import LatencyTracker
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.referenced_data import watches
from compute_management_operator.hub.referenced_data.data_caches import cached_kinds
from compute_management_operator.hub.referenced_data.live_reads import DataLiveReads
from compute_management_operator.hub.referenced_data.observe import (
    DataLiveFacts,
    ObservedReference,
    find_naming,
    observe,
)
from compute_management_operator.hub.referenced_data.plan import plan
from compute_management_operator.hub.referenced_data.references import IN_NAMESPACE, KINDS
from compute_management_operator.hub.referenced_data.resolver import DataResolver
from compute_management_operator.hub.watches import enqueue_nothing
from compute_management_operator.plane_listeners import ForgetPlanes
from compute_management_operator.planes import DEPLOYMENT, HUB, NAMESPACE
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.mass_delete import MassDeleteGuard
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Role
from compute_operator_kit.intents.intents import Ensure, Plan
from compute_operator_kit.intents.outcomes import Applied

NAME: Final = "referenced-data"
FEDERATION: Final = "federation"
WRITER: Final = FieldOwner(NAME, labels.REFERENCED_DATA_MANAGER)


@dataclass(frozen=True, slots=True)
class ReferenceReconciler:
    """One reconcile; a companion has no status."""

    live: DataLiveFacts
    operator: ObjectKey

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedReference | None:
        return observe(key, caches, self.live, self.operator)

    def plan(self, observed: ObservedReference, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return plan(observed)

    def report(self, observed: ObservedReference, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


class ReferencedData:
    """The state of the controller between reconciles."""

    def __init__(
        self, deps: Dependencies, namespaces: NamespaceUids, resolver: DataResolver
    ) -> None:
        self._deps = deps
        self._resolver = resolver
        self._guard = MassDeleteGuard()
        self._reads = DataLiveReads(
            ApiReader(deps.context, WRITER),
            namespaces,
            self._guard,
            resolver.verdicts,
            deps.clock,
        )
        self._lag = LatencyTracker(metrics.DATA_LAG, deps.clock, deps.metrics)

    def map_source(self, change: Change, caches: Caches) -> Iterable[ObjectKey]:
        for key in watches.map_source(change, caches):
            if not change.is_initial:
                self._lag.start(key)
            yield key

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        live = await self._reads.read(key, work.caches)
        if live is None:
            self._resolver.verdicts.drop(key)
            self._lag.drop(key)
            return Result()
        self._judge(key, live, work.caches)
        steps = ReferenceReconciler(live, self._deps.operator)
        result = await run_steps(steps, key, work)
        self._note(key, work.session.so_far)
        return Result(result.requeue_after, result.errors, result.is_refused, result.deferred)

    def _judge(self, key: ObjectKey, live: DataLiveFacts, caches: Caches) -> None:
        """Records the verdict, and enqueues the deployments that a changed one concerns."""
        if live.verdict is None:
            self._resolver.verdicts.drop(key)
        elif self._resolver.verdicts.record(key, live.verdict):
            for entry in find_naming(key, caches):
                self._deps.context.enqueue(FEDERATION, entry.key)

    def _note(self, key: ObjectKey, applied: Applied) -> None:
        measures = self._deps.metrics
        metrics.count_companion_writes(applied, measures)
        metrics.count_hub_errors(applied, NAME, measures)
        has_failed = metrics.is_deferred_for_hub(applied.failures)
        self._lag.note_reconcile(key, has_failed=has_failed)
        for outcome in applied.outcomes:
            if isinstance(outcome.intent, Ensure):
                self._lag.end(key, outcome.effect)

    # --- gauges and planes ----------------------------------------------------------------------

    def update_gauges(self) -> None:
        caches, measures = self._deps.context.caches, self._deps.metrics
        if HUB not in caches.planes(Role.HUB):
            return
        measures.gauge(metrics.COMPANIONS, sum(map(_count_companions, repeat(caches), KINDS)))
        counted = self._resolver.count_errors()
        distribution = self._resolver.distribution
        measures.gauge(metrics.DATA_UNDISTRIBUTED, distribution.count())
        for copy in distribution.find_due(caches):
            source = find_source(copy, caches)
            if isinstance(source, ObjectKey):
                self._deps.context.enqueue(FEDERATION, source)
        for reason in ERROR_REASONS:
            measures.gauge(metrics.DATA_ERRORS, counted[reason], reason=reason)

    def forget_plane(self, plane: PlaneName) -> None:
        def is_gone(key: ObjectKey) -> bool:
            return key.plane == plane

        self._resolver.forget(is_gone)
        self._lag.forget(is_gone)
        self._guard.forget(lambda project: project == plane)


def _count_companions(caches: Caches, kind: Kind) -> int:
    view = caches.lister(HUB, kind)
    places = view.index_values(IN_NAMESPACE)
    return sum(len(view.entries_by_index(IN_NAMESPACE, place)) for place in places)


ERROR_REASONS: Final = (
    reasons.SOURCE_NOT_FOUND,
    reasons.SOURCE_UNAUTHORIZED,
    reasons.SOURCE_TOO_LARGE,
    reasons.SOURCE_NAME_TOO_LONG,
    reasons.SOURCE_NAME_TAKEN,
    reasons.SOURCE_NOT_SUPPORTED,
)


def build(deps: Dependencies, namespaces: NamespaceUids, resolver: DataResolver) -> ControllerSetup:
    data = ReferencedData(deps, namespaces, resolver)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(
            Watch(Role.PROJECT, DEPLOYMENT, watches.map_deployment),
            # Not needed: a plane where they may not be listed has verdicts, too.
            *(Watch(Role.PROJECT, kind, data.map_source, is_needed=False) for kind in KINDS),
            Watch(Role.HUB, DEPLOYMENT, watches.map_copy),
            Watch(Role.HUB, NAMESPACE, enqueue_nothing),
            *(Watch(Role.HUB, kind, watches.map_companion) for kind in KINDS),
        ),
        reconcile=data.reconcile,
        keys_on_engage=watches.enqueue_references,
        rate_limit=HUB_RATE_LIMIT,
        retry=RETRY,
        resync=RESYNC,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric=metrics.DROPPED,
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=(*HUB_CACHES, *cached_kinds()),
        listeners=(ForgetPlanes(data.forget_plane),),
        update_gauges=data.update_gauges,
    )
