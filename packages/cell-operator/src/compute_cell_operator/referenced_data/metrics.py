"""Metrics of Instances behind the ReferencedData gate (referenced-data.md 8): number and wait.

No label names an Instance: labels are reasons of a closed set, so series do not grow with tenants.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from compute_api_types import conditions, labels, reasons
from compute_cell_operator.conditions import read_conditions
from compute_cell_operator.instance_facts import read_gates
from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.referenced_data.judgement import SOURCE_REASONS
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.json import JsonObject, member_object
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.core.objects import Metadata
from compute_operator_kit.intents.intents import RemoveGate
from compute_operator_kit.intents.outcomes import Applied, Effect

WAITING_INSTANCES: Final = "compute_referenced_data_waiting_instances"
GATE_WAIT_SECONDS: Final = "compute_referenced_data_gate_wait_seconds"

WAITING: Final = "waiting-for-data"
"""Index of Instances behind a ReferencedData gate: the reason of their `ReferencedDataReady`."""

REASONS: Final = frozenset(
    {
        *SOURCE_REASONS,
        reasons.AWAITING_PROPAGATION,
        reasons.RESOLVING,
        reasons.REFERENCED_DATA_NOT_READY,
        reasons.READY,
        reasons.UNKNOWN,
    }
)
"""Values of the label; any other reason is counted as Unknown."""


def index_by_wait(_: Metadata, body: JsonObject) -> Iterable[str]:
    if labels.REFERENCED_DATA_GATE not in read_gates(member_object(body, "spec")):
        return ()
    stored = read_conditions(member_object(body, "status"))
    data = conditions.find(stored, conditions.REFERENCED_DATA_READY)
    return (data.reason if data is not None and data.reason in REASONS else reasons.UNKNOWN,)


def time_gate(applied: Applied, age: timedelta, metrics: MetricsPort) -> None:
    """Times an Instance, from its creation, where this reconcile removed its gate."""
    for outcome in applied.outcomes:
        match outcome.intent:
            case RemoveGate(gate=labels.REFERENCED_DATA_GATE) if outcome.effect is Effect.WRITTEN:
                metrics.observe(GATE_WAIT_SECONDS, age.total_seconds())
            case _:
                pass


def update_gauges(caches: Caches, metrics: MetricsPort) -> None:
    """How many Instances wait, by reason; a reason without any is set to zero."""
    instances = caches.lister(CELL, INSTANCE)
    for reason in REASONS:
        number = len(instances.entries_by_index(WAITING, reason))
        metrics.gauge(WAITING_INSTANCES, number, reason=reason)
