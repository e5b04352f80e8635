"""Wiring: the operator is built from ports; a simulation and a process differ only in these."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from compute_operator_kit.apply.context import (
    AlwaysLeading,
    ApplyDeps,
    EventRecorder,
    Leadership,
    NoEventRecorder,
)
from compute_operator_kit.client.flow_control import Limits
from compute_operator_kit.controller.manager import Manager, ManagerDeps, Workers
from compute_operator_kit.controller.reconcile import NoSpans, Spans
from compute_operator_kit.core.backoff import RetryPolicy
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import Connect, Planes, RegistryDeps
from example_operator.mirror import controller
from example_operator.notes import HUB


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the operator gets from its process."""

    connect: Connect
    clock: Clock
    random: Random
    leadership: Leadership = field(default_factory=AlwaysLeading)
    recorder: EventRecorder = field(default_factory=NoEventRecorder)
    measures: MetricsPort = field(default_factory=NoMetrics)
    spans: Spans = field(default_factory=NoSpans)
    limits: Limits = field(default_factory=Limits)
    workers: Workers = field(default_factory=lambda: Workers(total=8, per_fairness_key=2))
    resync: timedelta = timedelta(minutes=30)
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Operator:
    """Planes to engage, and a manager to run."""

    def __init__(self, ports: Ports) -> None:
        registry_deps = RegistryDeps(
            clock=ports.clock, random=ports.random, measures=ports.measures, limits=ports.limits
        )
        self.planes = Planes(ports.connect, controller.CACHED_KINDS, registry_deps)
        apply_deps = ApplyDeps(
            planes=self.planes,
            clock=ports.clock,
            leadership=ports.leadership,
            recorder=ports.recorder,
        )
        manager_deps = ManagerDeps(
            deps=apply_deps,
            random=ports.random,
            measures=ports.measures,
            spans=ports.spans,
            workers=ports.workers,
        )
        self.manager = Manager([controller.build(ports.resync, ports.retry)], manager_deps)

    def start(self) -> None:
        self.engage_hub()

    async def lead(self) -> None:
        await self.manager.run()

    def stop(self) -> None:
        self.manager.stop()

    def engage_hub(self) -> None:
        self.planes.engage(Plane(HUB, Role.HUB))

    def engage_project(self, name: str, uid: str = "") -> None:
        self.planes.engage(Plane(PlaneName(name), Role.PROJECT, uid=uid))

    async def close(self) -> None:
        await self.planes.close()
