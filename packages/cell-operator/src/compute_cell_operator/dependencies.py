"""Dependencies of the controller folders, built once by `wiring`.

A folder constructs no adapter of its own: a simulation replaces these and runs what ships.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compute_cell_operator.network.switch import NetworkingKinds
from compute_cell_operator.settings import CellSettings
from compute_operator_kit.apply.context import EventRecorder, NoEventRecorder
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.clock import Clock, Random
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort, NoMetrics


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Settings, ports and planes of a controller folder."""

    settings: CellSettings
    clock: Clock
    random: Random
    operator: ObjectKey  # our own Deployment: events about the operator itself are recorded on it
    networking: NetworkingKinds  # one for all folders, so that they agree
    metrics: MetricsPort = field(default_factory=NoMetrics)
    # For events outside of a reconcile.
    event_recorder: EventRecorder = field(default_factory=NoEventRecorder)
    context: OperatorContext = field(default_factory=OperatorContext)
