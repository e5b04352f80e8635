"""The deployment controller: its watches, caches and reconcile, for `wiring`.

Networking kinds are watched only where the setting allows them: a cell without them would wait for
caches that never fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from compute_api_types import labels
from compute_cell_operator.autoscaling import watches as scaling_watches
from compute_cell_operator.autoscaling.memory import AutoscalingMemory
from compute_cell_operator.autoscaling.metrics import ScalingMetrics
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
    AUTOSCALER,
    DEPLOYMENT,
    INSTANCE,
    LOCATION,
    NAMESPACE,
    NETWORK_BINDING,
    NETWORK_CONTEXT,
    SUBNET,
    SUBNET_CLAIM,
)
from compute_cell_operator.referenced_data import watches as data_watches
from compute_cell_operator.referenced_data.judgement import DataMode
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
    autoscaling: AutoscalingMemory | None = None  # None: off in this cell
    metrics: ScalingMetrics | None = None
    _decision: Decision | None = None

    def observe(self, key: ObjectKey, caches: Caches) -> ObservedDeployment | None:
        if not self.settings.is_in_scope(key.namespace):
            return None
        context = DeploymentContext(
            self.networking.state,
            self.settings.cell.city_code,
            self.revisions,
            data_watches.derive_mode(self.settings),
            self.autoscaling,
        )
        return observe.observe(key, caches, context)

    def plan(self, observed: ObservedDeployment, now: datetime) -> Plan:  # noqa: ARG002 - nothing here depends on time
        self._decision = decide(observed)
        return self._decision.plan

    def report(self, observed: ObservedDeployment, applied: Applied, now: datetime) -> Plan:
        if self.metrics is not None:
            _note(self.metrics, observed)
        return status.report(observed, self._decision or decide(observed), applied, now)


def _note(metrics: ScalingMetrics, observed: ObservedDeployment) -> None:
    if observed.scaling.is_active and not observed.is_deleting:
        metrics.note(observed.key, status.state_autoscaling(observed) or (), observed.desired)
    else:
        metrics.forget(observed.key)


def build(deps: Dependencies, autoscaling: AutoscalingMemory | None = None) -> ControllerSetup:
    """`autoscaling` is None where it is off in this cell."""
    revisions = Revisions()
    metrics = ScalingMetrics(deps.metrics) if autoscaling is not None else None

    async def reconcile(key: ObjectKey, work: ReconcileContext) -> Result:
        steps = DeploymentReconciler(
            deps.settings, deps.networking, revisions, autoscaling, metrics
        )
        return await run_steps(steps, key, work)

    def enqueue_all() -> None:
        for key in keys_of_kind(deps.context.caches, DEPLOYMENT):
            deps.context.enqueue(NAME, key)

    def enqueue_one(key: ObjectKey) -> None:
        deps.context.enqueue(NAME, key)

    if autoscaling is not None:
        autoscaling.add_listener(enqueue_one)
    is_consulted = deps.networking.is_consulted
    mode = data_watches.derive_mode(deps.settings)
    deps.networking.add_listener(enqueue_all)
    controller = Controller(
        name=NAME,
        owner=WRITER,
        watches=(
            *OWN_WATCHES,
            *(NETWORKING_WATCHES if is_consulted else ()),
            *(DATA_WATCHES if mode is not DataMode.OFF else ()),
            *(SCALING_WATCHES if autoscaling is not None else ()),
        ),
        reconcile=reconcile,
        fairness_key=lambda key, _: key.namespace,
        resync=RESYNC,
        retry=RETRY,
        deadline=deps.settings.clients.reconcile_timeout,
        dropped_metric="compute_cell_dropped_events_total",
    )
    return ControllerSetup(
        controller=controller,
        cached_kinds=(
            *_own_kinds(mode),
            *(NETWORKING_KINDS if is_consulted else ()),
            *data_watches.cached_kinds(mode),
        ),
    )


def _own_kinds(mode: DataMode) -> tuple[CachedKind, ...]:
    if mode is DataMode.OFF:
        return OWN_KINDS
    indexes = {data_watches.REFERENCE: data_watches.index_by_reference}
    return (*OWN_KINDS, CachedKind(Role.HOME, DEPLOYMENT, indexes=indexes))


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
# Not needed: deleting and scaling down must go on while ConfigMaps and Secrets cannot be read.
DATA_WATCHES: Final = tuple(
    Watch(Role.HOME, kind, data_watches.map_to_deployments, is_needed=False)
    for kind in data_watches.KINDS
)
# Not needed: an autoscaler is no condition of anything but its own conditions.
SCALING_WATCHES: Final = (
    Watch(Role.HOME, AUTOSCALER, scaling_watches.map_autoscaler, is_needed=False),
)
OWN_KINDS: Final = (
    CachedKind(Role.HOME, DEPLOYMENT, indexes=watches.DEPLOYMENT_INDEXES),
    CachedKind(Role.HOME, INSTANCE, indexes=watches.INSTANCE_INDEXES),
)
