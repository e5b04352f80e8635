"""Which Location a deployment is in. Pure (cell.md 4).

The first row that matches decides. A Location that was resolved once is kept as long as it serves
the city: a new one never moves a deployment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from compute_cell_operator.deployment.observe import Seen
from compute_cell_operator.network.state import State
from compute_operator_kit.objects import Unreadable
from compute_operator_kit.wire import JsonMapping


@dataclass(frozen=True, slots=True)
class WrongCity:
    """Delivered to a cell of another city: nothing starts here."""


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Networking is off."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Locations cannot be read; `last` is what was resolved before, or ""."""

    last: str


@dataclass(frozen=True, slots=True)
class NoLocation:
    """No Location serves the city."""


@dataclass(frozen=True, slots=True)
class Located:
    """Here; `candidates` has several names where somebody should decide."""

    name: str
    candidates: tuple[str, ...]


Resolution: TypeAlias = WrongCity | NotNeeded | Undecided | NoLocation | Located


def resolve(seen: Seen) -> Resolution:
    if seen.cell_city and seen.cell_city != seen.city_code:
        return WrongCity()
    if seen.networking is State.OFF:
        return NotNeeded()
    if seen.networking is State.UNKNOWN or isinstance(seen.locations, Unreadable):
        return Undecided(seen.last_location)
    matching = seen.locations.matching
    if not matching:
        return NoLocation()
    kept = seen.last_location if seen.last_location in matching else matching[0]
    return Located(kept, matching)


def location_name(resolution: Resolution) -> str:
    """What new Instances are given; "" for none."""
    match resolution:
        case Located(name, _):
            return name
        case Undecided(last):
            return last
        case _:
            return ""


def refer_to_location(name: str) -> JsonMapping:
    """A Location in our own kinds: it is cluster-scoped, and their schema requires both keys."""
    return {"name": name, "namespace": ""}
