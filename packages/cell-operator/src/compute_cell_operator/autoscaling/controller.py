"""The autoscaling controller: its watches, caches and reconcile, for `wiring`.

It exists only where the configuration switches autoscaling on; without it a cell needs no right to
autoscalers and sends no request about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels
from compute_cell_operator.autoscaling import observe as reads
from compute_cell_operator.autoscaling import plan as decisions
from compute_cell_operator.autoscaling import watches
from compute_cell_operator.autoscaling.demand import find_fault, read_demand
from compute_cell_operator.autoscaling.memory import AutoscalerPass, AutoscalingMemory
from compute_cell_operator.autoscaling.observe import ObservedAutoscaling
from compute_cell_operator.autoscaling.status import derive_failure
from compute_cell_operator.delays import RESYNC
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.planes import AUTOSCALER, DEPLOYMENT, INSTANCE
from compute_cell_operator.retries import RETRY
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.json import member_object
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.core.objects import Absent, Snapshot
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import Applied

NAME: Final = "autoscaling"
WRITER: Final = FieldOwner(NAME, labels.AUTOSCALING_MANAGER)


@dataclass(frozen=True, slots=True)
class AutoscalingReconciler:
    """The steps of one reconcile; the status of a deployment is its own controller's."""

    settings: CellSettings
    memory: AutoscalingMemory
    live: Snapshot | Absent

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedAutoscaling | None:
        return reads.observe(key, caches, self.live, self.settings.cell.city_code)

    def plan(self, observed: ObservedAutoscaling, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        return decisions.plan(observed, self.settings.autoscaling.scale_down_stabilization)

    def report(self, observed: ObservedAutoscaling, applied: Applied, now: datetime) -> Plan:  # noqa: ARG002
        """Nothing is written: the deployment controller reads the memory."""
        key = observed.key
        if observed.metadata.is_deleting or not observed.demand.is_autoscaled:
            self.memory.forget(key)
            return Plan()
        failure = derive_failure(observed, applied)
        last = self.memory.find(key, observed.metadata.uid)
        if failure is None:
            failure = last.failure if last is not None else ""
        self.memory.note(key, AutoscalerPass(observed.metadata.uid, failure))
        return Plan()


def build(deps: Dependencies, memory: AutoscalingMemory) -> ControllerSetup:
    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        if not deps.settings.is_in_scope(key.namespace):
            return Result()
        if isinstance(
            work.caches.lister(key.plane, DEPLOYMENT).get(key.namespace, key.name), Absent
        ):
            memory.forget(key)
            return Result()
        live = await _read_name(key, work)
        steps = AutoscalingReconciler(deps.settings, memory, live)
        return await run_steps(steps, key, work)

    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=WATCHES,
        reconcile=reconcile,
        fairness_key=lambda key, _: key.namespace,
        resync=RESYNC,
        retry=RETRY,
        deadline=deps.settings.clients.reconcile_timeout,
    )
    return ControllerSetup(controller=controller, cached_kinds=(watches.CACHED,))


async def _read_name(key: ObjectKey, work: ReconcileContext) -> Snapshot | Absent:
    """The object of the name that an autoscaler is to have, where the cache has none: it may be
    somebody else's, without our label.
    """
    deployment = work.caches.lister(key.plane, DEPLOYMENT).get(key.namespace, key.name)
    autoscalers = work.caches.lister(key.plane, AUTOSCALER)
    if not isinstance(deployment, Snapshot) or not autoscalers.is_synced:
        return Absent()
    demand = read_demand(member_object(deployment.read(), "spec"))
    is_needed = demand.is_autoscaled and not find_fault(demand)
    if not is_needed or not isinstance(autoscalers.get(key.namespace, key.name), Absent):
        return Absent()
    return await work.session.read(ObjectKey(key.plane, AUTOSCALER, key.namespace, key.name))


WATCHES: Final = (
    Watch(Role.HOME, DEPLOYMENT),
    # Read for the number that an autoscaler starts from.
    Watch(Role.HOME, INSTANCE, watches.map_to_none),
    Watch(Role.HOME, AUTOSCALER, watches.map_autoscaler, is_needed=False),
)
