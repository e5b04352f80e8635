"""Simulated controller of HorizontalPodAutoscalers: moves numbers by a scripted load.

```
load ─► wanted number ─► within the bounds ─► down only after the stabilisation ─► PATCH /scale
                              └─► conditions AbleToScale, ScalingActive, ScalingLimited
```

A scenario sets how many replicas the load asks for; Pods and their metrics are not simulated. An
autoscaler that reads the number 0 rests, as a real one does, and without metrics the last number
stands. It shares no code with the operators.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.reflector import list_and_watch
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.client.workqueue import NamespacedName, WorkQueue, namespaced_name
from compute_sim_planes.conditions import Condition, derive_conditions
from compute_sim_planes.json_copies import copy_object
from compute_sim_planes.json_types import (
    JsonObject,
    ensure_object,
    integer_at,
    object_at,
    string_at,
    value_at,
)
from compute_sim_planes.time.sources import Clock

AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"
)
DEPLOYMENTS: Final = Resource(
    "compute.datumapis.com", "v1alpha", "workloaddeployments", "WorkloadDeployment"
)
PERIOD: Final = timedelta(seconds=15)
"""The default of kube-controller-manager's `--horizontal-pod-autoscaler-sync-period`."""


@dataclass(slots=True)
class Recommendations:
    """What the load asked for lately, newest last."""

    entries: list[tuple[datetime, int]] = field(default_factory=list[tuple[datetime, int]])

    def add(self, now: datetime, number: int, window: timedelta) -> int:
        """The largest of the window, by which a number may fall."""
        self.entries = [one for one in self.entries if now - one[0] < window]
        self.entries.append((now, number))
        return max(number for _, number in self.entries)


class Autoscalers:
    """The controller of one cell; `loads` by name of the deployment, in every namespace."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.loads: dict[str, int] = {}  # absent: as many as run
        self.has_metrics = True
        self._client = client
        self._clock = clock
        self._recent: dict[str, Recommendations] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            work = WorkQueue(self._reconcile, tasks, "autoscalers")
            async with aclosing(list_and_watch(self._client, AUTOSCALERS)) as changes:
                async for seen in changes:
                    work.add(namespaced_name(seen.object))

    async def _reconcile(self, key: NamespacedName) -> timedelta | None:
        existing = await self._client.get(AUTOSCALERS, key.name, key.namespace)
        if existing is None or string_at(existing, "metadata", "deletionTimestamp"):
            return None
        target = string_at(existing, "spec", "scaleTargetRef", "name")
        try:
            shown = await self._client.get(DEPLOYMENTS, target, key.namespace, subresource="scale")
        except ApiError as failure:  # an object without a number
            shown, why = None, failure.message
        else:
            why = "not found"
        if shown is None:
            unable = Condition("AbleToScale", "False", "FailedGetScale", f"{_UNABLE}: {why}")
            await self._report(existing, (unable,))
        else:
            await self._scale(existing, shown, target)
        return PERIOD

    async def _scale(self, existing: JsonObject, shown: JsonObject, target: str) -> None:
        current = integer_at(shown, "spec", "replicas") or 0
        able = Condition("AbleToScale", "True", "SucceededGetScale", _ABLE)
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            active = Condition("ScalingActive", "False", "ScalingDisabled", message)
            await self._report(existing, (able, active))
            return
        if not string_at(shown, "status", "selector"):
            message = "the HPA target's scale is missing a selector"
            active = Condition("ScalingActive", "False", "InvalidSelector", message)
            await self._report(existing, (able, active))
            return
        if not self.has_metrics:
            active = Condition("ScalingActive", "False", "FailedGetResourceMetric", _NO_METRICS)
            await self._report(existing, (able, active))
            return
        number, limited = self._decide(existing, current, target)
        if number != current:
            metadata = object_at(shown, "metadata")
            version = string_at(metadata, "resourceVersion")
            await self._client.patch(
                DEPLOYMENTS,
                target,
                {"metadata": {"resourceVersion": version}, "spec": {"replicas": number}},
                namespace=string_at(metadata, "namespace"),
                subresource="scale",
            )
        active = Condition("ScalingActive", "True", "ValidMetricFound", _ACTIVE)
        await self._report(existing, (able, active, limited))

    def _decide(self, existing: JsonObject, current: int, target: str) -> tuple[int, Condition]:
        least = integer_at(existing, "spec", "minReplicas") or 1
        most = integer_at(existing, "spec", "maxReplicas") or least
        asked = self.loads.get(target, current)
        window = integer_at(existing, "spec", "behavior", "scaleDown", "stabilizationWindowSeconds")
        uid = string_at(existing, "metadata", "uid")
        recent = self._recent.setdefault(uid, Recommendations())
        stable = recent.add(self._clock.now(), asked, timedelta(seconds=window or 0))
        number = asked if asked >= current else min(current, stable)
        if number > most:
            return most, Condition("ScalingLimited", "True", "TooManyReplicas", _TOO_MANY)
        if number < least:
            return least, Condition("ScalingLimited", "True", "TooFewReplicas", _TOO_FEW)
        return number, Condition("ScalingLimited", "False", "DesiredWithinRange", _WITHIN)

    async def _report(self, existing: JsonObject, conditions: tuple[Condition, ...]) -> None:
        updated = copy_object(existing)
        for condition in conditions:
            entries = derive_conditions(updated, condition, self._clock.now())
            ensure_object(updated, "status")["conditions"] = entries
        status = object_at(updated, "status")
        if status != value_at(existing, "status"):
            await self._client.patch(
                AUTOSCALERS,
                string_at(existing, "metadata", "name"),
                {"status": status},
                namespace=string_at(existing, "metadata", "namespace"),
                subresource="status",
            )


_UNABLE: Final = "the HPA controller was unable to get the target's current scale"
_ABLE: Final = "the HPA controller was able to get the target's current scale"
_ACTIVE: Final = (
    "the HPA was able to successfully calculate a replica count from cpu resource utilization "
    "(percentage of request)"
)
_NO_METRICS: Final = (
    "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get "
    "metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could "
    "not find the requested resource (get pods.metrics.k8s.io)"
)
_TOO_MANY: Final = "the desired replica count is more than the maximum replica count"
_TOO_FEW: Final = "the desired replica count is less than the minimum replica count"
_WITHIN: Final = "the desired count is within the acceptable range"
