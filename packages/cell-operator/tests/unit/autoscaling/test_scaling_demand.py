"""The number of Instances that follows from scale settings, and the faults in them (autoscaling.md
1, 3).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_cell_operator.autoscaling.demand import (
    ScaleDemand,
    ScaleMetric,
    derive_desired,
    find_fault,
    read_demand,
)
from compute_cell_operator.autoscaling.observe import count_occupied
from compute_operator_kit.core.json import Json, JsonObject

CPU = ScaleMetric("cpu", utilization=60)
DEMAND = ScaleDemand(2, 10, (CPU,))


def a_spec(metric: Json, **members: Json) -> JsonObject:
    settings: JsonObject = {"minReplicas": 2, "maxReplicas": 10, "metrics": [metric]}
    return {"scaleSettings": settings, **members}


@pytest.mark.spec("AS-06")
@pytest.mark.parametrize("replicas", [0, 1, 7, 99])
def test_without_autoscaling_the_smallest_number_runs_whatever_a_stray_one_says(
    replicas: int,
) -> None:
    for demand in (ScaleDemand(3), ScaleDemand(3, 10), ScaleDemand(3, None, (CPU,))):
        assert not demand.is_autoscaled
        assert derive_desired(replace(demand, replicas=replicas), 9) == 3
    assert derive_desired(ScaleDemand(-1), 9) == 0


@pytest.mark.spec("AS-07", "AS-09")
@pytest.mark.parametrize(
    ("replicas", "occupied", "desired"),
    [(0, 5, 5), (0, 0, 2), (0, 40, 10), (7, 5, 7), (1, 5, 2), (99, 5, 10)],
)
def test_the_number_is_the_autoscalers_else_what_runs_within_the_bounds(
    replicas: int, occupied: int, desired: int
) -> None:
    assert derive_desired(replace(DEMAND, replicas=replicas), occupied) == desired


def test_bounds_the_wrong_way_round_give_nothing_up() -> None:
    demand = ScaleDemand(5, 2, (CPU,), replicas=7)
    assert derive_desired(demand, 7) == 7
    assert derive_desired(replace(demand, replicas=1), 7) == 5
    assert find_fault(demand) == "maxReplicas 2 is below minReplicas 5"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 60), st.integers(0, 60))
def test_the_number_is_always_within_the_bounds(
    least: int, most: int, replicas: int, occupied: int
) -> None:
    desired = derive_desired(ScaleDemand(least, most, (CPU,), replicas), occupied)
    assert desired >= least
    assert most < least or desired <= most


@pytest.mark.spec("AS-17")
@pytest.mark.parametrize(
    ("metric", "fault"),
    [
        (CPU, ""),
        (ScaleMetric("memory", average_value="512Mi"), ""),
        (
            ScaleMetric("cpu", has_value=True),
            'metric "cpu": target "value" cannot be used; use averageValue or averageUtilization',
        ),
        (ScaleMetric("gpu", 1), 'metric "gpu" is not known; use cpu or memory'),
        (ScaleMetric(""), 'metric "" is not known; use cpu or memory'),
        (
            ScaleMetric("cpu", 1, 1),
            'metric "cpu": exactly one of averageValue and averageUtilization is needed',
        ),
        (
            ScaleMetric("cpu"),
            'metric "cpu": exactly one of averageValue and averageUtilization is needed',
        ),
        (ScaleMetric("cpu", None, "x"), 'metric "cpu": averageValue "x" is no quantity'),
    ],
)
def test_a_metric_that_no_autoscaler_can_use_is_named(metric: ScaleMetric, fault: str) -> None:
    assert find_fault(replace(DEMAND, metrics=(metric,))) == fault


@pytest.mark.spec("AS-17")
def test_a_limit_above_a_thousand_is_a_fault() -> None:
    assert find_fault(replace(DEMAND, max_replicas=1001)) == "maxReplicas 1001 is above 1000"
    assert find_fault(replace(DEMAND, max_replicas=1000)) == ""


def test_stored_settings_are_read_and_members_of_a_wrong_type_are_absent() -> None:
    memory: JsonObject = {"resource": {"name": "memory", "target": {"averageValue": "1Gi"}}}
    assert read_demand(a_spec(memory, replicas=4)) == ScaleDemand(
        2, 10, (ScaleMetric("memory", average_value="1Gi"),), 4
    )
    total: JsonObject = {"resource": {"name": "cpu", "target": {"value": "4"}}}
    assert read_demand(a_spec(total)).metrics == (ScaleMetric("cpu", has_value=True),)
    assert read_demand(a_spec("odd", replicas=True)) == ScaleDemand(2, 10, (ScaleMetric(""),))
    assert read_demand(a_spec({"resource": 1}, replicas=-4)).replicas == 0
    assert read_demand({"scaleSettings": {"minReplicas": "2", "maxReplicas": True}}) == (
        ScaleDemand()
    )


def test_the_highest_slot_counts_and_foreign_names_do_not() -> None:
    assert count_occupied("web", ["web-0", "web-4", "web-x", "web-01", "other-9"]) == 5
    assert count_occupied("web", []) == 0
