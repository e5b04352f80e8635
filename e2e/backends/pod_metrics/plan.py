"""Pods and PodMetrics of a cell that follow from its loads, as writes in an order. Pure.

```
Pods and metrics of what has ended  ─►  metrics of present Pods  ─►  new Pods  ─►  their metrics
```

The controller of autoscalers evaluates at any moment. In this order the Pods together never use
more than the load, so that a number never rises above what the load asks for; too low a number is
taken only after the stabilisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from compute_api_types.wire import JsonObject
from compute_sim_planes.client.rest import Resource
from e2e.backends.pod_metrics.definition import POD_METRICS
from e2e.backends.pod_metrics.stand_ins import (
    a_stand_in,
    a_status,
    deployment_uid_of,
    is_ready,
    is_running,
    is_stand_in,
    render_time,
    stands_for,
)
from e2e.backends.pod_metrics.usage import derive_usage, read_requests, read_targets
from e2e.world.objects import labels_of, name_of, namespace_of, number_at, objects_at, uid_of

PODS: Final = Resource("", "v1", "pods", "Pod")
WINDOW: Final = "0s"  # the sample is of now, or the Pod was not ready long enough to count

Key: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObservedPods:
    """The objects of one cell."""

    autoscalers: tuple[JsonObject, ...] = ()
    deployments: tuple[JsonObject, ...] = ()
    instances: tuple[JsonObject, ...] = ()
    pods: tuple[JsonObject, ...] = ()
    metrics: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Loads:
    """How many replicas the load of each deployment asks for, by its name; of one that is not
    named as many as its number says.
    """

    replicas: Mapping[str, int] = field(default_factory=dict[str, int])
    has_metrics: bool = True
    # Containers run; else a Pod is made for each running Instance.
    has_kubelets: bool = False


@dataclass(frozen=True, slots=True)
class WritePod:
    """A Pod that is made, with its status."""

    pod: JsonObject
    status: JsonObject


@dataclass(frozen=True, slots=True)
class WriteMetrics:
    """PodMetrics that are made or replaced."""

    metrics: JsonObject


@dataclass(frozen=True, slots=True)
class Remove:
    """An object that is deleted."""

    resource: Resource
    key: Key


Step: TypeAlias = WritePod | WriteMetrics | Remove


def plan(observed: ObservedPods, loads: Loads, now: datetime) -> Iterator[Step]:
    wanted = _wanted_pods(observed, loads)
    desired = _desired_metrics(observed, loads, wanted, now)
    present = {key_of(pod): pod for pod in observed.pods}
    measured = {key_of(one): one for one in observed.metrics}
    yield from _remove_ended(present, wanted, measured, desired)
    for key, one in desired.items():
        if key in measured and not _is_same(measured[key], one):
            yield WriteMetrics(one)
    made = [pod for key, pod in wanted.items() if present.get(key) is not pod]
    yield from (WritePod(pod, a_status(now)) for pod in made)
    yield from (WriteMetrics(one) for key, one in desired.items() if key not in measured)


def _remove_ended(
    present: Mapping[Key, JsonObject],
    wanted: Mapping[Key, JsonObject],
    measured: Mapping[Key, JsonObject],
    desired: Mapping[Key, JsonObject],
) -> Iterator[Remove]:
    for key, pod in present.items():
        if is_stand_in(pod) and wanted.get(key) is not pod:
            yield Remove(PODS, key)
    yield from (Remove(POD_METRICS, key) for key in measured if key not in desired)


def key_of(document: JsonObject) -> Key:
    return namespace_of(document), name_of(document)


def _wanted_pods(observed: ObservedPods, loads: Loads) -> dict[Key, JsonObject]:
    """The Pods that count: those of kubelets that are ready, or one for each running Instance."""
    scaled = {deployment_uid_of(one) for one in observed.autoscalers}
    present = {key_of(pod): pod for pod in observed.pods}
    if loads.has_kubelets:
        return {
            key: pod
            for key, pod in present.items()
            if deployment_uid_of(pod) in scaled and is_ready(pod)
        }
    wanted: dict[Key, JsonObject] = {}
    for instance in observed.instances:
        if deployment_uid_of(instance) in scaled and is_running(instance):
            key = key_of(instance)
            pod = present.get(key)
            # One without a status was made by a round that was cut short.
            is_kept = pod is not None and stands_for(pod, instance) and is_ready(pod)
            wanted[key] = pod if pod is not None and is_kept else a_stand_in(instance)
    return wanted


def _desired_metrics(
    observed: ObservedPods, loads: Loads, wanted: Mapping[Key, JsonObject], now: datetime
) -> dict[Key, JsonObject]:
    if not loads.has_metrics:
        return {}
    numbers = {uid_of(one): number_at(one, "spec", "replicas") for one in observed.deployments}
    desired: dict[Key, JsonObject] = {}
    for autoscaler in observed.autoscalers:
        uid, targets = deployment_uid_of(autoscaler), read_targets(autoscaler)
        pods = {key: pod for key, pod in wanted.items() if deployment_uid_of(pod) == uid}
        asked = loads.replicas.get(name_of(autoscaler), numbers.get(uid, 0) or len(pods))
        for key, pod in pods.items():
            usage = derive_usage(targets, read_requests(pod), asked, len(pods))
            desired[key] = a_pod_metrics(pod, {"web": usage}, now)
    return desired


def a_pod_metrics(
    pod: JsonObject, usage: Mapping[str, JsonObject], now: datetime, window: str = WINDOW
) -> JsonObject:
    """PodMetrics with the labels of the Pod, by which they are listed; `usage` by container."""
    return {
        "apiVersion": POD_METRICS.api_version,
        "kind": POD_METRICS.kind,
        "metadata": {
            "name": name_of(pod),
            "namespace": namespace_of(pod),
            "labels": labels_of(pod),
        },
        "timestamp": render_time(now),
        "window": window,
        "containers": [{"name": name, "usage": used} for name, used in usage.items()],
    }


def _is_same(measured: JsonObject, desired: JsonObject) -> bool:
    """Apart from the time of the sample, which no reader compares with its own."""
    return objects_at(measured, "containers") == objects_at(desired, "containers") and (
        labels_of(measured) == labels_of(desired)
    )
