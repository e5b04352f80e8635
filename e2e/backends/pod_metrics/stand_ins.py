"""Pods that stand for running Instances on planes without kubelets. Pure.

The controller of autoscalers counts Pods by their labels, phase and condition Ready, and takes a
Pod's request from its spec; no container has to run. They have no node, so that a deletion removes
them at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from compute_api_types import labels
from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.kinds import INSTANCE
from e2e.world.objects import (
    condition_of,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    text_at,
    uid_of,
    value_at,
)

STAND_IN: Final = "e2e.compute.datumapis.com/stand-in"
REQUESTS: Final[JsonObject] = {"cpu": "100m", "memory": "128Mi"}
# A Pod that became ready a moment ago is left out of the controller's arithmetic.
READY_SINCE: Final = timedelta(hours=1)


def is_running(instance: JsonObject) -> bool:
    is_stopped = is_deleting(instance) or value_at(instance, "status", "suspended") is True
    return not is_stopped and condition_of(instance, "Available").status == "True"


def is_stand_in(pod: JsonObject) -> bool:
    return STAND_IN in labels_of(pod)


def stands_for(pod: JsonObject, instance: JsonObject) -> bool:
    return labels_of(pod).get(labels.INSTANCE_UID) == uid_of(instance)


def a_stand_in(instance: JsonObject) -> JsonObject:
    """The Pod of a running Instance, with the labels that a provider sets."""
    linking = {name: text for name, text in labels_of(instance).items() if name in _LINKING}
    owner: JsonObject = {
        "apiVersion": INSTANCE.api_version,
        "kind": INSTANCE.name,
        "name": name_of(instance),
        "uid": uid_of(instance),
    }
    confined: JsonObject = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    container: JsonObject = {
        "name": "web",
        "image": "stand-in",
        "resources": {"requests": REQUESTS},
        "securityContext": confined,
    }
    own: dict[str, JsonValue] = {labels.INSTANCE_UID: uid_of(instance), STAND_IN: ""}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(instance),
            "namespace": namespace_of(instance),
            "labels": {**linking, **own},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [container],
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def a_status(now: datetime) -> JsonObject:
    """Ready for long enough to be counted."""
    since = render_time(now - READY_SINCE)
    ready: JsonObject = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {"phase": "Running", "startTime": since, "conditions": [ready]}


def is_ready(pod: JsonObject) -> bool:
    return not is_deleting(pod) and condition_of(pod, "Ready").status == "True"


def deployment_uid_of(document: JsonObject) -> str:
    return text_at(document, "metadata", "labels", labels.WORKLOAD_DEPLOYMENT_UID)


def render_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


_LINKING: Final = frozenset(labels.LINKING_LABELS)
