"""Conditions AutoscalingReady and AutoscalingLimited, row by row (autoscaling.md 4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from compute_api_types.conditions import ConditionStatus, Statement
from compute_cell_operator.autoscaling.demand import ScaleDemand, ScaleMetric
from compute_cell_operator.autoscaling.memory import AutoscalerPass, AutoscalingMemory
from compute_cell_operator.autoscaling.metrics import AUTOSCALED, STEPS, ScalingMetrics
from compute_cell_operator.autoscaling.observe import (
    AutoscalerReport,
    ObservedAutoscaling,
    ObservedScaling,
)
from compute_cell_operator.autoscaling.status import (
    derive_failure,
    is_only_limited,
    state_scaling,
)
from compute_cell_operator.conditions import ReportedCondition
from compute_cell_operator.planes import CELL, DEPLOYMENT
from compute_operator_kit.core.errors import (
    Cause,
    ForbiddenError,
    InvalidSpecError,
    ReconcileError,
    RejectedError,
    ServerAnswer,
    UnavailableError,
)
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.intents.intents import RequeueAfter
from compute_operator_kit.intents.outcomes import Applied, Effect, Outcome
from compute_operator_kit.testing.fakes import FakeMetrics, a_snapshot

KEY = ObjectKey(CELL, DEPLOYMENT, "shop", "web")
DEMAND = ScaleDemand(2, 10, (ScaleMetric("cpu", 60),))
ABLE = ReportedCondition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches")
ACTIVE = ReportedCondition("ScalingActive", "True", "ValidMetricFound", "found")
WITHIN = ReportedCondition("ScalingLimited", "False", "DesiredWithinRange", "within")
AWAITING = ("Unknown", "AwaitingAutoscaler")
Row = tuple[str, str, str]


def a_report(*conditions: ReportedCondition, is_current: bool = True) -> ObservedScaling:
    return ObservedScaling(DEMAND, is_on=True, report=AutoscalerReport(conditions, is_current))


def rows(scaling: ObservedScaling, *, is_suspended: bool = False) -> tuple[Row, Row]:
    statements = state_scaling(scaling, 3, is_suspended=is_suspended)
    assert statements is not None
    ready, limited = statements
    assert (ready.type, limited.type) == ("AutoscalingReady", "AutoscalingLimited")
    assert {ready.observed_generation, limited.observed_generation} == {3}
    return (
        (ready.status, ready.reason, ready.message),
        (limited.status, limited.reason, limited.message),
    )


@pytest.mark.spec("AS-12")
def test_an_autoscaler_that_works_is_ready_and_its_limit_is_passed_on() -> None:
    ready, limited = rows(a_report(ABLE, ACTIVE, WITHIN))
    assert ready == (
        "True",
        "AutoscalerReady",
        "The autoscaler can evaluate and apply scaling decisions",
    )
    assert limited == ("False", "DesiredWithinRange", "within")
    capped = replace(WITHIN, status="True", reason="TooManyReplicas", message="more than maximum")
    assert rows(a_report(ABLE, ACTIVE, capped))[1] == (
        "True",
        "TooManyReplicas",
        "more than maximum",
    )
    assert rows(a_report(ABLE, ACTIVE, replace(WITHIN, status="odd")))[1][0] == "Unknown"


@pytest.mark.spec("AS-12")
@pytest.mark.parametrize(
    "scaling",
    [
        ObservedScaling(DEMAND, is_on=True),
        a_report(),
        a_report(ABLE),
        a_report(ABLE, ACTIVE, WITHIN, is_current=False),
        a_report(ABLE, replace(ACTIVE, status="Unknown")),
    ],
)
def test_without_a_report_about_the_present_settings_it_is_awaited(
    scaling: ObservedScaling,
) -> None:
    ready, limited = rows(scaling)
    assert ready == (
        *AWAITING,
        "Waiting for the autoscaler to evaluate the current scaling settings",
    )
    assert limited == (*AWAITING, "Waiting for the autoscaler to report scaling limits")


@pytest.mark.spec("AS-12", "AS-16")
def test_its_own_reason_is_passed_on_the_scale_first() -> None:
    metric = ReportedCondition("ScalingActive", "False", "FailedGetResourceMetric", "no metrics")
    scale = ReportedCondition("AbleToScale", "False", "FailedGetScale", "no scale")
    assert rows(a_report(ABLE, metric))[0] == ("False", "FailedGetResourceMetric", "no metrics")
    assert rows(a_report(metric, scale))[0] == ("False", "FailedGetScale", "no scale")
    assert rows(a_report(ABLE, replace(metric, reason="no word!")))[0][1] == "Unknown"


@pytest.mark.spec("AS-12", "AS-21")
def test_a_failure_a_fault_and_a_switch_are_named() -> None:
    reason = "AutoscalerReconcileFailed"
    failed = replace(a_report(ABLE, ACTIVE, WITHIN), failure="403")
    assert rows(failed) == (("False", reason, "403"), ("False", "DesiredWithinRange", "within"))
    wrong = replace(failed, demand=replace(DEMAND, max_replicas=1))
    assert rows(wrong)[0] == ("False", reason, "maxReplicas 1 is below minReplicas 2")
    off = ObservedScaling(DEMAND)
    assert rows(off)[0] == ("False", reason, "autoscaling is switched off in this cell")


@pytest.mark.spec("AS-12")
def test_suspension_comes_first_and_the_unknown_stands() -> None:
    unknown = ObservedScaling(DEMAND, is_on=True, is_known=False)
    assert state_scaling(unknown, 3, is_suspended=False) is None
    assert rows(unknown, is_suspended=True)[0] == (
        "Unknown",
        "Suspended",
        "Autoscaling rests while the project is suspended",
    )
    assert state_scaling(ObservedScaling(ScaleDemand(2)), 3, is_suspended=True) == ()


# --- why a pass failed ----------------------------------------------------------------------------


def failed_by(*errors: ReconcileError) -> Applied:
    wait = RequeueAfter(KEY, "x", timedelta(seconds=1))
    return Applied(tuple(Outcome(wait, Effect.FAILED, error=error) for error in errors))


OBSERVED = ObservedAutoscaling(KEY, a_snapshot(KEY).metadata, DEMAND)


@pytest.mark.spec("AS-10")
def test_a_taken_name_and_an_unserved_kind_are_failures() -> None:
    taken = derive_failure(replace(OBSERVED, is_name_taken=True), Applied())
    assert taken == (
        "HPA shop/web already exists and is not controlled by WorkloadDeployment shop/web"
    )
    unserved = derive_failure(replace(OBSERVED, is_served=False), Applied())
    assert unserved == "horizontalpodautoscalers are not served in this cell"


def test_a_refusal_is_a_failure_and_an_outage_says_nothing_new() -> None:
    assert derive_failure(OBSERVED, Applied()) == ""
    assert derive_failure(OBSERVED, failed_by(UnavailableError("Down", "no answer"))) is None
    plain = RejectedError("Odd", "writing: refused")
    assert derive_failure(OBSERVED, failed_by(plain)) == "writing: refused"
    answer = ServerAnswer(403, "Forbidden", "user x cannot")
    refused = ForbiddenError("Forbidden", "user x cannot", answer=answer)
    assert derive_failure(OBSERVED, failed_by(refused)) == (
        "the autoscaler could not be written: the API server answered 403 Forbidden"
    )
    causes = (Cause("FieldValueInvalid", "spec.minReplicas"), Cause("x"))
    invalid = InvalidSpecError(
        "Invalid", "0", answer=ServerAnswer(422, "Invalid", "0", causes=causes)
    )
    assert derive_failure(OBSERVED, failed_by(invalid)) == (
        "the autoscaler could not be written: spec.minReplicas: FieldValueInvalid"
    )


@pytest.mark.spec("AS-18")
def test_only_a_change_of_the_limit_alone_is_held_back() -> None:
    stored = (
        ReportedCondition("Ready", "True", "R", "m"),
        ReportedCondition("AutoscalingLimited", "False", "DesiredWithinRange", "within"),
    )
    capped = Statement("AutoscalingLimited", "True", "TooManyReplicas", "more")
    ready = Statement("Ready", "True", "R", "m")
    assert is_only_limited((ready, capped), stored)
    assert not is_only_limited((ready,), stored)
    assert not is_only_limited((replace(ready, status="False"), capped), stored)


# --- memory and metrics ---------------------------------------------------------------------------


def test_the_memory_tells_of_a_change_once_and_of_one_deployment() -> None:
    memory, told = AutoscalingMemory(), list[ObjectKey]()
    memory.add_listener(told.append)
    memory.note(KEY, AutoscalerPass(Uid("d-1"), "403"))
    memory.note(KEY, AutoscalerPass(Uid("d-1"), "403"))
    assert told == [KEY]
    assert memory.find(KEY, Uid("d-1")) == AutoscalerPass(Uid("d-1"), "403")
    assert memory.find(KEY, Uid("d-2")) is None
    memory.forget(KEY)
    assert len(memory) == 0


STATES: Final[tuple[tuple[ConditionStatus, ConditionStatus, str], ...]] = (
    ("True", "False", "ready"),
    ("True", "True", "limited"),
    ("Unknown", "Unknown", "pending"),
    ("False", "False", "failing"),
)


def gauge_of(fake: FakeMetrics, state: str) -> float:
    return fake.gauges[AUTOSCALED, (("state", state),)]


def test_deployments_are_counted_by_state_and_their_steps_by_direction() -> None:
    fake = FakeMetrics()
    metrics = ScalingMetrics(fake)
    for ready, limited, state in STATES:
        statements = (
            Statement("AutoscalingReady", ready, "R", ""),
            Statement("AutoscalingLimited", limited, "R", ""),
        )
        metrics.note(KEY, statements, 2)
        assert gauge_of(fake, state) == 1
    metrics.note(KEY, (), 4)
    metrics.note(KEY, (), 3)
    assert fake.total(STEPS, direction="up") == 1
    assert fake.total(STEPS, direction="down") == 1
    metrics.forget(KEY)
    metrics.forget(KEY)
    assert gauge_of(fake, "failing") == 0
