"""Cost of api-types for a service: its import, and parsing a Workload from a watch.

Both are ratios to a reference in the same run, alternating with it, each the best of several
rounds: a busy machine makes rounds slower, never faster.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final

import orjson

from compute_api_types import JsonObject, JsonValue, Workload
from tools.bench import Row

IMPORT_TARGET: Final = 3.0
PARSE_TARGET: Final = 6.0
IMPORT_ROUNDS: Final = 15
PARSE_ROUNDS: Final = 200
PARSES_PER_ROUND: Final = 50


def run() -> list[Row]:
    return [*_imports(), *_parses()]


def _imports() -> list[Row]:
    everything = "import compute_api_types as c; [getattr(c, name) for name in c.__all__]"
    pydantic, ours, all_names = _best_of(
        IMPORT_ROUNDS,
        *(_fresh_interpreter(each) for each in ("import pydantic", _OURS, everything)),
    )
    return [
        _row("import compute_api_types", ours, pydantic, "import pydantic", IMPORT_TARGET),
        # Informative: a service that uses every model also pays for pydantic's classes.
        _row("import of every public name", all_names, pydantic, "import pydantic", None),
    ]


_OURS: Final = "import compute_api_types"


def _fresh_interpreter(program: str) -> Callable[[], object]:
    # -I: isolated from the caller's environment.
    command = [sys.executable, "-I", "-c", program]
    return lambda: subprocess.run(command, check=True)


def _parses() -> list[Row]:
    text = orjson.dumps(a_realistic_workload())
    # The first parse builds the validator, which is start-up cost.
    Workload.read_json(text)
    document = json.loads(text)
    plain, from_json, from_document, written = _best_of(
        PARSE_ROUNDS,
        _repeated(lambda: orjson.loads(text)),
        _repeated(lambda: Workload.read_json(text)),
        _repeated(lambda: Workload.read(document)),
        _repeated(Workload.read(document).to_document),
    )
    size = f"orjson.loads, {len(text)} bytes"
    return [
        _row("Workload.read_json", from_json, plain, size, PARSE_TARGET),
        _row("Workload.read", from_document, plain, size, None),
        _row("Workload.to_document", written, plain, size, None),
    ]


def _repeated(act: Callable[[], object]) -> Callable[[], object]:
    def many() -> None:
        for _ in range(PARSES_PER_ROUND):
            act()

    return many


def _best_of(rounds: int, *acts: Callable[[], object]) -> list[float]:
    """The shortest time of each function in seconds; they alternate in every round."""
    best = [float("inf")] * len(acts)
    for _ in range(rounds):
        for index, act in enumerate(acts):
            begin = time.perf_counter()
            act()
            best[index] = min(best[index], time.perf_counter() - begin)
    return best


def _row(measure: str, value: float, base: float, compared_to: str, target: float | None) -> Row:
    ratio = value / base
    scale, unit = (1e3, "ms") if measure.startswith("import") else (1e6 / PARSES_PER_ROUND, "µs")
    holds = target is None or ratio <= target
    return Row(measure, value * scale, unit, compared_to, ratio, target, holds)


def a_realistic_workload() -> JsonObject:
    """About 4 KB as an API server serves it: two containers, two cities, a status."""
    return {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": {
            "name": "storefront",
            "namespace": "default",
            "uid": "6d0f6c0e-6f5e-4c3b-9a0a-1f2d3c4b5a69",
            "resourceVersion": "184467",
            "generation": 7,
            "creationTimestamp": "2026-06-20T09:00:00Z",
            "labels": {"app": "storefront", "team": "retail", "tier": "web"},
            "finalizers": ["compute.datumapis.com/workload-controller"],
            "managedFields": [
                {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
                {"manager": "compute-workload", "operation": "Update", "subresource": "status"},
            ],
        },
        "spec": {
            "template": {
                "metadata": {
                    "labels": {"app": "storefront"},
                    "annotations": {"compute.datumapis.com/restartedAt": "2026-06-20T09:00:00Z"},
                },
                "spec": {
                    "runtime": {
                        "resources": {"instanceType": "datumcloud/d1-standard-2"},
                        "sandbox": {
                            "containers": [_container("web", 8080), _container("cache", 6379)],
                            "imagePullSecrets": [{"name": "registry-example-net"}],
                        },
                    },
                    "networkInterfaces": [
                        {"network": {"name": "default"}, "networkPolicy": {"ingress": [_INGRESS]}}
                    ],
                    "volumes": [_volume("web-data"), _volume("cache-data")],
                },
            },
            "placements": [_placement("texas", "DFW", 3), _placement("london", "LHR", 2)],
        },
        "status": {
            "conditions": [_condition("Available"), _condition("Ready")],
            "deployments": 2,
            **_counters(5),
            "observedGeneration": 7,
            "placements": [_placement_status("london", 2), _placement_status("texas", 3)],
        },
    }


_INGRESS: Final[JsonObject] = {
    "from": [{"ipBlock": {"cidr": "198.51.100.0/24", "except": ["198.51.100.128/25"]}}],
    "ports": [{"port": 8080, "protocol": "TCP"}, {"port": "metrics", "protocol": "TCP"}],
}


def _container(name: str, port: int) -> JsonObject:
    return {
        "name": name,
        "image": f"registry.example.net/shop/{name}:2.3.1",
        "command": [f"/usr/bin/{name}"],
        "args": ["--listen", f":{port}", "--config", f"/etc/{name}/config.yaml"],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "REGION_ENDPOINT", "value": "https://region.example.net/v2"},
            {
                "name": "API_TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "storefront-api", "key": "token"}},
            },
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "volumeAttachments": [{"name": f"{name}-data", "mountPath": f"/var/lib/{name}"}],
        "ports": [{"name": "main", "port": port}, {"name": "metrics", "port": 9090}],
    }


def _volume(name: str) -> JsonObject:
    disk: JsonObject = {
        "type": "pd-standard",
        "resources": {"requests": {"storage": "20Gi"}},
        "populator": {"filesystem": {"type": "ext4"}},
    }
    return {"name": name, "disk": {"template": {"spec": disk}}}


def _placement(name: str, city: str, replicas: int) -> JsonObject:
    settings: JsonObject = {
        "minReplicas": replicas,
        "instanceManagementPolicy": "OrderedReady",
    }
    return {"name": name, "cityCodes": [city], "scaleSettings": settings}


def _condition(condition_type: str) -> JsonObject:
    return {
        "type": condition_type,
        "status": "False",
        "reason": "QuotaNotGranted",
        "message": "1 of 3 desired instances pending quota: Insufficient quota resources.",
        "lastTransitionTime": "2026-06-20T09:00:04Z",
        "observedGeneration": 7,
    }


def _counters(count: int) -> JsonObject:
    counted: dict[str, JsonValue] = dict.fromkeys(
        ("replicas", "currentReplicas", "updatedReplicas", "desiredReplicas", "readyReplicas"),
        count,
    )
    return counted


def _placement_status(name: str, count: int) -> JsonObject:
    conditions: list[JsonValue] = [_condition("Available"), _condition("Ready")]
    return {"name": name, "conditions": conditions, **_counters(count)}
