"""PodMetrics of `metrics.k8s.io` as a CRD: an API server serves them without another server.

The controller of autoscalers lists PodMetrics by the labels of Pods and accepts JSON, which is all
that a CRD needs. A group of `k8s.io` needs the annotation that says its definition is no standard.
"""

from __future__ import annotations

from typing import Final

from compute_api_types.wire import JsonObject
from compute_sim_planes.client.rest import Resource

POD_METRICS: Final = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
_USAGE: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "string"}}
_CONTAINER: Final[JsonObject] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "usage": _USAGE},
}
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "timestamp": {"type": "string", "format": "date-time"},
        "window": {"type": "string"},
        "containers": {"type": "array", "items": _CONTAINER},
    },
}


def a_definition() -> JsonObject:
    """The CustomResourceDefinition of PodMetrics."""
    version: JsonObject = {
        "name": POD_METRICS.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _SCHEMA},
    }
    names: JsonObject = {
        "plural": POD_METRICS.plural,
        "singular": POD_METRICS.kind.lower(),
        "kind": POD_METRICS.kind,
        "listKind": f"{POD_METRICS.kind}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{POD_METRICS.plural}.{POD_METRICS.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": POD_METRICS.group,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
