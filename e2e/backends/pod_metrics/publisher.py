"""Publishes the Pods and PodMetrics that follow from the loads of a cell, until it is cancelled.

It lists instead of watching: it runs only for scenarios about autoscaling, and a list has no state
that a restarted API server could make wrong. At rest it writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Final, assert_never

from compute_api_types import labels
from compute_api_types.wire import JsonObject
from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.rest import EVERYTHING, Client, ListOptions, Resource
from compute_sim_planes.time.sources import Clock
from e2e.backends.pod_metrics.definition import POD_METRICS
from e2e.backends.pod_metrics.plan import (
    PODS,
    Loads,
    ObservedPods,
    Remove,
    Step,
    WriteMetrics,
    WritePod,
    plan,
)
from e2e.world.kinds import AUTOSCALER, DEPLOYMENT, INSTANCE, Kind
from e2e.world.objects import name_of, namespace_of

PERIOD: Final = timedelta(milliseconds=500)
OURS: Final = ListOptions(labels=f"{labels.SERVICE_NAME}={labels.OUR_SERVICE}")
OF_DEPLOYMENTS: Final = ListOptions(labels=labels.WORKLOAD_DEPLOYMENT_UID)

_log: Final = logging.getLogger(__name__)


def resource_of(kind: Kind) -> Resource:
    return Resource(kind.group, kind.version, kind.plural, kind.name, kind.is_namespaced)


AUTOSCALERS: Final = resource_of(AUTOSCALER)
DEPLOYMENTS: Final = resource_of(DEPLOYMENT)
INSTANCES: Final = resource_of(INSTANCE)


class PodMetricsPublisher:
    """The metrics of one cell; `loads` by name of the deployment, in every namespace."""

    def __init__(self, client: Client, clock: Clock, *, has_kubelets: bool) -> None:
        self.loads: dict[str, int] = {}
        self.has_metrics = True
        self._client = client
        self._clock = clock
        self._has_kubelets = has_kubelets

    async def run(self) -> None:
        """Run until cancelled; then everything that it made is removed."""
        try:
            while True:
                with suppress(ApiError, OSError):  # the next list has what is true then
                    await self.publish()
                await asyncio.sleep(PERIOD.total_seconds())
        finally:
            with suppress(ApiError, OSError):
                await self._clear()

    async def publish(self) -> None:
        observed = ObservedPods(
            autoscalers=await self._list(AUTOSCALERS, OURS),
            deployments=await self._list(DEPLOYMENTS),
            instances=() if self._has_kubelets else await self._list(INSTANCES),
            pods=await self._pods(),
            metrics=await self._metrics(),
        )
        await self._carry_out_all(observed)

    async def _clear(self) -> None:
        """Without autoscalers nothing is wanted."""
        left = ObservedPods(pods=await self._pods(), metrics=await self._metrics())
        await self._carry_out_all(left)

    async def _carry_out_all(self, observed: ObservedPods) -> None:
        loads = Loads(dict(self.loads), self.has_metrics, self._has_kubelets)
        for step in plan(observed, loads, self._clock.now()):
            try:
                await self._carry_out(step)
            except ApiError as refused:  # the namespace is being deleted, or the object is gone
                _log.debug("Publishing again later", extra={"cause": str(refused)})

    async def _carry_out(self, step: Step) -> None:
        match step:
            case Remove(resource, (namespace, name)):
                await self._client.delete(resource, name, namespace=namespace)
            case WriteMetrics(metrics):
                await self._client.apply(POD_METRICS, metrics)
            case WritePod(pod, status):
                await self._client.create(PODS, pod)
                await self._client.patch(
                    PODS,
                    name_of(pod),
                    {"status": status},
                    namespace=namespace_of(pod),
                    subresource="status",
                )
            case _:
                assert_never(step)

    async def _pods(self) -> tuple[JsonObject, ...]:
        return await self._list(PODS, OF_DEPLOYMENTS)

    async def _metrics(self) -> tuple[JsonObject, ...]:
        return await self._list(POD_METRICS)

    async def _list(
        self, resource: Resource, selection: ListOptions = EVERYTHING
    ) -> tuple[JsonObject, ...]:
        return tuple((await self._client.list(resource, selection)).items)
