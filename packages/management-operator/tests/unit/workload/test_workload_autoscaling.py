"""AutoscalingReady and AutoscalingLimited of placements and the Workload (autoscaling.md 4)."""

from __future__ import annotations

import pytest

from compute_management_operator.planes import DEPLOYMENT
from compute_management_operator.stored_status import StoredCondition
from compute_management_operator.workload.observe import (
    ChildStatus,
    DeploymentIdentity,
    WorkloadChild,
)
from compute_management_operator.workload.status.autoscaling import state_placement, state_workload
from compute_operator_kit.core.keys import ObjectKey, PlaneName
from compute_operator_kit.testing.fakes import a_snapshot

READY, LIMITED = "AutoscalingReady", "AutoscalingLimited"


def a_child(city: str, *conditions: StoredCondition) -> WorkloadChild:
    key = ObjectKey(PlaneName("acme"), DEPLOYMENT, "shop", f"web-main-{city.lower()}")
    return WorkloadChild(
        key,
        a_snapshot(key).metadata,
        "w-1",
        DeploymentIdentity("main", city),
        ChildStatus(autoscaling=conditions),
    )


def shown(*children: WorkloadChild) -> dict[str, tuple[str, str, str]]:
    statements = state_placement(children, 4)
    assert {one.observed_generation for one in statements} <= {4}
    return {one.type: (one.status, one.reason, one.message) for one in statements}


WORKS = StoredCondition(READY, "True", "AutoscalerReady", "works")
FREE = StoredCondition(LIMITED, "False", "DesiredWithinRange", "within")
BROKEN = StoredCondition(READY, "False", "FailedGetResourceMetric", "no metrics")
CAPPED = StoredCondition(LIMITED, "True", "TooManyReplicas", "more than the maximum")
AWAITED = StoredCondition(READY, "Unknown", "AwaitingAutoscaler", "waiting")


@pytest.mark.spec("AS-13")
def test_all_working_and_none_limited_is_one_sentence() -> None:
    assert shown(a_child("DFW", WORKS, FREE), a_child("ORD", WORKS, FREE), a_child("LHR")) == {
        READY: (
            "True",
            "AutoscalersReady",
            "All enabled autoscalers can evaluate and apply scaling decisions",
        ),
        LIMITED: (
            "False",
            "WithinScalingLimits",
            "All enabled autoscalers are operating within their scaling limits",
        ),
    }


@pytest.mark.spec("AS-13")
def test_one_city_that_fails_and_one_that_is_limited_are_named() -> None:
    both = shown(a_child("ORD", BROKEN, FREE), a_child("DFW", AWAITED, CAPPED))
    assert both[READY] == (
        "False",
        "FailedGetResourceMetric",
        'Location "ORD", deployment "web-main-ord": no metrics',
    )
    assert both[LIMITED] == (
        "True",
        "TooManyReplicas",
        'Location "DFW", deployment "web-main-dfw": more than the maximum',
    )
    assert shown(a_child("ORD", WORKS), a_child("DFW", AWAITED))[READY][0] == "Unknown"
    odd = StoredCondition(READY, "odd", "R", "m")
    assert shown(a_child("ORD", odd))[READY][0] == "Unknown"


@pytest.mark.spec("AS-08", "AS-13")
def test_without_autoscaled_deployments_there_is_neither() -> None:
    assert shown(a_child("DFW")) == {}
    assert state_workload({"main": ()}, 4) == ()


@pytest.mark.spec("AS-13")
def test_the_workload_names_the_placement() -> None:
    good, bad = (
        state_placement([a_child("DFW", WORKS)], 4),
        state_placement([a_child("ORD", BROKEN, CAPPED)], 4),
    )
    ready, limited = state_workload({"main": bad, "other": good}, 5)
    assert (ready.status, ready.observed_generation) == ("False", 5)
    assert ready.message == (
        'Placement "main": Location "ORD", deployment "web-main-ord": no metrics'
    )
    assert limited.status == "True"
