"""What each Pod of an autoscaled deployment uses, so that the load asks for a given number. Pure.

```
target 60 % of a request of 100m, load 4, 2 Pods      each uses (4 - 0.2) x 60m / 2 = 114m
controller: 228m of 200m is 114 %, 114 / 60 x 2 Pods = 3.8, rounded up: 4
```

A controller rounds up, so a load that asked for the number exactly would give one more by the last
digit of a fraction; a fifth of a Pod less never does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from compute_api_types.quantity import parse_quantity
from compute_api_types.wire import JsonObject
from e2e.world.objects import number_at, object_at, objects_at, text_at

RESOURCES: Final = ("cpu", "memory")
LESS: Final = Fraction(1, 5)
NANO: Final = 10**9
NOTHING: Final = Fraction()


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """What a Pod is to use of a resource: per cent of its request, or an amount."""

    resource: str
    utilization: int = 0
    amount: Fraction = NOTHING

    def of_pod(self, requests: Mapping[str, Fraction]) -> Fraction:
        if not self.utilization:
            return self.amount
        return requests.get(self.resource, NOTHING) * self.utilization / 100


def read_targets(autoscaler: JsonObject) -> tuple[MetricTarget, ...]:
    """The targets of a HorizontalPodAutoscaler by resources; others are left out."""
    return tuple(
        _read_target(object_at(metric, "resource"))
        for metric in objects_at(autoscaler, "spec", "metrics")
        if text_at(metric, "resource", "name") in RESOURCES
    )


def _read_target(resource: JsonObject) -> MetricTarget:
    name, target = text_at(resource, "name"), object_at(resource, "target")
    if amount := text_at(target, "averageValue"):
        return MetricTarget(name, amount=parse_quantity(amount))
    return MetricTarget(name, number_at(target, "averageUtilization"))


def derive_usage(
    targets: tuple[MetricTarget, ...], requests: Mapping[str, Fraction], load: int, pods: int
) -> JsonObject:
    """What one of so many Pods uses of each resource, as quantities."""
    used = dict[str, Fraction](cpu=NOTHING, memory=NOTHING)
    for target in targets:
        used[target.resource] = max(load - LESS, NOTHING) * target.of_pod(requests) / pods
    return {name: render_quantity(name, amount) for name, amount in used.items()}


def render_quantity(resource: str, amount: Fraction) -> str:
    """CPU in billionths of a core, memory in bytes."""
    return f"{math.ceil(amount * NANO)}n" if resource == "cpu" else str(math.ceil(amount))


def read_requests(pod: JsonObject) -> dict[str, Fraction]:
    """What the containers of a Pod request together."""
    requests = dict[str, Fraction](cpu=NOTHING, memory=NOTHING)
    for container in objects_at(pod, "spec", "containers"):
        for name in RESOURCES:
            if text := text_at(container, "resources", "requests", name):
                requests[name] += parse_quantity(text)
    return requests
