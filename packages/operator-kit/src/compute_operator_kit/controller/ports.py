"""Ports of an operator: clock, client factory, event recorder, metrics and tracing.

A real process and a simulation differ only in these, so that the simulation tests the operator that
ships. An operator that needs more ports derives from `OperatorPorts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compute_operator_kit.apply.context import (
    AlwaysLeading,
    ApplyDeps,
    EventRecorder,
    Leadership,
    NoEventRecorder,
)
from compute_operator_kit.client.flow_control import Limits
from compute_operator_kit.config.settings import ClientsSettings
from compute_operator_kit.controller.manager import ManagerDeps, Workers
from compute_operator_kit.controller.reconcile import NoSpans, Spans
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.planes.endpoints import PlaneEndpoints
from compute_operator_kit.planes.registry import (
    Connect,
    FindMeter,
    Planes,
    RegistryDeps,
    measure_nothing,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPorts:
    """Everything an operator gets from its process."""

    connect: Connect
    clock: Clock
    random: Random
    endpoints: PlaneEndpoints = field(default_factory=PlaneEndpoints)
    namespace: str = "compute-system"  # the operator's own, on the home plane
    leadership: Leadership = field(default_factory=AlwaysLeading)
    event_recorder: EventRecorder = field(default_factory=NoEventRecorder)
    metrics: MetricsPort = field(default_factory=NoMetrics)
    spans: Spans = field(default_factory=NoSpans)

    def registry_deps(
        self, clients: ClientsSettings, find_meter: FindMeter = measure_nothing
    ) -> RegistryDeps:
        """Dependencies of the plane registry."""
        limits = Limits(clients.qps_per_plane, clients.burst_per_plane)
        return RegistryDeps(self.clock, self.random, self.metrics, limits, find_meter)

    def manager_deps(
        self, planes: Planes, clients: ClientsSettings, workers: Workers
    ) -> ManagerDeps:
        """Dependencies of the controller manager."""
        deps = ApplyDeps(
            planes=planes,
            clock=self.clock,
            leadership=self.leadership,
            recorder=self.event_recorder,
            status_defer=clients.status_settle,
        )
        return ManagerDeps(deps, self.random, self.metrics, self.spans, workers)
