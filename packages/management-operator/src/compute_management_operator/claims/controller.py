"""The claims controller, assembled: what wakes it, what it reads, what it counts.

Prevents that looking after claims costs a stream per project: an Instance that projection shows as
held back is looked at with one GET, and the claims of a project are listed every quarter of an
hour.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels, names
from compute_management_operator import hub_indexes, hub_measures
from compute_management_operator.assembly import RETRY, Tools
from compute_management_operator.claims import sweeping
from compute_management_operator.claims.findings import UNKNOWN_CELL, ProjectFindings
from compute_management_operator.claims.observe import (
    Claim,
    Holder,
    Placed,
    Seen,
    find_placed,
    is_held_back,
    read_claim,
    read_holder,
)
from compute_management_operator.claims.plan import plan
from compute_management_operator.claims.reporting import Reported
from compute_management_operator.forgetting import ForgetPlanes
from compute_management_operator.fresh_reads import FreshReads
from compute_management_operator.hub_caches import HUB_CACHES
from compute_management_operator.identities import Place, read_place
from compute_management_operator.kinds import CLAIM, CLUSTER, INSTANCE, PROJECT
from compute_management_operator.plane_names import HUB
from compute_management_operator.policy.mapping import share_by_project
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.intents import Delete, Plan
from compute_operator_kit.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.kube import Writer
from compute_operator_kit.objects import Absent, Snapshot, Unreadable
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.parts import Part
from compute_operator_kit.reconcile import Pass, Result, run_steps
from compute_operator_kit.wire import member_object

NAME: Final = "claims"
WRITER: Final = Writer(NAME, labels.CLAIMS_MANAGER)
SWEEP_EVERY: Final = timedelta(minutes=15)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LookSteps:
    """One look, as the kit calls it: what was asked before the pass is what it sees."""

    seen: Seen

    def observe(self, key: ObjectKey, caches: Caches) -> Seen:  # noqa: ARG002
        return self.seen

    def plan(self, seen: Seen, now: datetime) -> Plan:  # noqa: ARG002
        return plan(seen)

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


class Claims:
    """What lasts longer than a pass."""

    def __init__(self, tools: Tools, namespaces: ProjectNamespaces) -> None:
        self._tools = tools
        self._namespaces = namespaces
        self._reads = FreshReads(tools.reach, WRITER)
        self._reported = Reported(tools.operator)
        self._idle: dict[ObjectKey, int] = {}
        self._begun: set[PlaneName] = set()

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        if key.kind == PROJECT:
            return await self._sweep(key.plane, work)
        seen = await self._observe(key, work.caches)
        if seen is None:
            self._idle.pop(key, None)
            return Result()
        result = await run_steps(LookSteps(seen), key, work)
        self._note(seen, work.session.so_far)
        return result

    # --- an Instance that is held back -----------------------------------------------------------

    async def _observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        """None where the Instance is not held back, or not known to be the project's."""
        found = caches.view(HUB, INSTANCE).get(key.namespace, key.name)
        if not isinstance(found, Snapshot):
            return None
        if not is_held_back(member_object(found.read(), "status")):
            return None
        place = read_place(found.metadata)
        if place is None or not sweeping.can_judge(caches, place.plane):
            return None
        uid = await self._namespaces.find_or_read(place)
        if isinstance(uid, Absent) or names.derive_hub_namespace(uid) != key.namespace:
            return None
        deployment = found.metadata.labels.get(labels.WORKLOAD_DEPLOYMENT_NAME, "")
        if names.parse_ordinal(deployment, key.name) is None:
            return None
        placed = find_placed(caches, place.plane, place.namespace, deployment)
        return None if isinstance(placed, Absent) else await self._look(key, place, placed, caches)

    async def _look(self, key: ObjectKey, place: Place, placed: Placed, caches: Caches) -> Seen:
        name = names.derive_claim_name(key.name)
        found = await self._reads.get(ObjectKey(place.plane, CLAIM, place.namespace, name))
        claim: Claim | Absent = found if isinstance(found, Absent) else read_claim(found)
        cell = "" if isinstance(claim, Absent) else claim.cell
        servers = caches.view(HUB, CLUSTER).entries_by_index(hub_indexes.CITY, placed.city_code)
        return Seen(
            key=key,
            project=place.plane,
            claim=claim,
            placed=placed,
            holder=await self._read_holder(cell),
            is_served=any(entry.key.name != cell for entry in servers),
            operator=self._tools.operator,
            idle_looks=self._idle.get(key, 0),
        )

    async def _read_holder(self, cell: str) -> Holder | Absent:
        """Fresh: a claim is removed because of the city that its cell does not serve."""
        if not names.is_dns_label(cell):
            return Absent()
        key = ObjectKey(HUB, CLUSTER, "", cell)
        found = await self._reads.get(key)
        return found if isinstance(found, Absent) else read_holder(key, found.metadata)

    def _note(self, seen: Seen, applied: Applied) -> None:
        is_removed = any(
            isinstance(outcome.intent, Delete) and outcome.effect is Effect.WRITTEN
            for outcome in applied.outcomes
        )
        self._idle[seen.key] = 0 if is_removed else seen.idle_looks + 1
        if not is_removed or isinstance(seen.claim, Absent):
            return
        cell = UNKNOWN_CELL if isinstance(seen.holder, Absent) else seen.claim.cell
        self._tools.measures.count(hub_measures.MISPLACED_CLAIMS, cell=cell)
        logger.warning(
            "Removing ResourceClaim of another city",
            extra={"ResourceClaim": seen.claim.place, "onPlane": seen.project, "cell": cell},
        )

    # --- the sweep over a project ----------------------------------------------------------------

    async def _sweep(self, plane: PlaneName, work: Pass) -> Result:
        if plane not in self._begun:
            # After a start every project is engaged at once; their sweeps must not be.
            self._begun.add(plane)
            return Result(SWEEP_EVERY * self._tools.random.random())
        if not sweeping.can_judge(work.caches, plane):
            return Result()
        kube = self._tools.reach.kube(plane, WRITER)
        found = await sweeping.sweep(kube, work.caches, plane)
        events = tuple(self._reported.note(plane, found, work.caches))
        if events:
            self._log(plane, found)
            await work.session.apply(Plan(events))
        return Result()

    def _log(self, plane: PlaneName, found: ProjectFindings) -> None:
        for cell, finding in found.by_cell.items():
            fields = {"cell": cell, "count": finding.count, "ResourceClaims": finding.text}
            whole = {"onPlane": plane, "isWhole": found.is_whole}
            logger.warning("Finding ResourceClaims that nothing backs", extra={**fields, **whole})

    def report(self) -> None:
        """A gauge per Cluster, so that one that is well again shows zero."""
        caches, total = self._tools.reach.caches, self._reported.total()
        if HUB not in caches.planes(Role.HUB):
            return
        clusters = caches.view(HUB, CLUSTER).snapshots()
        cells = () if isinstance(clusters, Unreadable) else [one.key.name for one in clusters]
        for cell in {UNKNOWN_CELL, *cells, *total}:
            self._tools.measures.gauge(hub_measures.UNBACKED_CLAIMS, total[cell], cell=cell)

    # --- planes ----------------------------------------------------------------------------------

    def forget_plane(self, plane: PlaneName) -> None:
        self._begun.discard(plane)
        self._reported.forget(plane)
        if plane == HUB:
            self._idle.clear()


def wake_sweep(plane: PlaneName, caches: Caches) -> Iterator[ObjectKey]:
    """The sweep of a project that was engaged."""
    if plane in caches.planes(Role.PROJECT):
        yield sweep_key(plane)


def sweep_key(plane: PlaneName) -> ObjectKey:
    return ObjectKey(plane, PROJECT, "", plane)


def _wake_nothing(_: Change, __: Caches) -> tuple[ObjectKey, ...]:
    """Clusters are read; a sweep, or an Instance that is held back, comes by itself."""
    return ()


def build(tools: Tools, namespaces: ProjectNamespaces) -> Part:
    claims = Claims(tools, namespaces)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(Watch(Role.HUB, CLUSTER, _wake_nothing),),
        reconcile=claims.reconcile,
        share=share_by_project,
        on_engaged=wake_sweep,
        retry=RETRY,
        resync=SWEEP_EVERY,
        deadline=tools.settings.clients.reconcile_timeout,
        dropped_metric=hub_measures.DROPPED,
    )
    return Part(
        controller=controller,
        watched=HUB_CACHES,
        listeners=(ForgetPlanes(claims.forget_plane),),
        report=claims.report,
    )
