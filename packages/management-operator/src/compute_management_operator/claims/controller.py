"""The claims controller, assembled: its keys, its live reads and its metrics.

Claims are not watched, which would cost a stream per project: for an Instance that is held back,
projection enqueues a key with one GET, and the claims of a project are listed every quarter of an
hour.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels, names
from compute_management_operator.claims import sweep
from compute_management_operator.claims.delays import SWEEP_EVERY
from compute_management_operator.claims.events import ReportedFindings
from compute_management_operator.claims.findings import UNKNOWN_CELL, ProjectFindings
from compute_management_operator.claims.observe import (
    ObservedClaim,
    PlacedSlot,
    ProjectClaim,
    SlotHolder,
    find_placed,
    is_held_back,
    read_claim,
    read_holder,
)
from compute_management_operator.claims.plan import plan
from compute_management_operator.dependencies import RETRY, Dependencies
from compute_management_operator.hub import indexes, metrics
from compute_management_operator.hub.api_reader import ApiReader
from compute_management_operator.hub.caches import HUB_CACHES
from compute_management_operator.hub.identity import ProjectNamespace, read_project_namespace
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.hub.watches import enqueue_nothing, fairness_by_project
from compute_management_operator.plane_listeners import ForgetPlanes
from compute_management_operator.planes import CLAIM, CLUSTER, HUB, INSTANCE, PROJECT
from compute_management_operator.stored_status import read_conditions
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.json import member_object
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.core.objects import Absent, Snapshot, Unreadable
from compute_operator_kit.intents.intents import Delete, Plan
from compute_operator_kit.intents.outcomes import Applied, Effect

NAME: Final = "claims"
WRITER: Final = FieldOwner(NAME, labels.CLAIMS_MANAGER)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClaimReconciler:
    """One reconcile of what the live reads before it have observed."""

    claim: ObservedClaim

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedClaim:  # noqa: ARG002
        return self.claim

    def plan(self, observed: ObservedClaim, now: datetime) -> Plan:  # noqa: ARG002
        return plan(observed)

    def report(self, observed: ObservedClaim, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


class Claims:
    """The state of the controller between reconciles."""

    def __init__(self, deps: Dependencies, namespaces: NamespaceUids) -> None:
        self._deps = deps
        self._namespaces = namespaces
        self._reads = ApiReader(deps.context, WRITER)
        self._reported = ReportedFindings(deps.operator)
        self._idle: dict[ObjectKey, int] = {}
        self._begun: set[PlaneName] = set()

    async def reconcile(self, key: ObjectKey, work: ReconcileContext) -> Result:
        if key.kind == PROJECT:
            return await self._sweep(key.plane, work)
        seen = await self._observe(key, work.caches)
        if seen is None:
            self._idle.pop(key, None)
            return Result()
        result = await run_steps(ClaimReconciler(seen), key, work)
        self._note(seen, work.session.so_far)
        return result

    # --- an Instance that is held back -----------------------------------------------------------

    async def _observe(self, key: ObjectKey, caches: Caches) -> ObservedClaim | None:
        """None where the Instance is not held back, or not verified as the project's."""
        instance = caches.lister(HUB, INSTANCE).get(key.namespace, key.name)
        if not isinstance(instance, Snapshot):
            return None
        if not is_held_back(read_conditions(member_object(instance.read(), "status"))):
            return None
        place = read_project_namespace(instance.metadata)
        if place is None or not sweep.is_readable(caches, place.plane):
            return None
        uid = await self._namespaces.find_or_read(place)
        if isinstance(uid, Absent) or names.derive_hub_namespace(uid) != key.namespace:
            return None
        deployment = instance.metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
        if names.parse_ordinal(deployment, key.name) is None:
            return None
        placed = find_placed(caches, place.plane, place.namespace, deployment)
        return None if isinstance(placed, Absent) else await self._read(key, place, placed, caches)

    async def _read(
        self, key: ObjectKey, place: ProjectNamespace, placed: PlacedSlot, caches: Caches
    ) -> ObservedClaim:
        name = names.derive_claim_name(key.name)
        existing = await self._reads.get(ObjectKey(place.plane, CLAIM, place.namespace, name))
        claim: ProjectClaim | Absent = Absent()
        if not isinstance(existing, Absent):
            claim = read_claim(existing)
        cell = "" if isinstance(claim, Absent) else claim.cell
        servers = caches.lister(HUB, CLUSTER).entries_by_index(indexes.CITY, placed.city_code)
        return ObservedClaim(
            key=key,
            project=place.plane,
            claim=claim,
            placed=placed,
            holder=await self._read_holder(cell),
            is_served=any(entry.key.name != cell for entry in servers),
            operator=self._deps.operator,
            idle_reads=self._idle.get(key, 0),
        )

    async def _read_holder(self, cell: str) -> SlotHolder | Absent:
        """A live read: a claim is removed for the city that its cell does not serve."""
        if not names.is_dns_label(cell):
            return Absent()
        key = ObjectKey(HUB, CLUSTER, "", cell)
        cluster = await self._reads.get(key)
        return cluster if isinstance(cluster, Absent) else read_holder(key, cluster.metadata)

    def _note(self, seen: ObservedClaim, applied: Applied) -> None:
        is_removed = any(
            isinstance(outcome.intent, Delete) and outcome.effect is Effect.WRITTEN
            for outcome in applied.outcomes
        )
        self._idle[seen.key] = 0 if is_removed else seen.idle_reads + 1
        if not is_removed or isinstance(seen.claim, Absent):
            return
        cell = UNKNOWN_CELL if isinstance(seen.holder, Absent) else seen.claim.cell
        self._deps.metrics.count(metrics.MISPLACED_CLAIMS, cell=cell)
        logger.warning(
            "Removing ResourceClaim of another city",
            extra={"ResourceClaim": seen.claim.claim_key, "onPlane": seen.project, "cell": cell},
        )

    # --- the sweep over a project ----------------------------------------------------------------

    async def _sweep(self, plane: PlaneName, work: ReconcileContext) -> Result:
        if plane not in self._begun:
            # After a start all projects are engaged at once; their sweeps are spread.
            self._begun.add(plane)
            return Result(SWEEP_EVERY * self._deps.random.random())
        if not sweep.is_readable(work.caches, plane):
            return Result()
        kube = self._deps.context.kube(plane, WRITER)
        findings = await sweep.sweep(kube, work.caches, plane)
        events = tuple(self._reported.note(plane, findings, work.caches))
        if events:
            self._log(plane, findings)
            await work.session.apply(Plan(events))
        return Result()

    def _log(self, plane: PlaneName, findings: ProjectFindings) -> None:
        for cell, finding in findings.by_cell.items():
            fields = {"cell": cell, "count": finding.count, "ResourceClaims": finding.text}
            whole = {"onPlane": plane, "isWhole": findings.is_whole}
            logger.warning("Finding ResourceClaims that nothing backs", extra={**fields, **whole})

    def update_gauges(self) -> None:
        """A gauge per Cluster, which becomes zero once its claims are backed again."""
        caches, total = self._deps.context.caches, self._reported.total()
        if HUB not in caches.planes(Role.HUB):
            return
        clusters = caches.lister(HUB, CLUSTER).snapshots()
        cells = () if isinstance(clusters, Unreadable) else [one.key.name for one in clusters]
        for cell in {UNKNOWN_CELL, *cells, *total}:
            self._deps.metrics.gauge(metrics.UNBACKED_CLAIMS, total[cell], cell=cell)

    # --- planes ----------------------------------------------------------------------------------

    def forget_plane(self, plane: PlaneName) -> None:
        self._begun.discard(plane)
        self._reported.forget(plane)
        if plane == HUB:
            self._idle.clear()


def enqueue_sweep(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """The sweep of a project that was engaged."""
    if plane in caches.planes(Role.PROJECT):
        yield sweep_key(plane)


def sweep_key(plane: PlaneName) -> ObjectKey:
    return ObjectKey(plane, PROJECT, "", plane)


def build(deps: Dependencies, namespaces: NamespaceUids) -> ControllerSetup:
    claims = Claims(deps, namespaces)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(Watch(Role.HUB, CLUSTER, enqueue_nothing),),
        reconcile=claims.reconcile,
        fairness_key=fairness_by_project,
        keys_on_engage=enqueue_sweep,
        retry=RETRY,
        resync=SWEEP_EVERY,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric=metrics.DROPPED,
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=HUB_CACHES,
        listeners=(ForgetPlanes(claims.forget_plane),),
        update_gauges=claims.update_gauges,
    )
