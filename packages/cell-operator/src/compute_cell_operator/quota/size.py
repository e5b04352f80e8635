"""The size of an Instance: the CPU and memory that its claim requests. Pure (quota.md B2).

An Instance must not run with more than it claimed. CPU and memory are derived each on its own, from
the first source that states the dimension:

```
limits of the containers   if every container states this dimension: their sum
requests of the instance   runtime.resources.requests
the catalogue              by instance type
```

and are at least the sum of all stated limits: two containers, one with a limit of 4Gi, take 4096
MiB or more for any type. Amounts are exact until they are rounded up to whole units. An amount that
is illegible or not above zero is not stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from compute_api_types.quantity import MEBI, MILLI, QuantityError, parse_quantity, round_up
from compute_api_types.sizes import CATALOGUE, Size
from compute_operator_kit.core.json import JsonObject, member_list, member_object, member_text

CPU: Final = "cpu"
MEMORY: Final = "memory"
_UNITS: Final = {CPU: MILLI, MEMORY: MEBI}
_LARGEST: Final = 2**63 - 1  # amounts of a claim are int64


@dataclass(frozen=True, slots=True)
class UnknownSize:
    """No source states a dimension, so nothing can be claimed."""

    instance_type: str

    @property
    def requests(self) -> Mapping[str, int]:
        return MappingProxyType({})


def derive_size(spec: JsonObject) -> Size | UnknownSize:
    """The size of an Instance with this spec, which may have bypassed admission."""
    runtime = member_object(spec, "runtime")
    resources = member_object(runtime, "resources")
    instance_type = member_text(resources, "instanceType")
    listed = CATALOGUE.get(instance_type)
    cpu = _derive(runtime, CPU, listed.millicores if listed else None)
    memory = _derive(runtime, MEMORY, listed.mebibytes if listed else None)
    if cpu is None or memory is None or max(cpu, memory) > _LARGEST:
        return UnknownSize(instance_type)
    return Size(cpu, memory)


def _derive(runtime: JsonObject, dimension: str, listed: int | None) -> int | None:
    """One dimension in its unit; None where no source states it."""
    limits = tuple(_limits(runtime, dimension))
    stated = [limit for limit in limits if limit is not None]
    floor = round_up(sum(stated, Fraction(0)), _UNITS[dimension])
    if limits and len(stated) == len(limits):
        return floor
    asked = _read(member_object(member_object(runtime, "resources"), "requests"), dimension)
    chosen = listed if asked is None else round_up(asked, _UNITS[dimension])
    return None if chosen is None else max(chosen, floor)


def _limits(runtime: JsonObject, dimension: str) -> Iterator[Fraction | None]:
    """The limit of each container; None where it states none."""
    for container in member_list(member_object(runtime, "sandbox"), "containers"):
        resources = member_object(container, "resources") if isinstance(container, dict) else {}
        yield _read(member_object(resources, "limits"), dimension)


def _read(amounts: JsonObject, dimension: str) -> Fraction | None:
    if dimension not in amounts:
        return None
    try:
        amount = parse_quantity(amounts.get(dimension))
    except QuantityError:
        return None
    return amount if amount > 0 else None
