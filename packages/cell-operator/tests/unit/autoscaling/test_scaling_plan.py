"""What is written for the autoscaler of a deployment (autoscaling.md 3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from compute_api_types import labels
from compute_cell_operator.autoscaling.demand import ScaleDemand, ScaleMetric
from compute_cell_operator.autoscaling.observe import ExistingAutoscaler, ObservedAutoscaling
from compute_cell_operator.autoscaling.plan import plan
from compute_cell_operator.planes import AUTOSCALER, CELL, DEPLOYMENT
from compute_operator_kit.core.json import Json, JsonObject, decode_json_object, encode
from compute_operator_kit.core.keys import ObjectKey, Uid
from compute_operator_kit.core.objects import Absent
from compute_operator_kit.intents.compare import compare
from compute_operator_kit.intents.intents import (
    Delete,
    Ensure,
    Plan,
    RequeueAfter,
    SetScale,
    build_new,
)
from compute_operator_kit.testing.fakes import a_snapshot

NS = "ns-6a1f1c1e-3f6c-4a44-9a52-0c2f9f3b7a10"
KEY = ObjectKey(CELL, DEPLOYMENT, NS, "web")
HPA = ObjectKey(CELL, AUTOSCALER, NS, "web")
CPU = ScaleMetric("cpu", utilization=60)
NONE = Absent()
DEMAND = ScaleDemand(2, 10, (CPU,), 4)
MINUTE = timedelta(minutes=1)


def seen(
    existing: ExistingAutoscaler | Absent = NONE,
    *,
    demand: ScaleDemand = DEMAND,
    metadata: JsonObject | None = None,
    is_name_taken: bool = False,
) -> ObservedAutoscaling:
    deployment = a_snapshot(KEY, metadata={"uid": "d-1", **(metadata or {})})
    return ObservedAutoscaling(
        KEY,
        deployment.metadata,
        demand,
        links=((labels.CITY_CODE, "DFW"),),
        occupied=3,
        existing=existing,
        is_name_taken=is_name_taken,
    )


def an_autoscaler(metrics: Json = None, *, is_deleting: bool = False) -> ExistingAutoscaler:
    return ExistingAutoscaler(HPA, Uid("h-1"), metrics, is_deleting)


def planned(observed: ObservedAutoscaling) -> Plan:
    return plan(observed, MINUTE)


def ensured(observed: ObservedAutoscaling) -> Ensure:
    (intent,) = (one for one in planned(observed) if isinstance(one, Ensure))
    return intent


@pytest.mark.spec("AS-01")
def test_a_new_autoscaler_has_owner_labels_target_bounds_and_metrics() -> None:
    made = ensured(seen())
    assert made.uid is None
    assert made.requires is not None
    assert build_new(made) == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "web",
            "namespace": NS,
            "labels": {
                "services.miloapis.com/service-name": "compute.datumapis.com",
                "compute.datumapis.com/city-code": "DFW",
            },
            "ownerReferences": [
                {
                    "apiVersion": "compute.datumapis.com/v1alpha",
                    "kind": "WorkloadDeployment",
                    "name": "web",
                    "uid": "d-1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "compute.datumapis.com/v1alpha",
                "kind": "WorkloadDeployment",
                "name": "web",
            },
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 60},
                    },
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        },
    }


@pytest.mark.spec("AS-11", "AS-18")
def test_what_the_server_defaults_or_spells_otherwise_is_no_difference() -> None:
    memory = ScaleDemand(2, 10, (ScaleMetric("memory", average_value="1024Mi"),), 4)
    new = decode_json_object(encode(build_new(ensured(seen(demand=memory)))))
    spec = new["spec"]
    assert isinstance(spec, dict)
    stored: JsonObject = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    }
    behavior: JsonObject = {
        "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max"},
        "scaleDown": {"stabilizationWindowSeconds": 60, "selectPolicy": "Max"},
    }
    document: JsonObject = {**new, "spec": {**spec, "metrics": [stored], "behavior": behavior}}
    again = ensured(seen(an_autoscaler([stored]), demand=memory))
    assert again.uid == "h-1"
    assert not compare(document, again.desired)
    others: list[list[Json]] = [
        [],
        ["odd"],
        [{**stored, "extra": 1}],
        [{"type": "Pods", "resource": stored["resource"]}],
        [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue"}}}],
        [
            {
                "type": "Resource",
                "resource": {
                    "name": "memory",
                    "target": {"type": "AverageValue", "averageValue": "2Gi"},
                },
            }
        ],
        [
            {
                "type": "Resource",
                "resource": {
                    "name": "memory",
                    "target": {"type": "AverageValue", "averageValue": "odd"},
                },
            }
        ],
    ]
    for each in others:
        other: Json = each
        changed: JsonObject = {**spec, "metrics": other, "behavior": behavior}
        assert compare(
            {**document, "spec": changed},
            ensured(seen(an_autoscaler(other), demand=memory)).desired,
        )


@pytest.mark.spec("AS-07")
def test_the_number_that_runs_is_written_first() -> None:
    first, second = planned(seen(demand=ScaleDemand(2, 10, (CPU,))))
    assert first == SetScale(KEY, Uid("d-1"), 3, "NumberAbsent")
    assert isinstance(second, Ensure)
    nothing = replace(seen(demand=ScaleDemand(0, 10, (CPU,))), occupied=0)
    assert not [one for one in planned(nothing) if isinstance(one, SetScale)]


@pytest.mark.spec("AS-08")
def test_without_autoscaling_ours_is_deleted_by_its_uid() -> None:
    off = ScaleDemand(2)
    (removed,) = planned(seen(an_autoscaler(), demand=off))
    assert removed == Delete(HPA, Uid("h-1"), "NotAutoscaled")
    assert planned(seen(demand=off)) == Plan()
    assert planned(seen(an_autoscaler(is_deleting=True), demand=off)) == Plan()
    assert planned(seen(demand=off, is_name_taken=True)) == Plan()


@pytest.mark.spec("AS-10")
def test_a_taken_name_is_left_alone_and_looked_at_again() -> None:
    (wait,) = planned(seen(is_name_taken=True))
    assert wait == RequeueAfter(KEY, "AutoscalerMissing", timedelta(minutes=5))


def test_a_kind_that_is_not_served_is_looked_at_again() -> None:
    (wait,) = planned(replace(seen(), is_served=False))
    assert wait == RequeueAfter(KEY, "AutoscalerMissing", timedelta(seconds=30))


@pytest.mark.spec("AS-17")
def test_with_a_fault_in_the_settings_nothing_is_made_or_changed() -> None:
    fault = ScaleDemand(2, 10, (ScaleMetric("cpu", has_value=True),))
    assert planned(seen(demand=fault)) == Plan()
    assert planned(seen(an_autoscaler(), demand=fault)) == Plan()


@pytest.mark.spec("AS-19")
def test_nothing_is_done_while_it_rests() -> None:
    suspended: JsonObject = {"annotations": {labels.SUSPENDED: "true"}}
    deleting: JsonObject = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}
    assert planned(seen(metadata=suspended)) == Plan()
    assert planned(seen(metadata=deleting)) == Plan()
    assert planned(replace(seen(), is_wrong_city=True)) == Plan()
    assert planned(replace(seen(), is_namespace_deleting=True)) == Plan()
    # The end of the former one enqueues the key.
    assert planned(seen(an_autoscaler(is_deleting=True))) == Plan()
