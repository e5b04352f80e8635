"""What is counted of Instances behind the ReferencedData gate (referenced-data.md 8)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_api_types import labels
from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.referenced_data import metrics
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import ObjectKey, Role, Uid
from compute_operator_kit.intents.intents import RemoveGate
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome
from compute_operator_kit.testing.fakes import FakeCaches, FakeMetrics, a_snapshot, a_store

KEY = ObjectKey(CELL, INSTANCE, "ns-1", "web-0")
WAITED = ("compute_referenced_data_gate_wait_seconds", ())


def caches_of(gate: str, reason: str | None) -> FakeCaches:
    spec: JsonObject = {"controller": {"schedulingGates": [{"name": gate}]}}
    stated: JsonObject = {"type": "ReferencedDataReady", "status": "False", "reason": reason}
    status: JsonObject = {"conditions": [] if reason is None else [stated]}
    instance = a_snapshot(KEY, spec=spec, status=status)
    indexes = {metrics.WAITING: metrics.index_by_wait}
    return FakeCaches([a_store(CELL, INSTANCE, [instance], indexes=indexes)], {CELL: Role.HOME})


@pytest.mark.parametrize(
    ("gate", "reason", "counted"),
    [
        (labels.REFERENCED_DATA_GATE, "AwaitingPropagation", "AwaitingPropagation"),
        (labels.REFERENCED_DATA_GATE, "SourceNameTaken", "SourceNameTaken"),
        (labels.REFERENCED_DATA_GATE, "AnotherWord", "Unknown"),
        (labels.REFERENCED_DATA_GATE, None, "Unknown"),
        (labels.QUOTA_GATE, "AwaitingPropagation", None),
    ],
)
def test_instances_behind_the_gate_are_counted_by_reasons_of_a_closed_set(
    gate: str, reason: str | None, counted: str | None
) -> None:
    measures = FakeMetrics()
    metrics.update_gauges(caches_of(gate, reason), measures)
    gauges = {dict(labelled)["reason"]: value for (_, labelled), value in measures.gauges.items()}
    assert {word for word, value in gauges.items() if value} == ({counted} if counted else set())
    assert gauges.keys() == metrics.REASONS


@pytest.mark.parametrize(
    ("gate", "effect", "waits"),
    [
        (labels.REFERENCED_DATA_GATE, Effect.WRITTEN, [30.0]),
        (labels.REFERENCED_DATA_GATE, Effect.FAILED, []),
        (labels.QUOTA_GATE, Effect.WRITTEN, []),
    ],
)
def test_a_wait_ends_when_the_gate_is_removed(
    gate: str, effect: Effect, waits: list[float]
) -> None:
    measures = FakeMetrics()
    outcome = Outcome(RemoveGate(KEY, Uid("i-1"), gate, "ReferencedDataReady"), effect)
    metrics.time_gate(Applied((outcome,)), timedelta(seconds=30), measures)
    assert measures.values.get(WAITED, []) == waits
