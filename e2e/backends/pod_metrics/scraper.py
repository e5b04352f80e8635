"""Publishes what the containers of a cell really use, as their kubelets measure it.

It does what a metrics server does for the controller of autoscalers, for one node and the Pods of
Instances alone. The API server passes its requests on to the kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from compute_api_types.wire import JsonObject
from compute_sim_planes.api_server.http.transport import Transport, read_body
from compute_sim_planes.client.errors import ApiError, error_of
from compute_sim_planes.client.rest import Client
from e2e.backends.pod_metrics.definition import POD_METRICS
from e2e.backends.pod_metrics.kubelet import (
    ContainerKey,
    ContainerSample,
    derive_rate,
    parse_samples,
)
from e2e.backends.pod_metrics.plan import PODS, a_pod_metrics, key_of
from e2e.backends.pod_metrics.publisher import OF_DEPLOYMENTS
from e2e.backends.pod_metrics.stand_ins import is_ready

PERIOD: Final = timedelta(seconds=2)


class KubeletScraper:
    """The metrics of the Pods on one node."""

    def __init__(self, transport: Transport, client: Client, node: str) -> None:
        self._transport = transport
        self._client = client
        self._path = f"/api/v1/nodes/{node}/proxy/metrics/resource"
        self._last: dict[ContainerKey, ContainerSample] = {}

    async def run(self) -> None:
        """Run until cancelled; metrics of Pods that are gone are removed."""
        while True:
            with suppress(ApiError, OSError):  # the node is being rebooted
                await self.publish()
            await asyncio.sleep(PERIOD.total_seconds())

    async def publish(self) -> None:
        samples = parse_samples(await self._scrape())
        pods = (await self._client.list(PODS, OF_DEPLOYMENTS)).items
        present = {key_of(pod): pod for pod in pods if is_ready(pod)}
        for key, pod in present.items():
            own = [one for one in samples if (one.namespace, one.pod) == key]
            metrics = self._measure(pod, own, samples)
            if metrics is not None:
                await self._client.apply(POD_METRICS, metrics)
        self._last = {key: self._last[key] for key in self._last if key in samples}
        for one in (await self._client.list(POD_METRICS)).items:
            namespace, name = key_of(one)
            if (namespace, name) not in present:
                await self._client.delete(POD_METRICS, name, namespace=namespace)

    def _measure(
        self,
        pod: JsonObject,
        keys: Iterable[ContainerKey],
        samples: dict[ContainerKey, ContainerSample],
    ) -> JsonObject | None:
        """PodMetrics of the time since the last sample; None until there is another one."""
        usage: dict[str, JsonObject] = {}
        window = timedelta()
        at = None
        for key in keys:
            after = samples[key]
            before = self._last.get(key)
            if before is not None and before.at == after.at:
                continue
            self._last[key] = after
            rate = None if before is None else derive_rate(before, after)
            if before is not None and rate is not None:
                usage[key.container] = rate
                at, window = after.at, after.at - before.at
        if at is None:
            return None
        return a_pod_metrics(pod, usage, at, f"{window.total_seconds():.0f}s")

    async def _scrape(self) -> str:
        answer = await self._transport.request("GET", self._path, {}, None)
        body = await read_body(answer)
        if answer.status != 200:
            raise error_of(answer.status, body)
        return body.decode()
