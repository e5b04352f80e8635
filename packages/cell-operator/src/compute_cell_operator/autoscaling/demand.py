"""Scale settings of a deployment, and the number of Instances that follows from them. Pure
(autoscaling.md 1).

```
not autoscaled                         minReplicas, whatever `spec.replicas` holds
autoscaled, a number is there          the number       ┐ within minReplicas…maxReplicas
autoscaled, none yet                   the slots found  ┘
```

Without the last line, switching autoscaling on would delete what runs above `minReplicas`. Settings
may have bypassed admission: with a fault in them nothing that runs is given up for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from compute_api_types.quantity import QuantityError, parse_quantity
from compute_operator_kit.core.json import Json, JsonObject, member_list, member_object, member_text

LARGEST: Final = 1000
"""The limit of admission on `maxReplicas` (api.md 12.3, rule 68)."""
RESOURCES: Final = frozenset({"cpu", "memory"})
_TARGETS: Final = ("averageUtilization", "averageValue")


@dataclass(frozen=True, slots=True)
class ScaleMetric:
    """One metric as it is stored; `resource` is "" where it names none."""

    resource: str
    utilization: int | None = None
    average_value: int | str | None = None
    has_value: bool = False  # a total, by which no autoscaler scales


@dataclass(frozen=True, slots=True)
class ScaleDemand:
    """How many Instances a deployment asks for."""

    min_replicas: int = 0
    max_replicas: int | None = None
    metrics: tuple[ScaleMetric, ...] = ()
    replicas: int = 0  # of the autoscaler; 0 where there is none yet

    @property
    def is_autoscaled(self) -> bool:
        return self.max_replicas is not None and bool(self.metrics)


NO_DEMAND: Final = ScaleDemand()


def read_demand(spec: JsonObject) -> ScaleDemand:
    settings = member_object(spec, "scaleSettings")
    return ScaleDemand(
        _number(settings, "minReplicas") or 0,
        _number(settings, "maxReplicas"),
        tuple(_read_metric(entry) for entry in member_list(settings, "metrics")),
        max(0, _number(spec, "replicas") or 0),
    )


def _read_metric(entry: Json) -> ScaleMetric:
    resource = member_object(entry, "resource") if isinstance(entry, dict) else {}
    target = member_object(resource, "target")
    average = target.get("averageValue")
    return ScaleMetric(
        member_text(resource, "name"),
        _number(target, "averageUtilization"),
        average if isinstance(average, str) or type(average) is int else None,
        has_value=target.get("value") is not None,
    )


def _number(members: JsonObject, name: str) -> int | None:
    value = members.get(name)
    return value if type(value) is int else None  # a boolean is no number


def derive_desired(demand: ScaleDemand, occupied: int) -> int:
    """How many Instances are to exist; `occupied`: the highest slot with an Instance, and one."""
    least = max(0, demand.min_replicas)
    if not demand.is_autoscaled:
        return least
    number = demand.replicas or occupied
    most = demand.max_replicas or 0
    # Bounds the wrong way round are a fault, for which nothing that runs is given up.
    return max(least, min(number, most) if most >= least else number)


def find_fault(demand: ScaleDemand) -> str:
    """Why no autoscaler can be made of the settings; "" where one can."""
    least, most = demand.min_replicas, demand.max_replicas or 0
    if most < least:
        return f"maxReplicas {most} is below minReplicas {least}"
    if most > LARGEST:
        return f"maxReplicas {most} is above {LARGEST}"
    return next((fault for metric in demand.metrics for fault in _faults(metric)), "")


def _faults(metric: ScaleMetric) -> Iterator[str]:
    if metric.resource not in RESOURCES:
        yield f'metric "{metric.resource}" is not known; use cpu or memory'
    named = f'metric "{metric.resource}": '
    if metric.has_value:
        yield f'{named}target "value" cannot be used; use averageValue or averageUtilization'
    if (metric.utilization is None) == (metric.average_value is None):
        yield f"{named}exactly one of {' and '.join(reversed(_TARGETS))} is needed"
    if metric.average_value is not None and not _is_quantity(metric.average_value):
        yield f'{named}averageValue "{metric.average_value}" is no quantity'


def _is_quantity(text: int | str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True
