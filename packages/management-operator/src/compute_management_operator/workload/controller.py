"""The Workload controller, assembled: its watches, its caches and its reconciler.

It also remembers rejected deployments, or each attempt would record the same event again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels
from compute_management_operator.dependencies import IN_USE, RATE_LIMIT, RESYNC, RETRY, Dependencies
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER, WORKLOAD_DECODER
from compute_management_operator.networking import LOCATION_INDEXES
from compute_management_operator.planes import DEPLOYMENT, LOCATION, NETWORK, WORKLOAD
from compute_management_operator.workload import observe, plan, watches
from compute_management_operator.workload.observe import FindHubNamespace, ObservedWorkload
from compute_management_operator.workload.staleness import is_out_of_date
from compute_management_operator.workload.status.report import rejection_event, rejections, report
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode, OptionalKindsReader
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.reconcile import (
    ReconcileContext,
    Result,
    run_steps,
    send_deferred,
)
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.controller.workqueue import Priority
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Role
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.planes.engaged_plane import CachedKind
from compute_operator_kit.planes.optional_kinds import OptionalKinds

NAME: Final = "workload"
WRITER: Final = FieldOwner(NAME, labels.WORKLOAD_MANAGER)


class Rejections:
    """Rejections that have their event: one event per state, not one per attempt.

    No stored object shows that a deployment was rejected, so it is remembered here; after a restart
    the event is recorded once more.
    """

    def __init__(self) -> None:
        self._recorded: dict[ObjectKey, dict[str, tuple[int, str]]] = {}

    def record(self, seen: ObservedWorkload, applied: Applied) -> Plan:
        """Events for deployments that are rejected now and were not in this generation before."""
        generation = seen.metadata.generation
        refused = {name: (generation, why) for name, why in rejections(applied).items()}
        before = self._recorded.pop(seen.key, {})
        if refused:
            self._recorded[seen.key] = refused
        begun = (why for name, (_, why) in refused.items() if before.get(name) != refused[name])
        return Plan(tuple(rejection_event(seen, why) for why in begun))

    def forget(self, key: ObjectKey) -> None:
        self._recorded.pop(key, None)


@dataclass(frozen=True, slots=True)
class WorkloadReconciler:
    """`observe`, `plan` and `report` of this folder, as the kit calls them."""

    networking: OptionalKindsReader
    rejections: Rejections
    find_hub_namespace: FindHubNamespace

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedWorkload | None:
        observed = observe.observe(key, caches, self.networking, self.find_hub_namespace)
        if observed is None:
            self.rejections.forget(key)
        return observed

    def plan(self, observed: ObservedWorkload, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return plan.leave_out_events(observed, plan.plan(observed))

    def report(self, observed: ObservedWorkload, applied: Applied, now: datetime) -> Plan:
        reported = report(observed, applied, now) + self.rejections.record(observed, applied)
        return plan.leave_out_events(observed, reported)


def build(
    deps: Dependencies,
    networking: OptionalKinds,
    find_hub_namespace: FindHubNamespace = observe.find_none,
) -> ControllerSetup:
    steps = WorkloadReconciler(networking.reader, Rejections(), find_hub_namespace)

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        return await (send_deferred(work) if work.deferred else run_steps(steps, key, work))

    def enqueue_all(plane: PlaneName) -> None:
        for key in watches.enqueue_workloads(plane, deps.context.caches):
            # No Workload changed: edits of users are reconciled before.
            deps.context.enqueue(NAME, key, Priority.LOW)

    networking.add_listener(enqueue_all)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(*OWN_WATCHES, *(NETWORKING_WATCHES if networking.are_watched else ())),
        reconcile=reconcile,
        keys_on_engage=watches.enqueue_workloads,
        is_out_of_date=is_out_of_date,
        rate_limit=RATE_LIMIT,
        retry=RETRY,
        resync=RESYNC,
        deadline=deps.settings.clients.reconcile_timeout,
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=(*_own_caches(), *_networking_caches(networking.mode)),
        listeners=(networking,) if networking.are_watched else (),
    )


OWN_WATCHES: Final = (
    Watch(Role.PROJECT, WORKLOAD),
    Watch(Role.PROJECT, DEPLOYMENT, watches.map_deployment),
)
# Not needed: an unreadable list must not stop updates, status and finalizers of Workloads.
NETWORKING_WATCHES: Final = (
    Watch(Role.PROJECT, LOCATION, watches.map_location, is_needed=False),
    Watch(Role.PROJECT, NETWORK, watches.map_network, is_needed=False),
)


def _own_caches() -> Iterable[CachedKind]:
    yield CachedKind(
        Role.PROJECT, WORKLOAD, indexes=watches.WORKLOAD_INDEXES, decoder=WORKLOAD_DECODER
    )
    yield CachedKind(
        Role.PROJECT, DEPLOYMENT, indexes=watches.DEPLOYMENT_INDEXES, decoder=DEPLOYMENT_DECODER
    )


def _networking_caches(setting: OptionalKindsMode) -> Iterable[CachedKind]:
    if setting is OptionalKindsMode.OFF:
        return
    is_optional = setting is OptionalKindsMode.AUTO
    yield CachedKind(
        Role.PROJECT,
        LOCATION,
        indexes=LOCATION_INDEXES,
        is_optional=is_optional,
        keeps_bodies=False,
        on_demand=IN_USE,
    )
    yield CachedKind(
        Role.PROJECT, NETWORK, is_optional=is_optional, keeps_bodies=False, on_demand=IN_USE
    )
