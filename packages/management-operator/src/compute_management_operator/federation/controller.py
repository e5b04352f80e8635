"""The federation controller, assembled: what wakes it, what it reads, its steps, what it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_management_operator import hub_indexes, hub_measures
from compute_management_operator.assembly import LATER_TEMPO, RESYNC, RETRY, Tools
from compute_management_operator.federation import mapping, status
from compute_management_operator.federation.behind import is_behind
from compute_management_operator.federation.lookups import Lookups
from compute_management_operator.federation.memory import Memory
from compute_management_operator.federation.observe import (
    Deployment,
    Fresh,
    Known,
    Seen,
    observe,
)
from compute_management_operator.federation.plan import plan, policies_to_wake
from compute_management_operator.forgetting import ForgetPlanes
from compute_management_operator.fresh_reads import FreshReads
from compute_management_operator.hub_caches import HUB_CACHES
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, NAMESPACE, POLICY
from compute_management_operator.plane_names import HUB
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_management_operator.stopwatch import Stopwatch
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Dropped, Watch
from compute_operator_kit.errors import ReconcileError, UnavailableError
from compute_operator_kit.intents import Ensure, Plan, SetStatus
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.mass_delete import MassDeleteGuard
from compute_operator_kit.objects import Absent
from compute_operator_kit.outcomes import Applied
from compute_operator_kit.parts import Part
from compute_operator_kit.reconcile import Pass, Result, run_steps
from compute_operator_kit.span_attributes import annotate_pass

NAME: Final = "federation"
POLICY_CONTROLLER: Final = "policy"
WRITER: Final = Writer(NAME, labels.FEDERATION_MANAGER)


@dataclass(slots=True)
class FederationSteps:
    """One pass: the files of the folder as the kit calls them, and what they gave."""

    fresh: Fresh
    known: Callable[[str], Known]
    seen: Seen | None = None
    plans: list[Plan] = field(default_factory=list)

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        hub_name = ""
        if isinstance(self.fresh.namespace, str):
            hub_name = names.derive_hub_namespace(self.fresh.namespace)
        self.seen = observe(key, caches, self.fresh, self.known(hub_name))
        return self.seen

    def plan(self, seen: Seen, now: datetime) -> Plan:
        self.plans.append(plan(seen, now))
        return self.plans[-1]

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:
        self.plans.append(status.report(seen, applied, now))
        return self.plans[-1]


class Federation:
    """What lasts longer than a pass."""

    def __init__(self, tools: Tools, namespaces: ProjectNamespaces) -> None:
        self._tools = tools
        self._memory = Memory(tools.clock, tools.operator)
        self._guard = MassDeleteGuard()
        self._namespaces = namespaces
        reads = FreshReads(tools.reach, WRITER)
        self._lookups = Lookups(reads, namespaces, self._guard, self._memory.leftovers, tools.clock)
        self._latency = Stopwatch(hub_measures.LATENCY, tools.clock, tools.measures)
        self._mirror = Stopwatch(hub_measures.MIRROR_LATENCY, tools.clock, tools.measures)
        # A rate over a series that begins with its first event misses that event.
        tools.measures.count(hub_measures.IDENTITY_CONFLICTS, 0, controller=NAME)
        tools.measures.count(hub_measures.SWEEP_REFUSALS, 0, kind=DEPLOYMENT.kind)

    # --- waking ---------------------------------------------------------------------------------

    def map_deployment(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        if mapping.is_news_for_hub(change):
            self._latency.start(change.key)
        return (change.key,)

    def map_copy(self, change: Change, caches: Caches) -> Iterable[ObjectKey | Dropped]:
        if change.after is None:
            self._memory.leftovers.note_gone(change.key.namespace, change.key.name)
        for found in mapping.map_copy(change, caches):
            if isinstance(found, ObjectKey) and change.before is not None:
                self._mirror.start(found)  # a copy that is new says nothing yet
            yield found

    # --- a pass ---------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        if names.parse_hub_namespace(key.namespace) is not None:
            return Result()  # a hub copy, should planes share an API server
        try:
            fresh = await self._lookups.look_up(key, work.caches)
        except ReconcileError as error:
            self._note_error(key, error, work.caches)
            raise
        if fresh is None:
            self._forget_key(key)
            return Result()
        steps = FederationSteps(fresh, lambda hub_name: self._memory.known(key, hub_name))
        result = await run_steps(steps, key, work)
        if steps.seen is not None:
            self._note(steps.seen, steps.plans, work.session.so_far)
        return result

    def _note(self, seen: Seen, plans: Iterable[Plan], applied: Applied) -> None:
        self._memory.note(seen, plans, applied)
        city = "" if isinstance(seen.deployment, Absent) else seen.deployment.city_code
        annotate_pass(hub_namespace=seen.hub_name, city_code=city)
        for error in applied.failures:
            if isinstance(error, UnavailableError) and error.plane == HUB:
                self._memory.note_hub_away(seen.key, is_going=_is_going(seen.deployment))
        for policy in policies_to_wake(seen):
            self._tools.reach.wake(POLICY_CONTROLLER, policy)
        self._count(applied)
        self._time(seen, applied)

    def _note_error(self, key: ObjectKey, error: ReconcileError, caches: Caches) -> None:
        hub_measures.count_hub_error(error, NAME, "read", self._tools.measures)
        self._latency.note_pass(key, has_failed=hub_measures.is_owed_to_hub((error,)))
        if error.plane == HUB:
            entry = caches.view(key.plane, DEPLOYMENT).entry(key.namespace, key.name)
            is_going = entry is not None and entry.metadata.is_deleting
            self._memory.note_hub_away(key, is_going=is_going)

    @property
    def _caches(self) -> Caches:
        return self._tools.reach.caches

    def _forget_key(self, key: ObjectKey) -> None:
        self._memory.end(key)
        self._latency.end_key(key)
        self._mirror.drop(key)

    # --- counting -------------------------------------------------------------------------------

    def _count(self, applied: Applied) -> None:
        measures = self._tools.measures
        hub_measures.count_writes(applied, measures)
        hub_measures.count_hub_errors(applied, NAME, measures)
        # Told once and counted by every pass that meets it, for as long as it lasts.
        if hub_measures.is_waiting_for(applied, reasons.HUB_IDENTITY_CONFLICT):
            measures.count(hub_measures.IDENTITY_CONFLICTS, controller=NAME)
        if hub_measures.has_emitted(applied, reasons.MASS_DELETE_REFUSED):
            measures.count(hub_measures.SWEEP_REFUSALS, kind=DEPLOYMENT.kind)

    def _time(self, seen: Seen, applied: Applied) -> None:
        """How long it took, once it is done; who still waits for the hub leaves the watch running.
        What the hub said about nothing that is shown was no report.
        """
        if not any(isinstance(outcome.intent, SetStatus) for outcome in applied.outcomes):
            self._mirror.drop(seen.key)
        self._latency.note_pass(seen.key, has_failed=hub_measures.is_owed_to_hub(applied.failures))
        for outcome in applied.outcomes:
            match outcome.intent:
                case Ensure(key=key) if key.plane == HUB and key.kind == DEPLOYMENT:
                    self._latency.end(seen.key, outcome.effect)
                case SetStatus():
                    self._mirror.end(seen.key, outcome.effect)
                case _:
                    pass

    def report(self) -> None:
        """Gauges, from caches and what passes found."""
        measures = self._tools.measures
        for held, number in self._memory.count_held().items():
            measures.gauge(hub_measures.FINALIZERS_HELD, number, reason=held)
        orphans = self._memory.episodes.count()[reasons.ORPHANED]
        measures.gauge(hub_measures.ORPHANED, orphans)
        owed = self._latency.oldest.total_seconds()
        measures.gauge(hub_measures.OLDEST_PENDING, owed, controller=NAME)
        if HUB in self._caches.planes(Role.HUB):
            view = self._caches.view(HUB, DEPLOYMENT)
            for cells in ("0", "1", "many"):
                number = len(view.entries_by_index(hub_indexes.CELLS, cells))
                measures.gauge(hub_measures.REPORTING_CELLS, number, cells=cells)

    # --- planes ---------------------------------------------------------------------------------

    def forget_plane(self, plane: PlaneName) -> None:
        """A project is gone for good: nothing is remembered of it."""

        def is_gone(key: ObjectKey) -> bool:
            return key.plane == plane

        self._memory.forget(is_gone)
        self._latency.forget(is_gone)
        self._mirror.forget(is_gone)
        self._guard.forget(lambda project: project == plane)


def _is_going(deployment: Deployment | Absent) -> bool:
    return not isinstance(deployment, Absent) and deployment.metadata.is_deleting


def build(tools: Tools, namespaces: ProjectNamespaces) -> Part:
    federation = Federation(tools, namespaces)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(
            Watch(Role.PROJECT, DEPLOYMENT, federation.map_deployment),
            Watch(Role.HUB, DEPLOYMENT, federation.map_copy),
            Watch(Role.HUB, NAMESPACE, mapping.map_hub_namespace),
            Watch(Role.HUB, POLICY, mapping.map_policy),
            # Not needed: unreadable Clusters must keep nothing from being delivered.
            Watch(Role.HUB, CLUSTER, mapping.map_cluster, is_needed=False),
        ),
        reconcile=federation.reconcile,
        on_engaged=mapping.wake_deployments,
        is_behind=is_behind,
        tempo=LATER_TEMPO,
        retry=RETRY,
        resync=RESYNC,
        deadline=tools.settings.clients.reconcile_timeout,
        dropped_metric=hub_measures.DROPPED,
    )
    return Part(
        controller=controller,
        watched=HUB_CACHES,
        listeners=(ForgetPlanes(federation.forget_plane),),
        report=federation.report,
    )
