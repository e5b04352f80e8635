"""The policy controller, assembled: its watches, its live reads, its reconciler and metrics.

It proves the source namespace of a hub namespace by its UID first, so that a forged label neither
creates nor deletes a policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_management_operator.dependencies import RESYNC, RETRY, Dependencies
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.hub.caches import HUB_CACHES
from compute_management_operator.hub.identity import ProjectNamespace, read_project_namespace
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.policy import watches
from compute_management_operator.hub.policy.observe import ObservedPolicies, observe, read_clusters
from compute_management_operator.hub.policy.plan import find_ambiguous, plan
from compute_management_operator.hub.watches import enqueue_nothing, fairness_by_project
from compute_management_operator.planes import (
    CLUSTER,
    DEPLOYMENT,
    HUB,
    NAMESPACE,
    POLICY,
    PROJECT,
    SINGLE,
)
from compute_operator_kit.cache.store import Caches, Change
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.errors import PlaneGoneError, ReconcileError
from compute_operator_kit.core.keys import ObjectKey, Role, Uid
from compute_operator_kit.core.objects import Absent, Unreadable
from compute_operator_kit.intents.intents import Plan, RecordEvent
from compute_operator_kit.intents.outcomes import Applied, Effect
from compute_operator_kit.telemetry.span_attributes import annotate_reconcile

NAME: Final = "policy"
WRITER: Final = FieldOwner(NAME, labels.POLICY_MANAGER)


@dataclass(frozen=True, slots=True)
class PolicyReconciler:
    """One reconcile; a policy has no status of ours."""

    project_namespace: ProjectNamespace | Absent | Unreadable
    reported: dict[ObjectKey, tuple[str, ...]]
    delivers_data: bool = False

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedPolicies | None:
        return observe(
            key, caches, self.project_namespace, self.reported, delivers_data=self.delivers_data
        )

    def plan(self, observed: ObservedPolicies, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return plan(observed)

    def report(self, observed: ObservedPolicies, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


class Policies:
    """The state of the controller between reconciles."""

    def __init__(self, deps: Dependencies, namespaces: NamespaceUids) -> None:
        self._deps = deps
        self._namespaces = namespaces
        self._reported: dict[ObjectKey, tuple[str, ...]] = {}

    def map_deployment(self, change: Change, caches: Caches) -> Iterable[ObjectKey]:
        if change.before is not None or change.is_initial:
            return watches.map_deployment(change, caches, self._namespaces.find_uid)

        def find_anchored(place: ProjectNamespace) -> Uid | None:
            # A new deployment may be in a namespace that was recreated under its name.
            view = caches.lister(place.plane, DEPLOYMENT)
            return self._namespaces.cached_if_anchored(place.namespace, view)

        return watches.map_deployment(change, caches, find_anchored)

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        if key.plane != HUB:
            return await self._enqueue_on_hub(key)
        source = await self._find_source(key, work.caches)
        delivers_data = self._deps.settings.delivers_data
        steps = PolicyReconciler(source, self._reported, delivers_data)
        result = await run_steps(steps, key, work)
        if result.observed is not None:
            self._note(result.observed, work.session.so_far)
        return result

    async def _enqueue_on_hub(self, key: ObjectKey) -> Result:
        """A key of a project namespace: reads its UID and enqueues the key on the hub."""
        uid = await self._namespaces.read(ProjectNamespace(key.plane, key.namespace))
        if not isinstance(uid, Absent):
            hub_name = names.derive_hub_namespace(uid)
            self._deps.context.enqueue(NAME, watches.hub_key(hub_name, key.name))
        return Result()

    async def _find_source(
        self, key: ObjectKey, caches: Caches
    ) -> ProjectNamespace | Absent | Unreadable:
        """The project namespace of a hub namespace, proven by its UID."""
        uid = names.parse_hub_namespace(key.namespace)
        known = self._namespaces.find_namespace(uid or "")
        if known is not None:
            return known
        entry = caches.lister(HUB, NAMESPACE).entry("", key.namespace)
        place = None if entry is None else read_project_namespace(entry.metadata)
        if place is None:
            return Absent()
        if place.plane not in caches.planes(Role.PROJECT):
            return read_unengaged(place, caches)
        try:
            current = await self._namespaces.read(place)
        except PlaneGoneError:
            return Absent()
        except ReconcileError as error:
            # The project does not answer: which cities it needs is unknown.
            return Unreadable(error.reason)
        return place if current == uid else Absent()

    # --- memory and metrics ---------------------------------------------------------------------

    def _note(self, seen: ObservedPolicies, applied: Applied) -> None:
        annotate_reconcile(hub_namespace=seen.key.namespace, city_code=",".join(seen.needed))
        metrics.count_writes(applied, self._deps.metrics)
        metrics.count_hub_errors(applied, NAME, self._deps.metrics)
        if isinstance(seen.clusters, Unreadable):
            return
        ambiguous = find_ambiguous(seen.clusters)
        for policy in seen.policies:
            if policy.code not in ambiguous or not policy.is_live:
                self._reported.pop(policy.key, None)
        recorded = [
            outcome.intent.key
            for outcome in applied.outcomes
            if isinstance(outcome.intent, RecordEvent)
            and outcome.intent.reason == reasons.AMBIGUOUS_CITY
            and outcome.effect is Effect.NOTED
        ]
        codes = {policy.key: policy.code for policy in seen.policies}
        self._reported |= {key: ambiguous[codes[key]] for key in recorded}

    def update_gauges(self) -> None:
        """Gauges, from caches."""
        caches, measures = self._deps.context.caches, self._deps.metrics
        if HUB not in caches.planes(Role.HUB):
            return
        ours = caches.lister(HUB, POLICY).entries_by_index(indexes.OURS, "yes")
        measures.gauge(metrics.POLICIES, len(ours))
        clusters = read_clusters(caches)
        if not isinstance(clusters, Unreadable):
            measures.gauge(metrics.AMBIGUOUS_CITIES, len(find_ambiguous(clusters)))
        self._forget_gone(frozenset(entry.key for entry in ours))

    def _forget_gone(self, present: frozenset[ObjectKey]) -> None:
        kept = {key: clusters for key, clusters in self._reported.items() if key in present}
        self._reported = kept


def read_unengaged(place: ProjectNamespace, caches: Caches) -> Absent | Unreadable:
    """Absent for a project that does not exist, which needs no policy; Unreadable for one that is
    about to be engaged and may need every policy, as each project after a restart.
    """
    roots = caches.planes(Role.ROOT)
    if not roots:
        return Unreadable("NotEngaged") if place.plane == SINGLE else Absent()
    projects = [caches.lister(root, PROJECT).get("", place.plane) for root in roots]
    is_gone = all(isinstance(project, Absent) for project in projects)
    return Absent() if is_gone else Unreadable("NotEngaged")


def build(deps: Dependencies, namespaces: NamespaceUids) -> ControllerSetup:
    policies = Policies(deps, namespaces)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(
            Watch(Role.HUB, POLICY, watches.map_policy),
            Watch(Role.HUB, DEPLOYMENT, watches.map_copy),
            # Federation enqueues the policies of a hub namespace that it has created.
            Watch(Role.HUB, NAMESPACE, enqueue_nothing),
            Watch(Role.PROJECT, DEPLOYMENT, policies.map_deployment),
            # Not needed: unreadable Clusters change nothing.
            Watch(Role.HUB, CLUSTER, watches.map_cluster, is_needed=False),
        ),
        reconcile=policies.reconcile,
        fairness_key=fairness_by_project,
        retry=RETRY,
        resync=RESYNC,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric=metrics.DROPPED,
    )
    return ControllerSetup(
        controller=controller, cached_kinds=HUB_CACHES, update_gauges=policies.update_gauges
    )
