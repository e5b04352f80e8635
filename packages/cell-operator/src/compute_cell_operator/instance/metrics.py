"""Metrics of Instances' quota (operations.md 6): failures, waits, and grant-to-start latency.

No label names an Instance: labels are reasons of a closed set, so series do not grow with tenants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels
from compute_cell_operator.instance.observe import ObservedInstance
from compute_cell_operator.instance.status import CLAIMING
from compute_cell_operator.instance.watches import REASONS, WAITING
from compute_cell_operator.planes import CELL, INSTANCE
from compute_cell_operator.quota.status import FAILURES
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.intents.intents import RecordEvent, RemoveGate
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome

EVAL_FAILURES: Final = "compute_quota_eval_failures_total"
WAIT_SECONDS: Final = "compute_quota_wait_seconds"
UNGATE_SECONDS: Final = "compute_quota_grant_to_ungate_seconds"
WAITING_INSTANCES: Final = "compute_quota_waiting_instances"


@dataclass(slots=True)
class QuotaMetrics:
    """Of all Instances."""

    metrics: MetricsPort
    # When a grant arrived, by Instance, until its gate is removed or the Instance is deleted.
    granted: dict[ObjectKey, timedelta] = field(default_factory=dict[ObjectKey, timedelta])

    def note_grant(self, key: ObjectKey, now: timedelta) -> None:
        self.granted.setdefault(key, now)

    def forget(self, key: ObjectKey) -> None:
        self.granted.pop(key, None)

    def count(
        self, observed: ObservedInstance, applied: Applied, now: datetime, monotonic: timedelta
    ) -> None:
        """Counts what one reconcile changed; a recorded event is a transition that was stored."""
        for outcome in applied.outcomes:
            match outcome.intent:
                case RecordEvent(reason=reason, action=action) if action == CLAIMING:
                    self._count_failure(outcome, reason)
                case RemoveGate(gate=labels.QUOTA_GATE) if outcome.effect is Effect.WRITTEN:
                    self._time_gate(observed, now, monotonic)
                case _:
                    pass
        if not observed.instance.has_quota_gate:
            self.forget(observed.instance.key)

    def _count_failure(self, outcome: Outcome, reason: str) -> None:
        failure = FAILURES.get(reason)
        if failure is not None and outcome.effect is Effect.NOTED:
            self.metrics.count(EVAL_FAILURES, reason=failure)

    def _time_gate(self, observed: ObservedInstance, now: datetime, monotonic: timedelta) -> None:
        self.metrics.observe(WAIT_SECONDS, observed.instance.age(now).total_seconds())
        granted = self.granted.pop(observed.instance.key, None)
        if granted is not None:
            self.metrics.observe(UNGATE_SECONDS, (monotonic - granted).total_seconds())

    def update_gauges(self, caches: Caches) -> None:
        """How many Instances wait, by reason; a reason without any is set to zero."""
        instances = caches.lister(CELL, INSTANCE)
        for reason in REASONS:
            number = len(instances.entries_by_index(WAITING, reason))
            self.metrics.gauge(WAITING_INSTANCES, number, reason=reason)
