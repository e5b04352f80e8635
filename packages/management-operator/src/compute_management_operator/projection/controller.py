"""The projection controller, assembled: what wakes it, what it reads, its steps, what it counts."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from compute_api_types import labels, reasons
from compute_api_types.reasons import QuarantineReason
from compute_management_operator import hub_indexes, hub_measures
from compute_management_operator.assembly import LATER_TEMPO, RESYNC, RETRY, Tools
from compute_management_operator.claims.controller import NAME as CLAIMS
from compute_management_operator.claims.observe import is_held_back
from compute_management_operator.episodes import Episodes
from compute_management_operator.forgetting import ForgetPlanes
from compute_management_operator.fresh_reads import FreshReads
from compute_management_operator.hub_caches import HUB_CACHES
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, INSTANCE, NAMESPACE
from compute_management_operator.plane_names import HUB
from compute_management_operator.policy.mapping import share_by_project
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_management_operator.projection import mapping, status
from compute_management_operator.projection.behind import is_behind
from compute_management_operator.projection.lookups import Lookups
from compute_management_operator.projection.made import MadeLately
from compute_management_operator.projection.observe import Fresh, Instance, Known, Seen, observe
from compute_management_operator.projection.plan import plan
from compute_management_operator.stopwatch import Stopwatch
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.errors import ReconcileError
from compute_operator_kit.intents import Delete, Ensure, Plan, SetStatus
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.mass_delete import MassDeleteGuard
from compute_operator_kit.objects import Absent
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.parts import Part
from compute_operator_kit.reconcile import Pass, Result, run_steps
from compute_operator_kit.span_attributes import annotate_pass
from compute_operator_kit.workqueue import Priority

NAME: Final = "projection"
WRITER: Final = Writer(NAME, labels.PROJECTION_MANAGER)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ProjectionSteps:
    """One pass: the files of the folder as the kit calls them, and what they gave."""

    fresh: Fresh
    known: Known
    seen: Seen | None = None
    plans: list[Plan] = field(default_factory=list)

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        self.seen = observe(key, caches, self.fresh, self.known)
        return self.seen

    def plan(self, seen: Seen, now: datetime) -> Plan:
        self.plans.append(plan(seen, now))
        return self.plans[-1]

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:
        self.plans.append(status.report(seen, applied, now))
        return self.plans[-1]


class Projection:
    """What lasts longer than a pass."""

    def __init__(self, tools: Tools, namespaces: ProjectNamespaces) -> None:
        self._tools = tools
        self._namespaces = namespaces
        self._episodes = Episodes()
        self._made = MadeLately()
        self._guard = MassDeleteGuard()
        reads = FreshReads(tools.reach, WRITER)
        self._lookups = Lookups(reads, namespaces, self._guard, tools.clock)
        self._lag = Stopwatch(hub_measures.PROJECTION_LAG, tools.clock, tools.measures)
        # A rate over a series that begins with its first event misses that event.
        tools.measures.count(hub_measures.IDENTITY_CONFLICTS, 0, controller=NAME)
        tools.measures.count(hub_measures.SWEEP_REFUSALS, 0, kind=INSTANCE.kind)

    # --- waking ---------------------------------------------------------------------------------

    def map_source(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        self._lookups.witness(change)
        self._lag.start(change.key)
        return (change.key,)

    def map_instance(self, change: Change, _: Caches) -> Iterable[ObjectKey]:
        return mapping.map_instance(change, self._namespaces.find_uid)

    def map_deployment(self, change: Change, caches: Caches) -> Iterable[ObjectKey]:
        return mapping.map_deployment(change, caches, self._namespaces.find_uid)

    # --- a pass ---------------------------------------------------------------------------------

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        if key.plane != HUB:
            return await self._resolve(key, work.caches)
        try:
            fresh = await self._lookups.look_up(key, work.caches)
        except ReconcileError as error:
            hub_measures.count_hub_error(error, NAME, "read", self._tools.measures)
            self._lag.note_pass(key, has_failed=hub_measures.is_owed_to_project((error,)))
            raise
        if fresh is None:
            self._episodes.end(key)
            self._made.forget(key)
            self._lag.end_key(key)
            return Result()
        steps = ProjectionSteps(fresh, self._known(key))
        result = await run_steps(steps, key, work)
        if steps.seen is not None:
            self._note(steps.seen, steps.plans, work.session.so_far)
        return result

    def _known(self, key: ObjectKey) -> Known:
        return Known(
            since=self._episodes.of(key),
            needs_cell_label=self._tools.settings.projection.require_cell_label,
            operator=self._tools.operator,
            was_made=key in self._made,
        )

    async def _resolve(self, key: ObjectKey, caches: Caches) -> Result:
        """A key of a project object: asks for the UID and wakes the keys on the hub."""
        uid = await self._namespaces.find_or_read(mapping.place_of(key))
        if not isinstance(uid, Absent):
            for source in mapping.resolve(key, uid, caches):
                self._tools.reach.wake(NAME, source, _urgency_of(key))
        return Result()

    # --- remembering and counting ---------------------------------------------------------------

    def _note(self, seen: Seen, plans: Iterable[Plan], applied: Applied) -> None:
        self._episodes.note(seen.key, plans, self._tools.clock.now())
        annotate_pass(hub_namespace=seen.key.namespace)
        measures = self._tools.measures
        hub_measures.count_writes(applied, measures)
        hub_measures.count_hub_errors(applied, NAME, measures)
        if hub_measures.has_emitted(applied, reasons.MASS_DELETE_REFUSED):
            measures.count(hub_measures.SWEEP_REFUSALS, kind=INSTANCE.kind)
        self._lag.note_pass(seen.key, has_failed=hub_measures.is_owed_to_project(applied.failures))
        for outcome in applied.outcomes:
            match outcome.intent:
                case Ensure(key=key, reason=reason) if key.plane == HUB:
                    self._log_quarantine(seen, reason, outcome.effect)
                case Ensure(uid=None) if outcome.effect is Effect.WRITTEN:
                    self._made.add(seen.key)
                case Delete():
                    self._made.forget(seen.key)  # missing by our own act, it is made without a read
                case SetStatus():
                    self._lag.end(seen.key, outcome.effect)
                    self._wake_claims(seen)
                case _:
                    pass

    def _wake_claims(self, seen: Seen) -> None:
        """Of what was verified and is shown: claims are not watched, so this is what wakes it."""
        if isinstance(seen.source, Instance) and is_held_back(seen.source.status):
            self._tools.reach.wake(CLAIMS, seen.key)

    def _log_quarantine(self, seen: Seen, reason: str, effect: Effect) -> None:
        """One line per verdict; platform operators are called by it, users never see it."""
        if effect is not Effect.WRITTEN or not reason.startswith("Quarantined"):
            return
        if reason == QuarantineReason.IDENTITY_MISMATCH.event:
            measures = self._tools.measures
            measures.count(hub_measures.IDENTITY_CONFLICTS, controller=NAME)
        place = f"{seen.key.namespace}/{seen.key.name}"
        logger.error("Quarantining Instance", extra={"Instance": place, "reason": reason})

    def report(self) -> None:
        """Gauges, from the cache and what passes owe."""
        owed = self._lag.oldest.total_seconds()
        self._tools.measures.gauge(hub_measures.OLDEST_PENDING, owed, controller=NAME)
        caches = self._tools.reach.caches
        if HUB not in caches.planes(Role.HUB):
            return
        view = caches.view(HUB, INSTANCE)
        for reason in QuarantineReason:
            number = len(view.entries_by_index(hub_indexes.QUARANTINE, reason.value))
            self._tools.measures.gauge(hub_measures.QUARANTINED, number, reason=reason.value)

    # --- planes ---------------------------------------------------------------------------------

    def forget_plane(self, plane: PlaneName) -> None:
        self._guard.forget(lambda project: project == plane)
        self._namespaces.forget_plane(plane)
        if plane == HUB:
            self._episodes.forget(lambda key: True)  # noqa: ARG005 - every key is the hub's
            self._lag.forget(lambda key: True)  # noqa: ARG005


def _urgency_of(key: ObjectKey) -> Priority:
    """A whole namespace is asked about when a project is engaged, and only then."""
    return Priority.BACKGROUND if key.kind == NAMESPACE else Priority.FRESH


def build(tools: Tools, namespaces: ProjectNamespaces) -> Part:
    projection = Projection(tools, namespaces)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(
            Watch(Role.HUB, INSTANCE, projection.map_source),
            Watch(Role.PROJECT, INSTANCE, projection.map_instance),
            Watch(Role.PROJECT, DEPLOYMENT, projection.map_deployment),
            Watch(Role.HUB, NAMESPACE, mapping.map_hub_namespace),
            # Not needed: while Clusters are unreadable what is projected stays up to date.
            Watch(Role.HUB, CLUSTER, mapping.map_cluster, is_needed=False),
        ),
        reconcile=projection.reconcile,
        share=share_by_project,
        on_engaged=mapping.wake_instances,
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
        listeners=(ForgetPlanes(projection.forget_plane),),
        report=projection.report,
    )
