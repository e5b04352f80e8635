"""What is counted about the quota of Instances (operations.md 6), and how long a gate took.

Names no Instance: labels are reasons, and those are a closed set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from compute_cell_operator.instance.mapping import REASONS, WAITING
from compute_cell_operator.instance.observe import Seen
from compute_cell_operator.instance.status import CLAIMING
from compute_cell_operator.kinds import INSTANCE
from compute_cell_operator.plane_names import CELL
from compute_cell_operator.quota_gate.status import FAILURES
from compute_operator_kit.cache import Caches
from compute_operator_kit.intents import Emit, RemoveGate
from compute_operator_kit.keys import ObjectKey
from compute_operator_kit.measures import Measures
from compute_operator_kit.outcomes import Applied, Effect, Outcome

EVAL_FAILURES: Final = "compute_quota_eval_failures_total"
WAIT_SECONDS: Final = "compute_quota_wait_seconds"
UNGATE_SECONDS: Final = "compute_quota_grant_to_ungate_seconds"
WAITING_INSTANCES: Final = "compute_quota_waiting_instances"


@dataclass(slots=True)
class QuotaMeasures:
    """Of all Instances."""

    measures: Measures
    # When the worker told of a grant, by Instance; until its gate is gone, or it is.
    granted: dict[ObjectKey, timedelta] = field(default_factory=dict[ObjectKey, timedelta])

    def note_grant(self, key: ObjectKey, now: timedelta) -> None:
        self.granted.setdefault(key, now)

    def forget(self, key: ObjectKey) -> None:
        self.granted.pop(key, None)

    def count(self, seen: Seen, applied: Applied, now: datetime, monotonic: timedelta) -> None:
        """What one pass changed; an event that went out is a transition that was persisted."""
        for outcome in applied.outcomes:
            match outcome.intent:
                case Emit(reason=reason, action=action) if action == CLAIMING:
                    self._count_failure(outcome, reason)
                case RemoveGate() if outcome.effect is Effect.WRITTEN:
                    self._time_gate(seen, now, monotonic)
                case _:
                    pass
        if not seen.has_quota_gate:
            self.forget(seen.key)

    def _count_failure(self, outcome: Outcome, reason: str) -> None:
        failure = FAILURES.get(reason)
        if failure is not None and outcome.effect is Effect.NOTED:
            self.measures.count(EVAL_FAILURES, reason=failure)

    def _time_gate(self, seen: Seen, now: datetime, monotonic: timedelta) -> None:
        self.measures.observe(WAIT_SECONDS, seen.age(now).total_seconds())
        granted = self.granted.pop(seen.key, None)
        if granted is not None:
            self.measures.observe(UNGATE_SECONDS, (monotonic - granted).total_seconds())

    def report(self, caches: Caches) -> None:
        """How many wait, by reason; one that nobody waits for any more is set to none."""
        view = caches.view(CELL, INSTANCE)
        for reason in REASONS:
            number = len(view.entries_by_index(WAITING, reason))
            self.measures.gauge(WAITING_INSTANCES, number, reason=reason)
