"""Samples of a kubelet's `/metrics/resource`, and what containers used between two of them. Pure.

```
container_cpu_usage_seconds_total{container="web",namespace="ns-1",pod="web-0"} 1.5 1772323200250
container_memory_working_set_bytes{container="web",namespace="ns-1",pod="web-0"} 1.2e+07 …
```

A kubelet repeats its last sample until it has another, about every ten seconds: a rate over two
equal times would be a division by zero, or show a busy container as idle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final, NamedTuple

from compute_api_types.wire import JsonObject
from e2e.backends.pod_metrics.usage import render_quantity

CPU: Final = "container_cpu_usage_seconds_total"
MEMORY: Final = "container_memory_working_set_bytes"
_LINE: Final = re.compile(r"(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)(?: (?P<at>\d+))?")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ContainerKey(NamedTuple):
    """One container of a Pod."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class ContainerSample:
    """Seconds of CPU since the start of a container, and its memory, at a time."""

    cpu: Fraction = Fraction()
    memory: Fraction = Fraction()
    at: datetime = _START


def parse_samples(text: str) -> dict[ContainerKey, ContainerSample]:
    """The samples of containers; other lines are left out."""
    samples: dict[ContainerKey, ContainerSample] = {}
    for line in _LINE.finditer(text):
        if line["name"] not in {CPU, MEMORY}:
            continue
        named = dict[str, str](_LABEL.findall(line["labels"]))
        names = (named.get(name, "") for name in ContainerKey._fields)
        key = ContainerKey(*names)
        sample = samples.get(key, ContainerSample())
        if line["name"] == MEMORY:
            samples[key] = replace(sample, memory=Fraction(line["value"]))
        else:
            at = _START + timedelta(milliseconds=int(line["at"] or 0))
            samples[key] = replace(sample, cpu=Fraction(line["value"]), at=at)
    return samples


def derive_rate(before: ContainerSample, after: ContainerSample) -> JsonObject | None:
    """What a container used between two samples; None where they tell nothing: one and the same, or
    of two lives of the container.
    """
    if after.at <= before.at or after.cpu < before.cpu:
        return None
    seconds = Fraction((after.at - before.at) / timedelta(milliseconds=1)) / 1000
    cores = (after.cpu - before.cpu) / seconds
    return {
        "cpu": render_quantity("cpu", cores),
        "memory": render_quantity("memory", after.memory),
    }
