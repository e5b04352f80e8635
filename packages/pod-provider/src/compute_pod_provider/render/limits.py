"""Limits of the containers of one Instance: its size, divided. Pure (pod-provider.md 2).

The size of the type is that of the whole Instance, as its claim counts it. One container gets all
of it. Of several, stated limits are taken off and the rest is divided evenly:

```
type 1000m, containers a (limit 400m), b, c     a 400m   b 300m   c 300m
type 1000m, containers a, b, c                  a 334m   b 333m   c 333m
```

A container without a limit could take the whole node; one that gets less than a unit is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from compute_api_types.quantity import MEBI, MILLI, QuantityError, parse_quantity, round_up
from compute_api_types.sizes import Size
from compute_api_types.v1alpha.runtime import Container, InstanceResources

CPU: Final = "cpu"
MEMORY: Final = "memory"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One resource with its unit and the suffix of that unit."""

    name: str
    unit: Fraction
    suffix: str


DIMENSIONS: Final = (Dimension(CPU, MILLI, "m"), Dimension(MEMORY, MEBI, "Mi"))


def divide_size(
    size: Size, resources: InstanceResources, containers: Sequence[Container]
) -> tuple[dict[str, str], ...] | None:
    """The limits of each container, in order; None where they ask for more than the type has."""
    totals = {CPU: size.millicores, MEMORY: size.mebibytes}
    limits = tuple[dict[str, str], ...]({} for _ in containers)
    for dimension in DIMENSIONS:
        total = _total(totals[dimension.name], resources, dimension)
        shares = None if total is None else _divide(total, containers, dimension)
        if shares is None:
            return None
        for limit, share in zip(limits, shares, strict=True):
            limit[dimension.name] = share
    return limits


def _total(size: int, resources: InstanceResources, dimension: Dimension) -> int | None:
    """Units of the whole Instance: its own request, else its type; None above the type."""
    asked = _read(resources.requests, dimension.name)
    if asked is None:
        return size
    units = round_up(asked, dimension.unit)
    return units if units <= size else None


def _divide(
    total: int, containers: Sequence[Container], dimension: Dimension
) -> tuple[str, ...] | None:
    stated = [_stated(container, dimension.name) for container in containers]
    taken = sum((amount for amount in stated if amount is not None), Fraction(0))
    if taken > total * dimension.unit:
        return None
    rest = int((total * dimension.unit - taken) // dimension.unit)
    others = stated.count(None)
    if rest < others:  # each of them needs a unit at least
        return None
    share, remainder = divmod(rest, others) if others else (0, 0)
    shares: list[str] = []
    for container, amount in zip(containers, stated, strict=True):
        if amount is not None:
            shares.append(_stated_text(container, dimension.name))
            continue
        shares.append(f"{share + remainder}{dimension.suffix}")
        remainder = 0  # to the first of them
    return tuple(shares)


def _stated(container: Container, dimension: str) -> Fraction | None:
    return _read(container.resources.limits if container.resources else None, dimension)


def _stated_text(container: Container, dimension: str) -> str:
    limits = container.resources.limits if container.resources else None
    return str((limits or {}).get(dimension, ""))


def _read(amounts: Mapping[str, object] | None, dimension: str) -> Fraction | None:
    """As claims read it: illegible, or not above zero, is not stated."""
    if amounts is None or dimension not in amounts:
        return None
    try:
        amount = parse_quantity(amounts[dimension])
    except QuantityError:
        return None
    return amount if amount > 0 else None
