"""Kubernetes' controller of autoscalers on one real API server follows a load, by PodMetrics that a
CRD serves, and reports what the simulated one does.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

import pytest
import pytest_asyncio

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.testing import ServerAddress
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.http import HttpTransport
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.time.sources import SystemClock
from e2e.backends.pod_metrics.definition import a_definition
from e2e.backends.pod_metrics.publisher import (
    AUTOSCALERS,
    DEPLOYMENTS,
    INSTANCES,
    PodMetricsPublisher,
)
from e2e.harness.deploy.shipped import definitions
from e2e.world.documents import a_bare_deployment, a_template
from e2e.world.objects import condition_of, number_at, object_at, uid_of

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", is_namespaced=False)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)
PATIENCE: Final = timedelta(seconds=90)
CPU: Final[JsonObject] = {
    "type": "Resource",
    "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 60},
    },
}
MEMORY: Final[JsonObject] = {
    "type": "Resource",
    "resource": {
        "name": "memory",
        "target": {"type": "AverageValue", "averageValue": "512Mi"},
    },
}


class ScaledDeployment:
    """A WorkloadDeployment with Instances that a test makes, and the metrics of its Pods."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.uid = ""
        self.publisher = PodMetricsPublisher(client, SystemClock(), has_kubelets=False)

    async def open(self, number: int | None, metric: JsonObject) -> None:
        document = a_bare_deployment("web", replicas=2)
        document["metadata"] = {"name": "web", "namespace": self.namespace}
        if number is not None:
            object_at(document, "spec")["replicas"] = number
        made = await self.client.create(DEPLOYMENTS, document)
        self.uid = uid_of(made)
        status: JsonObject = {
            **object_at(made, "status"),
            "selector": f"{labels.WORKLOAD_DEPLOYMENT_UID}={self.uid}",
        }
        await self.client.patch(
            DEPLOYMENTS, "web", {"status": status}, namespace=self.namespace, subresource="status"
        )
        await self.client.create(AUTOSCALERS, self._an_autoscaler(metric))

    def _an_autoscaler(self, metric: JsonObject) -> JsonObject:
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {
                "name": "web",
                "namespace": self.namespace,
                "labels": {
                    labels.SERVICE_NAME: labels.OUR_SERVICE,
                    labels.WORKLOAD_DEPLOYMENT_UID: self.uid,
                },
            },
            "spec": {
                "scaleTargetRef": {
                    "apiVersion": DEPLOYMENTS.api_version,
                    "kind": DEPLOYMENTS.kind,
                    "name": "web",
                },
                "minReplicas": 2,
                "maxReplicas": 6,
                "metrics": [metric],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 1}},
            },
        }

    async def run_instances(self, *numbers: int) -> None:
        for number in numbers:
            name = f"web-{number}"
            document: JsonObject = {
                "apiVersion": INSTANCES.api_version,
                "kind": INSTANCES.kind,
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "labels": {labels.WORKLOAD_DEPLOYMENT_UID: self.uid},
                },
                "spec": object_at(a_template(), "spec"),
            }
            made = await self.client.create(INSTANCES, document)
            available: JsonObject = {
                "type": "Available",
                "status": "True",
                "reason": "Available",
                "message": "",
                "lastTransitionTime": "2026-03-01T00:00:00Z",
            }
            status: JsonObject = {**object_at(made, "status"), "conditions": [available]}
            await self.client.patch(
                INSTANCES, name, {"status": status}, namespace=self.namespace, subresource="status"
            )

    async def has(self, number: int) -> None:
        deployment = await self.client.get(DEPLOYMENTS, "web", self.namespace)
        assert number_at(deployment, "spec", "replicas") == number

    async def reports(self, condition: str, status: str, reason: str) -> None:
        autoscaler = await self.client.get(AUTOSCALERS, "web", self.namespace)
        assert autoscaler is not None
        shown = condition_of(autoscaler, condition)
        assert (shown.status, shown.reason) == (status, reason), shown.message


async def eventually(check: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE.total_seconds()
    while True:
        try:
            await check()
        except AssertionError:
            if loop.time() > end:
                raise
        else:
            return
        await asyncio.sleep(0.5)


@pytest_asyncio.fixture
async def scaled(real_api_server: ServerAddress) -> AsyncIterator[ScaledDeployment]:
    context = real_api_server.context()
    transport = HttpTransport(
        real_api_server.url,
        token=real_api_server.token,
        context=context if isinstance(context, ssl.SSLContext) else None,
    )
    client = Client(transport, manager="test")
    for document in (*definitions(), a_definition()):
        await client.apply(DEFINITIONS, document)
    namespace = f"scaled-{secrets.token_hex(3)}"
    metadata: JsonObject = {"name": namespace}
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    deployment = ScaledDeployment(client, namespace)

    async def is_served() -> None:
        try:
            await client.list(INSTANCES)
            await deployment.publisher.publish()
        except ApiError as refused:
            raise AssertionError(str(refused)) from refused

    await eventually(is_served)
    publishing = asyncio.create_task(deployment.publisher.run())
    try:
        yield deployment
    finally:
        publishing.cancel()
        with suppress(asyncio.CancelledError):
            await publishing
        await client.delete(NAMESPACES, namespace)
        await transport.close()


@pytest.mark.spec("AS-02", "AS-03", "AS-16")
@pytest.mark.parametrize("metric", [CPU, MEMORY], ids=["cpu", "memory"])
async def test_the_number_follows_the_load_within_its_bounds(
    scaled: ScaledDeployment, metric: JsonObject
) -> None:
    await scaled.open(2, metric)
    await scaled.run_instances(0, 1)
    scaled.publisher.loads["web"] = 4
    await eventually(lambda: scaled.has(4))
    await eventually(lambda: scaled.reports("AbleToScale", "True", "ReadyForNewScale"))
    await eventually(lambda: scaled.reports("ScalingActive", "True", "ValidMetricFound"))
    await scaled.run_instances(2, 3)
    await eventually(lambda: scaled.reports("ScalingLimited", "False", "DesiredWithinRange"))
    await scaled.has(4)
    scaled.publisher.loads["web"] = 9
    await eventually(lambda: scaled.has(6))
    await eventually(lambda: scaled.reports("ScalingLimited", "True", "TooManyReplicas"))
    scaled.publisher.has_metrics = False
    no_metrics = ("ScalingActive", "False", "FailedGetResourceMetric")
    await eventually(lambda: scaled.reports(*no_metrics))
    await asyncio.sleep(6)  # three evaluations
    await scaled.has(6)
    scaled.publisher.has_metrics = True
    scaled.publisher.loads["web"] = 1
    await eventually(lambda: scaled.has(2))
    await eventually(lambda: scaled.reports("ScalingLimited", "True", "TooFewReplicas"))


@pytest.mark.spec("AS-07")
async def test_without_a_number_the_scale_cannot_be_read(scaled: ScaledDeployment) -> None:
    await scaled.open(None, CPU)
    await scaled.run_instances(0)
    await eventually(lambda: scaled.reports("AbleToScale", "False", "FailedGetScale"))
    change: JsonObject = {"spec": {"replicas": 0}}
    await scaled.client.patch(
        DEPLOYMENTS, "web", change, namespace=scaled.namespace, subresource="scale"
    )
    await eventually(lambda: scaled.reports("ScalingActive", "False", "ScalingDisabled"))
