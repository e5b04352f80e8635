"""The policy controller, assembled: what wakes it, what it reads, its steps, what it counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels, names, reasons
from compute_management_operator import hub_indexes, hub_measures
from compute_management_operator.assembly import RESYNC, RETRY, Tools
from compute_management_operator.hub_caches import HUB_CACHES
from compute_management_operator.identities import Place, read_place
from compute_management_operator.kinds import CLUSTER, DEPLOYMENT, NAMESPACE, POLICY, PROJECT
from compute_management_operator.plane_names import HUB, SINGLE
from compute_management_operator.policy import mapping
from compute_management_operator.policy.observe import Seen, observe, read_clusters
from compute_management_operator.policy.plan import find_ambiguous, plan
from compute_management_operator.project_namespaces import ProjectNamespaces
from compute_operator_kit.cache import Caches, Change
from compute_operator_kit.controller import Controller, Watch
from compute_operator_kit.errors import PlaneGoneError, ReconcileError
from compute_operator_kit.intents import Emit, Plan
from compute_operator_kit.keys import ObjectKey, Role, Uid
from compute_operator_kit.kube import Writer
from compute_operator_kit.objects import Absent, Unreadable
from compute_operator_kit.outcomes import Applied, Effect
from compute_operator_kit.parts import Part
from compute_operator_kit.reconcile import Pass, Result, run_steps
from compute_operator_kit.span_attributes import annotate_pass

NAME: Final = "policy"
WRITER: Final = Writer(NAME, labels.POLICY_MANAGER)


@dataclass(slots=True)
class PolicySteps:
    """One pass; a policy has no status of ours."""

    place: Place | Absent | Unreadable
    told: dict[ObjectKey, tuple[str, ...]]
    seen: Seen | None = None

    def observe(self, key: ObjectKey, caches: Caches) -> Seen | None:
        self.seen = observe(key, caches, self.place, self.told)
        return self.seen

    def plan(self, seen: Seen, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return plan(seen)

    def report(self, seen: Seen, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        return Plan()


class Policies:
    """What lasts longer than a pass."""

    def __init__(self, tools: Tools, namespaces: ProjectNamespaces) -> None:
        self._tools = tools
        self._namespaces = namespaces
        self._told: dict[ObjectKey, tuple[str, ...]] = {}

    def map_deployment(self, change: Change, caches: Caches) -> Iterable[ObjectKey]:
        if change.before is not None or change.is_initial:
            return mapping.map_deployment(change, caches, self._namespaces.find_uid)

        def find_witnessed(place: Place) -> Uid | None:
            # One that is new may live in a namespace that is back under its name.
            view = caches.view(place.plane, DEPLOYMENT)
            return self._namespaces.find_witnessed(place.namespace, view)

        return mapping.map_deployment(change, caches, find_witnessed)

    async def reconcile(self, key: ObjectKey, work: Pass) -> Result:
        if key.plane != HUB:
            return await self._look_up(key)
        steps = PolicySteps(await self._find_place(key, work.caches), self._told)
        result = await run_steps(steps, key, work)
        if steps.seen is not None:
            self._note(steps.seen, work.session.so_far)
        return result

    async def _look_up(self, key: ObjectKey) -> Result:
        """A key of a project namespace: asks for its UID and wakes the key on the hub."""
        uid = await self._namespaces.read(Place(key.plane, key.namespace))
        if not isinstance(uid, Absent):
            hub_name = names.derive_hub_namespace(uid)
            self._tools.reach.wake(NAME, mapping.hub_key(hub_name, key.name))
        return Result()

    async def _find_place(self, key: ObjectKey, caches: Caches) -> Place | Absent | Unreadable:
        """The project namespace behind a hub namespace, proven by its UID."""
        uid = names.parse_hub_namespace(key.namespace)
        known = self._namespaces.find_place(uid or "")
        if known is not None:
            return known
        entry = caches.view(HUB, NAMESPACE).entry("", key.namespace)
        place = None if entry is None else read_place(entry.metadata)
        if place is None:
            return Absent()
        if place.plane not in caches.planes(Role.PROJECT):
            return judge_missing(place, caches)
        try:
            found = await self._namespaces.read(place)
        except PlaneGoneError:
            return Absent()
        except ReconcileError as error:
            # The project is away: nothing is known of what it needs.
            return Unreadable(error.reason)
        return place if found == uid else Absent()

    # --- remembering and counting ---------------------------------------------------------------

    def _note(self, seen: Seen, applied: Applied) -> None:
        annotate_pass(hub_namespace=seen.key.namespace, city_code=",".join(seen.needed))
        hub_measures.count_writes(applied, self._tools.measures)
        hub_measures.count_hub_errors(applied, NAME, self._tools.measures)
        if isinstance(seen.clusters, Unreadable):
            return
        ambiguous = find_ambiguous(seen.clusters)
        for policy in seen.policies:
            if policy.code not in ambiguous or not policy.is_live:
                self._told.pop(policy.key, None)
        told = [
            outcome.intent.key
            for outcome in applied.outcomes
            if isinstance(outcome.intent, Emit)
            and outcome.intent.reason == reasons.AMBIGUOUS_CITY
            and outcome.effect is Effect.NOTED
        ]
        codes = {policy.key: policy.code for policy in seen.policies}
        self._told |= {key: ambiguous[codes[key]] for key in told}

    def report(self) -> None:
        """Gauges, from caches."""
        caches, measures = self._tools.reach.caches, self._tools.measures
        if HUB not in caches.planes(Role.HUB):
            return
        ours = caches.view(HUB, POLICY).entries_by_index(hub_indexes.OURS, "yes")
        measures.gauge(hub_measures.POLICIES, len(ours))
        clusters = read_clusters(caches)
        if not isinstance(clusters, Unreadable):
            measures.gauge(hub_measures.AMBIGUOUS_CITIES, len(find_ambiguous(clusters)))
        self._forget_gone(frozenset(entry.key for entry in ours))

    def _forget_gone(self, present: frozenset[ObjectKey]) -> None:
        self._told = {key: told for key, told in self._told.items() if key in present}


def judge_missing(place: Place, caches: Caches) -> Absent | Unreadable:
    """What a project that is not engaged counts as: one that is gone needs nothing, one that is
    about to be engaged may need everything. After a restart it is always the latter for a while.
    """
    roots = caches.planes(Role.ROOT)
    if not roots:
        return Unreadable("NotEngaged") if place.plane == SINGLE else Absent()
    found = [caches.view(root, PROJECT).get("", place.plane) for root in roots]
    is_gone = all(isinstance(project, Absent) for project in found)
    return Absent() if is_gone else Unreadable("NotEngaged")


def build(tools: Tools, namespaces: ProjectNamespaces) -> Part:
    policies = Policies(tools, namespaces)
    controller = Controller(
        name=NAME,
        writer=WRITER,
        watches=(
            Watch(Role.HUB, POLICY, mapping.map_policy),
            Watch(Role.HUB, DEPLOYMENT, mapping.map_copy),
            Watch(Role.HUB, NAMESPACE, _wake_nobody),
            Watch(Role.PROJECT, DEPLOYMENT, policies.map_deployment),
            # Not needed: unreadable Clusters change nothing.
            Watch(Role.HUB, CLUSTER, mapping.map_cluster, is_needed=False),
        ),
        reconcile=policies.reconcile,
        share=mapping.share_by_project,
        retry=RETRY,
        resync=RESYNC,
        deadline=tools.settings.clients.reconcile_timeout,
        dropped_metric=hub_measures.DROPPED,
    )
    return Part(controller=controller, watched=HUB_CACHES, report=policies.report)


def _wake_nobody(_: Change, __: Caches) -> tuple[ObjectKey, ...]:
    """Hub namespaces are read, and federation wakes the policies of one it has made."""
    return ()
