"""City codes that the Locations of a project stand for (operations.md 1.4).

Networking kinds are optional: where they are off every city counts as served, and where they cannot
be read nothing may be concluded, in particular no deployment deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compute_api_types import labels, names
from compute_management_operator.planes import LOCATION
from compute_operator_kit.cache.indexers import IndexFunction
from compute_operator_kit.cache.lister import Caches
from compute_operator_kit.cache.optional_kinds import Off, OptionalKindsReader
from compute_operator_kit.core.json import JsonObject, member_object, member_text
from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.core.objects import Metadata, Unreadable

LOCATIONS_BY_CITY: Final = "city"
"""Index of Locations: the city code they stand for."""


def served_cities(
    caches: Caches, plane: PlaneName, networking: OptionalKindsReader
) -> frozenset[str] | Unreadable | Off:
    locations = networking.read(caches, plane, LOCATION)
    if isinstance(locations, Unreadable | Off):
        return locations
    return frozenset(locations.index_values(LOCATIONS_BY_CITY))


def city_code_of(location: JsonObject) -> str:
    """The city a Location stands for, "" where it names none that could ever be routed to."""
    topology = member_object(member_object(location, "spec"), "topology")
    code = member_text(topology, labels.TOPOLOGY_CITY_CODE)
    return code if names.is_routable_city(code) else ""


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    code = city_code_of(body)
    return (code,) if code else ()


LOCATION_INDEXES: Final[dict[str, IndexFunction]] = {LOCATIONS_BY_CITY: index_by_city}
