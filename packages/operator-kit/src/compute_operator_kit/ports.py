"""What an operator is given from outside, and what the kit makes of it.

A process and a simulation differ only in these. An operator that needs more derives from `Ports`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compute_operator_kit.apply.desk import AlwaysLeading, Leadership, Means, NoRecorder, Recorder
from compute_operator_kit.clock import Clock, Random
from compute_operator_kit.lane import Limits
from compute_operator_kit.manager import Runtime, Workers
from compute_operator_kit.measures import Measures, NoMeasures
from compute_operator_kit.planes import (
    Connect,
    FindMeter,
    Planes,
    Setting,
    measure_nothing,
)
from compute_operator_kit.reconcile import NoSpans, Spans
from compute_operator_kit.settings import ClientsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """See the module's text."""

    connect: Connect
    clock: Clock
    random: Random
    namespace: str = "compute-system"  # our own, at home
    leadership: Leadership = field(default_factory=AlwaysLeading)
    recorder: Recorder = field(default_factory=NoRecorder)
    measures: Measures = field(default_factory=NoMeasures)
    spans: Spans = field(default_factory=NoSpans)

    def derive_setting(
        self, clients: ClientsSettings, find_meter: FindMeter = measure_nothing
    ) -> Setting:
        """What planes stand on."""
        limits = Limits(clients.qps_per_plane, clients.burst_per_plane)
        return Setting(self.clock, self.random, self.measures, limits, find_meter)

    def derive_runtime(self, planes: Planes, clients: ClientsSettings, workers: Workers) -> Runtime:
        """What controllers stand on."""
        means = Means(
            planes=planes,
            clock=self.clock,
            leadership=self.leadership,
            recorder=self.recorder,
            status_settle=clients.status_settle,
        )
        return Runtime(means, self.random, self.measures, self.spans, workers)
