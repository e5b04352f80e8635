"""Loads become PodMetrics from which the arithmetic of Kubernetes' controller gets the number."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_api_types import labels
from compute_api_types.quantity import parse_quantity
from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.manifests import apply_manifests
from compute_sim_planes.api_server.testing import World, in_virtual_time
from compute_sim_planes.client.rest import Client, ListOptions
from e2e.backends.pod_metrics.definition import POD_METRICS, a_definition
from e2e.backends.pod_metrics.plan import (
    PODS,
    Loads,
    ObservedPods,
    Remove,
    WriteMetrics,
    WritePod,
    plan,
)
from e2e.backends.pod_metrics.publisher import AUTOSCALERS, INSTANCES, PERIOD, PodMetricsPublisher
from e2e.backends.pod_metrics.stand_ins import a_stand_in, a_status
from e2e.backends.pod_metrics.usage import MetricTarget, derive_usage, read_requests, read_targets
from e2e.harness.deploy.shipped import definitions
from e2e.world.documents import a_template
from e2e.world.objects import labels_of, name_of, object_at, objects_at, text_at

NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
UID: Final = "d-1"
REQUESTS: Final = {"cpu": Fraction(1, 10), "memory": Fraction(2**27)}
BY_UTILIZATION: Final[JsonObject] = {"type": "Utilization", "averageUtilization": 60}
BY_AMOUNT: Final[JsonObject] = {"type": "AverageValue", "averageValue": "512Mi"}


def an_autoscaler(resource: str = "cpu", target: JsonObject = BY_UTILIZATION) -> JsonObject:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {
                labels.SERVICE_NAME: labels.OUR_SERVICE,
                labels.WORKLOAD_DEPLOYMENT_UID: UID,
            },
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "v1", "kind": "Any", "name": "web"},
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": {"name": resource, "target": target}}],
        },
    }


def an_instance(number: int, *, is_available: bool = True) -> JsonObject:
    available: JsonObject = {
        "type": "Available",
        "status": "True" if is_available else "False",
        "reason": "Any",
        "message": "",
        "lastTransitionTime": "2026-03-01T00:00:00Z",
    }
    return {
        "apiVersion": INSTANCES.api_version,
        "kind": INSTANCES.kind,
        "metadata": {
            "name": f"web-{number}",
            "namespace": "default",
            "uid": f"i-{number}",
            "labels": {labels.WORKLOAD_DEPLOYMENT_UID: UID},
        },
        "status": {"conditions": [available]},
    }


def a_present(number: int) -> JsonObject:
    return {**a_stand_in(an_instance(number)), "status": a_status(NOW)}


def evaluate(metrics: list[JsonObject], target: MetricTarget, number: int) -> int:
    """The arithmetic of the controller over Pods that are all ready (replica_calculator.go)."""
    used = sum(
        math.ceil(parse_quantity(text_at(container, "usage", target.resource)) * 1000)
        for one in metrics
        for container in objects_at(one, "containers")
    )
    if target.utilization:
        requested = sum(math.ceil(REQUESTS[target.resource] * 1000) for _ in metrics)
        ratio = (used * 100 // requested) / target.utilization
    else:
        ratio = (used // len(metrics)) / math.ceil(target.amount * 1000)
    return number if 0.9 <= ratio <= 1.1 else math.ceil(ratio * len(metrics))


@given(
    st.sampled_from([("cpu", BY_UTILIZATION), ("memory", BY_AMOUNT)]),
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_the_controllers_arithmetic_gets_the_number_of_the_load(
    kind: tuple[str, JsonObject], load: int, pods: int, number: int
) -> None:
    (target,) = read_targets(an_autoscaler(*kind))
    usage = derive_usage((target,), REQUESTS, load, pods)
    metrics: list[JsonObject] = [{"containers": [{"usage": usage}]} for _ in range(pods)]
    # While Pods are fewer than the number, a ratio near one keeps the number as it is.
    assert evaluate(metrics, target, number) in ({load} if pods != load else {load, number})


def test_a_load_of_none_uses_nothing() -> None:
    assert derive_usage((MetricTarget("cpu", 60),), REQUESTS, 0, 2) == {"cpu": "0n", "memory": "0"}


def test_requests_are_those_of_all_containers() -> None:
    request: JsonObject = {"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
    pod: JsonObject = {"spec": {"containers": [request, request, {}]}}
    assert read_requests(pod) == REQUESTS


def test_a_pod_and_its_metrics_come_after_the_others_use_less() -> None:
    first = list(
        plan(
            ObservedPods((an_autoscaler(),), instances=(an_instance(0),)),
            Loads({"web": 2}),
            NOW,
        )
    )
    assert [type(step) for step in first] == [WritePod, WriteMetrics]
    assert isinstance(first[1], WriteMetrics)
    observed = ObservedPods(
        (an_autoscaler(),),
        instances=(an_instance(0), an_instance(1), an_instance(2, is_available=False)),
        pods=(a_present(0),),
        metrics=(first[1].metrics,),
    )
    lowered, made, measured = plan(observed, Loads({"web": 2}), NOW)
    assert isinstance(lowered, WriteMetrics)
    assert isinstance(made, WritePod)
    assert isinstance(measured, WriteMetrics)
    named = [name_of(one) for one in (lowered.metrics, made.pod, measured.metrics)]
    assert named == ["web-0", "web-1", "web-1"]
    settled = ObservedPods(
        (an_autoscaler(),),
        instances=observed.instances[:2],
        pods=(a_present(0), a_present(1)),
        metrics=(lowered.metrics, measured.metrics),
    )
    assert list(plan(settled, Loads({"web": 2}), NOW)) == []


def test_what_has_ended_goes_first_and_nothing_is_left_without_an_autoscaler() -> None:
    (_, written) = plan(ObservedPods((an_autoscaler(),), instances=(an_instance(0),)), Loads(), NOW)
    assert isinstance(written, WriteMetrics)
    left = ObservedPods(
        instances=(an_instance(0),), pods=(a_present(0),), metrics=(written.metrics,)
    )
    key = ("default", "web-0")
    assert list(plan(left, Loads(), NOW)) == [Remove(PODS, key), Remove(POD_METRICS, key)]
    away = ObservedPods(
        (an_autoscaler(),), instances=left.instances, pods=left.pods, metrics=left.metrics
    )
    assert list(plan(away, Loads(has_metrics=False), NOW)) == [Remove(POD_METRICS, key)]


def test_pods_of_kubelets_are_measured_once_they_are_ready_and_never_made() -> None:
    pod = a_present(0)
    object_at(pod, "metadata")["labels"] = {labels.WORKLOAD_DEPLOYMENT_UID: UID}
    starting: JsonObject = {**pod, "status": {}}
    loads = Loads({"web": 3}, has_kubelets=True)
    assert list(plan(ObservedPods((an_autoscaler(),), pods=(starting,)), loads, NOW)) == []
    (step,) = plan(ObservedPods((an_autoscaler(),), pods=(pod,)), loads, NOW)
    assert isinstance(step, WriteMetrics)
    assert labels_of(step.metrics) == {labels.WORKLOAD_DEPLOYMENT_UID: UID}
    assert list(plan(ObservedPods(pods=(pod,)), loads, NOW)) == []


@pytest.mark.parametrize("has_metrics", [True, False])
def test_a_server_lists_the_metrics_of_running_instances_by_the_label_of_pods(
    *, has_metrics: bool
) -> None:
    async def story(world: World) -> None:
        await apply_manifests(world.admin, [*definitions(), a_definition()])
        client = Client(world.admin, manager="test")
        await client.create(AUTOSCALERS, an_autoscaler())
        for number in range(2):
            document = an_instance(number)
            document["spec"] = object_at(a_template(), "spec")
            status = document.pop("status")
            await client.create(INSTANCES, document)
            change: JsonObject = {"status": status}
            await client.patch(
                INSTANCES, f"web-{number}", change, namespace="default", subresource="status"
            )
        publisher = PodMetricsPublisher(client, world.clock, has_kubelets=False)
        publisher.loads["web"] = 4
        running = asyncio.create_task(publisher.run())
        await world.clock.sleep(2 * PERIOD)
        publisher.has_metrics = has_metrics
        await world.clock.sleep(2 * PERIOD)
        selected = ListOptions("default", labels=f"{labels.WORKLOAD_DEPLOYMENT_UID}={UID}")
        listed = (await client.list(POD_METRICS, selected)).items
        assert [name_of(one) for one in listed] == (["web-0", "web-1"] if has_metrics else [])
        pods = (await client.list(PODS, selected)).items
        assert [text_at(one, "status", "phase") for one in pods] == ["Running", "Running"]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        for resource in (PODS, POD_METRICS):
            assert (await client.list(resource, selected)).items == []

    in_virtual_time(story)
