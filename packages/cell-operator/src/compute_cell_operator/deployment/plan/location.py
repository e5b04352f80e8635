"""Resolution of the Location that a deployment is in. Pure (cell.md 4).

The first row that matches decides. A Location that was resolved once is kept as long as it serves
the city: a Location that is added later must not move a deployment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from compute_cell_operator.deployment.observe import ObservedDeployment
from compute_cell_operator.network.state import NetworkingState
from compute_operator_kit.core.json import JsonMapping
from compute_operator_kit.core.objects import Unreadable


@dataclass(frozen=True, slots=True)
class WrongCity:
    """Delivered to a cell of another city: nothing starts here."""


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Networking is off."""


@dataclass(frozen=True, slots=True)
class LocationUndecided:
    """Locations cannot be read; `last` is the one resolved before, or ""."""

    last: str


@dataclass(frozen=True, slots=True)
class NoLocation:
    """No Location serves the city."""


@dataclass(frozen=True, slots=True)
class Located:
    """In this Location; several `candidates` are ambiguous, and reported as an event."""

    name: str
    candidates: tuple[str, ...]


Resolution: TypeAlias = WrongCity | NotNeeded | LocationUndecided | NoLocation | Located


def resolve(observed: ObservedDeployment) -> Resolution:
    if observed.cell_city and observed.cell_city != observed.spec.city_code:
        return WrongCity()
    if observed.networking is NetworkingState.OFF:
        return NotNeeded()
    last = observed.status.location
    if observed.networking is NetworkingState.UNKNOWN or isinstance(observed.locations, Unreadable):
        return LocationUndecided(last)
    matching = observed.locations.matching
    if not matching:
        return NoLocation()
    return Located(last if last in matching else matching[0], matching)


def location_name(resolution: Resolution) -> str:
    """The Location of new Instances; "" for none."""
    match resolution:
        case Located(name, _):
            return name
        case LocationUndecided(last):
            return last
        case _:
            return ""


def refer_to_location(name: str) -> JsonMapping:
    """A Location in our own kinds: it is cluster-scoped, and their schema requires both keys."""
    return {"name": name, "namespace": ""}
