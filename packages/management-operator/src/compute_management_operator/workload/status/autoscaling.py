"""AutoscalingReady and AutoscalingLimited of placements and of the Workload. Pure (autoscaling.md
4).

A user reads on the Workload which city cannot be scaled, or has reached its limit. Neither type
ever decides whether something is ready or available: what runs goes on running without autoscaler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from compute_api_types import conditions, reasons
from compute_api_types.conditions import ConditionStatus, Statement
from compute_management_operator.stored_status import StoredCondition
from compute_management_operator.workload.observe import WorkloadChild


class _Summary(NamedTuple):
    """How one type is summed up: statuses by which wins, and the words where none is bad."""

    orders: Mapping[str, int]
    good: ConditionStatus
    reason: str
    message: str


_SUMMARIES: Final = MappingProxyType(
    {
        conditions.AUTOSCALING_READY: _Summary(
            MappingProxyType({"False": 3, "Unknown": 2, "True": 1}),
            "True",
            reasons.AUTOSCALERS_READY,
            "All enabled autoscalers can evaluate and apply scaling decisions",
        ),
        # True is the bad one: a limit holds the number.
        conditions.AUTOSCALING_LIMITED: _Summary(
            MappingProxyType({"True": 3, "Unknown": 2, "False": 1}),
            "False",
            reasons.WITHIN_SCALING_LIMITS,
            "All enabled autoscalers are operating within their scaling limits",
        ),
    }
)


def state_placement(deployments: Iterable[WorkloadChild], generation: int) -> tuple[Statement, ...]:
    """Of one placement, over its deployments in the order of their names; a type that no
    deployment has is left out.
    """
    ordered = sorted(deployments, key=lambda one: one.name)
    return tuple(_state_each(_report(ordered), generation))


def state_workload(
    placements: Mapping[str, Iterable[Statement]], generation: int
) -> tuple[Statement, ...]:
    """Of the Workload, over its placements in the order of their names."""
    reported = (
        (f'Placement "{name}": ', StoredCondition(one.type, one.status, one.reason, one.message))
        for name, statements in sorted(placements.items())
        for one in statements
    )
    return tuple(_state_each(reported, generation))


def _report(deployments: Iterable[WorkloadChild]) -> Iterator[tuple[str, StoredCondition]]:
    for one in deployments:
        prefix = f'Location "{one.identity.city_code}", deployment "{one.name}": '
        for condition in one.status.autoscaling:
            yield prefix, condition


def _state_each(
    reported: Iterable[tuple[str, StoredCondition]], generation: int
) -> Iterator[Statement]:
    everything = list(reported)
    for kind, summary in _SUMMARIES.items():
        of_kind = [(prefix, one) for prefix, one in everything if one.type == kind]
        if of_kind:
            yield _state(kind, summary, of_kind, generation)


def _state(
    kind: str,
    summary: _Summary,
    reported: list[tuple[str, StoredCondition]],
    generation: int,
) -> Statement:
    # max() keeps the first of equals: the lowest name.
    prefix, worst = max(reported, key=lambda one: summary.orders.get(one[1].status, 2))
    if worst.status == summary.good:
        return Statement(kind, summary.good, summary.reason, summary.message, generation)
    status: ConditionStatus = "Unknown"
    if worst.status in {"True", "False"}:
        status = "True" if worst.status == "True" else "False"
    message = conditions.derive_message(f"{prefix}{worst.message}")
    return Statement(kind, status, worst.reason, message, generation)
