"""Metrics of autoscaled deployments (autoscaling.md 7): how many in which state, and their steps.

No label names a deployment: states and directions are closed sets, so series do not grow with
tenants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from compute_api_types import conditions
from compute_api_types.conditions import Statement
from compute_operator_kit.core.keys import ObjectKey
from compute_operator_kit.core.metrics import MetricsPort

AUTOSCALED: Final = "compute_autoscaled_deployments"
STEPS: Final = "compute_autoscaling_steps_total"
STATES: Final = ("ready", "pending", "failing", "limited")


class ScalingMetrics:
    """Of all autoscaled deployments of the cell."""

    def __init__(self, metrics: MetricsPort) -> None:
        self._metrics = metrics
        self._states: dict[ObjectKey, str] = {}
        self._numbers: dict[ObjectKey, int] = {}

    def note(self, key: ObjectKey, statements: Sequence[Statement], desired: int) -> None:
        """A pass over an autoscaled deployment; without its conditions the last state stands."""
        before = self._numbers.get(key, desired)
        if before != desired:
            self._metrics.count(STEPS, direction="up" if desired > before else "down")
        self._numbers[key] = desired
        state = derive_state(statements)
        if state is not None and self._states.get(key) != state:
            self._states[key] = state
            self._show()

    def forget(self, key: ObjectKey) -> None:
        self._numbers.pop(key, None)
        if self._states.pop(key, None) is not None:
            self._show()

    def _show(self) -> None:
        numbers = Counter(self._states.values())
        for state in STATES:
            self._metrics.gauge(AUTOSCALED, numbers[state], state=state)


def derive_state(statements: Sequence[Statement]) -> str | None:
    ready = conditions.find(statements, conditions.AUTOSCALING_READY)
    if ready is None:
        return None
    if ready.status != "True":
        return "failing" if ready.status == "False" else "pending"
    is_limited = conditions.is_true(statements, conditions.AUTOSCALING_LIMITED)
    return "limited" if is_limited else "ready"
