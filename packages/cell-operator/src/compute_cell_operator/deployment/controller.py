"""The deployment controller: its watches, caches and reconcile, for `wiring`.

Networking kinds are watched only where the setting allows them: a cell without them would wait for
caches that never fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels
from compute_cell_operator.delays import RESYNC
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.deployment import observe, status, watches
from compute_cell_operator.deployment.observe import DeploymentContext, ObservedDeployment
from compute_cell_operator.deployment.plan import Decision, decide
from compute_cell_operator.deployment.revisions import Revisions
from compute_cell_operator.indexes import keys_of_kind
from compute_cell_operator.network.switch import NetworkingKinds
from compute_cell_operator.network.watches import CACHED_KINDS as NETWORKING_KINDS
from compute_cell_operator.planes import (
    DEPLOYMENT,
    INSTANCE,
    LOCATION,
    NAMESPACE,
    NETWORK_BINDING,
    NETWORK_CONTEXT,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_cell_operator.retries import RETRY
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.controller.reconcile import ReconcileContext, Result, run_steps
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.controller.spec import Controller, Watch
from compute_operator_kit.core.keys import ObjectKey, Role
from compute_operator_kit.intents.intents import Plan
from compute_operator_kit.intents.outcomes import Applied
from compute_operator_kit.planes.engaged_plane import CachedKind

NAME: Final = "deployment"
WRITER: Final = FieldOwner(NAME, labels.DEPLOYMENT_MANAGER)


@dataclass(slots=True)
class DeploymentReconciler:
    """The steps of one reconcile; the status reports the decision of the plan, made once."""

    settings: CellSettings
    networking: NetworkingKinds
    revisions: Revisions
    _decision: Decision | None = None

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedDeployment | None:
        if not self.settings.is_in_scope(key.namespace):
            return None
        context = DeploymentContext(
            self.networking.state, self.settings.cell.city_code, self.revisions
        )
        return observe.observe(key, caches, context)

    def plan(self, observed: ObservedDeployment, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        self._decision = decide(observed)
        return self._decision.plan

    def report(self, observed: ObservedDeployment, applied: Applied, now: datetime) -> Plan:
        return status.report(observed, self._decision or decide(observed), applied, now)


def build(deps: Dependencies) -> ControllerSetup:
    revisions = Revisions()

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        steps = DeploymentReconciler(deps.settings, deps.networking, revisions)
        return await run_steps(steps, key, work)

    def enqueue_all() -> None:
        for key in keys_of_kind(deps.context.caches, DEPLOYMENT):
            deps.context.enqueue(NAME, key)

    is_consulted = deps.networking.is_consulted
    deps.networking.add_listener(enqueue_all)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(*OWN_WATCHES, *(NETWORKING_WATCHES if is_consulted else ())),
        reconcile=reconcile,
        fairness_key=lambda key, _: key.namespace,
        resync=RESYNC,
        retry=RETRY,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric="compute_cell_dropped_events_total",
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=(*OWN_KINDS, *(NETWORKING_KINDS if is_consulted else ())),
    )


OWN_WATCHES: Final = (
    Watch(Role.HOME, DEPLOYMENT),
    Watch(Role.HOME, INSTANCE, watches.map_instance),
    Watch(Role.HOME, NAMESPACE, watches.map_namespace),
)
# Not needed: deleting and scaling down must go on while networking kinds cannot be read.
NETWORKING_WATCHES: Final = (
    Watch(Role.HOME, LOCATION, watches.map_location, is_needed=False),
    Watch(Role.HOME, NETWORK_BINDING, watches.map_binding, is_needed=False),
    Watch(Role.HOME, NETWORK_CONTEXT, watches.map_context, is_needed=False),
    Watch(Role.HOME, SUBNET_CLAIM, watches.map_subnet, is_needed=False),
    Watch(Role.HOME, SUBNET, watches.map_subnet, is_needed=False),
)
OWN_KINDS: Final = (
    CachedKind(Role.HOME, DEPLOYMENT, indexes=watches.DEPLOYMENT_INDEXES),
    CachedKind(Role.HOME, INSTANCE, indexes=watches.INSTANCE_INDEXES),
)
