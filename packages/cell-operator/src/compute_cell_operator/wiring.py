"""The cell operator, built from settings and ports: every controller folder and the quota client.

A controller folder is added by one line in `leader_controllers`. No connection is opened and no
file is read here, so that a simulation runs what ships.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from compute_api_types import reasons
from compute_cell_operator import heartbeat
from compute_cell_operator.autoscaling import controller as autoscaling
from compute_cell_operator.autoscaling.memory import AutoscalingMemory
from compute_cell_operator.dependencies import Dependencies
from compute_cell_operator.deployment import controller as deployment
from compute_cell_operator.first_passes import FirstPasses
from compute_cell_operator.instance.controller import NAME as INSTANCES
from compute_cell_operator.instance.controller import Instances
from compute_cell_operator.network.switch import NetworkingKinds
from compute_cell_operator.planes import CELL, HUB
from compute_cell_operator.quota import controller as quota_controller
from compute_cell_operator.settings import CellSettings
from compute_cell_operator.write_back import controller as write_back
from compute_operator_kit.apply.context import Leadership
from compute_operator_kit.cache.optional_kinds import OptionalKindsMode
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.controller.manager import Workers
from compute_operator_kit.controller.ports import OperatorPorts
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.core.errors import InvariantError
from compute_operator_kit.core.keys import Role, Uid
from compute_operator_kit.intents.intents import RecordEvent
from compute_operator_kit.planes.endpoints import PlaneEndpoints
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.process.operator import Operator, OperatorSetup, own_deployment
from compute_quota_client import QuotaClient

COMPONENT: Final = "compute-cell-operator"


def leader_controllers(
    deps: Dependencies, quota: QuotaClient | None, leadership: Leadership
) -> Iterator[ControllerSetup]:
    """Every controller folder of this operator; all of them write."""
    if deps.settings.is_autoscaling:
        memory = AutoscalingMemory()
        yield deployment.build(deps, memory)
        yield autoscaling.build(deps, memory)
    else:
        yield deployment.build(deps)
    passes = FirstPasses((INSTANCES, write_back.NAME))
    instances = Instances(deps, passes)
    if deps.settings.is_quota_enforced:
        yield _build_quota(deps, quota, instances)
    yield instances.build()
    # Without a hub there is no copy of anything.
    if deps.settings.is_federated:
        yield write_back.build(deps, passes)
        yield heartbeat.build(deps, passes, leadership)


def _build_quota(
    deps: Dependencies, quota: QuotaClient | None, instances: Instances
) -> ControllerSetup:
    """The controller of claims on project planes; the instance controller reads its results."""
    if quota is None:
        raise InvariantError("wiring the quota gate: quota is enforced, and there is no client")
    setup, results = quota_controller.build(deps, quota, instances.enqueue)
    instances.bind(results)
    return setup


def known_planes(settings: CellSettings, endpoints: PlaneEndpoints) -> Iterator[Plane]:
    yield endpoints.describe(CELL, Role.HOME)
    if settings.is_federated:
        yield endpoints.describe(HUB, Role.HUB)


class CellOperator(Operator):
    """The operator of one cell; `quota` is needed where quota is enforced."""

    def __init__(
        self, settings: CellSettings, ports: OperatorPorts, quota: QuotaClient | None = None
    ) -> None:
        context = OperatorContext()
        self._settings = settings
        self._event_recorder = ports.event_recorder
        self._own_deployment = own_deployment(CELL, ports.namespace, COMPONENT)
        networking = NetworkingKinds(OptionalKindsMode(settings.networking), context, ports.clock)
        deps = Dependencies(
            settings=settings,
            clock=ports.clock,
            random=ports.random,
            operator=self._own_deployment,
            networking=networking,
            metrics=ports.metrics,
            event_recorder=ports.event_recorder,
            context=context,
        )
        setup = OperatorSetup(
            context=context,
            planes=tuple(known_planes(settings, ports.endpoints)),
            ready_plane=CELL,
            leader_controllers=tuple(leader_controllers(deps, quota, ports.leadership)),
            # One cell is one plane: namespaces take turns, and each may use every free worker.
            workers=Workers(settings.workers.total, settings.workers.total),
            listeners=(networking.kinds,),
        )
        super().__init__(setup, ports, settings.clients)

    @override
    async def lead(self) -> None:
        self._record_disabled_quota()
        await super().lead()

    def _record_disabled_quota(self) -> None:
        """Disabled quota is never a fallback, so it is reported by an event (operations.md 7)."""
        if self._settings.is_quota_enforced:
            return
        message = "Quota is disabled by configuration: Instances start without a claim"
        reason, action = reasons.QUOTA_ENFORCEMENT_DISABLED, "Starting"
        self._event_recorder.record(
            RecordEvent(self._own_deployment, Uid(""), reason, message, action, type="Warning")
        )
