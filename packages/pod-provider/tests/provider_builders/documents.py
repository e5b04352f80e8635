"""Documents of Instances and Pods as an API server and kubelet have them."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Final

from compute_api_types import labels
from compute_api_types.meta import format_timestamp
from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import ObservedInstance, read_instance
from compute_pod_provider.options import PodOptions
from compute_pod_provider.pod_facts import ObservedPod, read_pod
from compute_pod_provider.render import render
from compute_pod_provider.render.refusal import Refusal

NAMESPACE: Final = "ns-1f0a2b3c-4d5e-4f60-8a7b-9c0d1e2f3a4b"
NOW: Final = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
TYPE: Final = "datumcloud/d1-standard-2"
FINALIZER: Final = labels.POD_PROVIDER_FINALIZER
OPTIONS: Final = PodOptions()


def a_container(name: str = "main", **members: JsonValue) -> JsonObject:
    return {"name": name, "image": f"registry.example.com/{name}:ok", **members}


def a_spec(*containers: JsonObject, **members: JsonValue) -> JsonObject:
    return {
        "runtime": {
            "resources": {"instanceType": TYPE},
            "sandbox": {"containers": [*(containers or (a_container(),))]},
        },
        "networkInterfaces": [{"network": {"name": "default"}}],
        "controller": {"templateHash": "hash-1"},
        **members,
    }


def an_instance(
    name: str = "web-dfw-0",
    *,
    spec: JsonObject | None = None,
    finalizers: tuple[str, ...] = (FINALIZER,),
    gates: tuple[str, ...] = (),
    status: JsonObject | None = None,
    generation: int = 1,
    deleted: bool = False,
) -> JsonObject:
    wanted = deepcopy(a_spec() if spec is None else spec)
    if gates:
        controller = wanted.setdefault("controller", {"templateHash": "hash-1"})
        assert isinstance(controller, dict)
        controller["schedulingGates"] = [{"name": gate} for gate in gates]
    pod_labels: JsonObject = {key: f"{place}" for place, key in enumerate(labels.LINKING_LABELS)}
    metadata: JsonObject = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "generation": generation,
        "labels": pod_labels | {"tenant": "label"},
        "finalizers": [*finalizers],
    }
    if deleted:
        metadata["deletionTimestamp"] = format_timestamp(NOW)
    document: JsonObject = {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Instance",
        "metadata": metadata,
        "spec": wanted,
    }
    if status is not None:
        document["status"] = status
    return document


def observed(document: JsonObject) -> ObservedInstance:
    return read_instance(document)


def a_pod_document(
    instance: JsonObject | None = None,
    *,
    age: timedelta = timedelta(seconds=5),
    **status: JsonValue,
) -> JsonObject:
    """The Pod that the provider makes of the Instance, with a status."""
    rendered = render(read_instance(instance or an_instance()), OPTIONS)
    assert not isinstance(rendered, Refusal)
    metadata = rendered["metadata"]
    assert isinstance(metadata, dict)
    metadata |= {"uid": "uid-of-pod", "creationTimestamp": format_timestamp(NOW - age)}
    rendered["status"] = {"phase": "Pending", **status}
    return rendered


def a_pod(
    instance: JsonObject | None = None,
    *,
    age: timedelta = timedelta(seconds=5),
    **status: JsonValue,
) -> ObservedPod:
    return read_pod(a_pod_document(instance, age=age, **status))


def waiting(reason: str, message: str = "", name: str = "main", **members: JsonValue) -> JsonObject:
    return {
        "name": name,
        "state": {"waiting": {"reason": reason, "message": message}},
        "restartCount": 0,
        **members,
    }


def running(
    since: datetime = NOW - timedelta(minutes=1),
    name: str = "main",
    restarts: int = 0,
    **members: JsonValue,
) -> JsonObject:
    return {
        "name": name,
        "state": {"running": {"startedAt": format_timestamp(since)}},
        "restartCount": restarts,
        "ready": True,
        **members,
    }


def ended(reason: str = "Error", code: int = 1, message: str = "") -> JsonObject:
    return {"terminated": {"reason": reason, "exitCode": code, "message": message}}


def conditions_of(**states: str) -> list[JsonValue]:
    return [{"type": name, "status": state} for name, state in states.items()]


READY: Final = conditions_of(PodScheduled="True", Ready="True", ContainersReady="True")


def a_running_pod(
    *containers: JsonObject, instance: JsonObject | None = None, **members: JsonValue
) -> ObservedPod:
    status: JsonObject = {
        "phase": "Running",
        "conditions": READY,
        "containerStatuses": [*(containers or (running(),))],
        "podIPs": [{"ip": "10.0.0.7"}],
        **members,
    }
    return read_pod(a_pod_document(instance) | {"status": status})
