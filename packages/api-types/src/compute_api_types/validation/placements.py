"""Rules 45–48, 62 and 63: where instances run. What runs there is in `scale_settings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute_api_types.validation.document import as_list, as_object, as_text
from compute_api_types.validation.errors import duplicate, not_supported, required
from compute_api_types.validation.names import review_name
from compute_api_types.validation.scale_settings import review_scale_settings

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors


def review_placements(spec: Node, known_cities: frozenset[str] | None) -> Errors:
    """The placements of a Workload; without known cities every code counts as served."""
    if not as_list(spec.content.get("placements")):  # 45
        yield required(spec.path.field("placements"), "a Workload runs in at least one place")
    names: set[str] = set()
    cities: set[str] = set()
    for placement in spec.elements("placements"):
        yield from review_name(placement, "a placement has a name")  # 46
        name = placement.text("name")
        if name and name in names:  # 62
            yield duplicate(placement.path.field("name"), name)
        names.add(name)
        yield from _review_cities(placement, cities, known_cities)
        yield from review_scale_settings(placement.section("scaleSettings"))


def _review_cities(placement: Node, seen: set[str], known: frozenset[str] | None) -> Errors:
    if not as_list(placement.content.get("cityCodes")):  # 47
        yield required(placement.path.field("cityCodes"), "a placement names at least one city")
    for city in placement.texts("cityCodes"):
        if known is not None and city.value not in known:  # 48
            yield not_supported(city.path, city.value, sorted(known))
        # The code becomes part of a name, where case is lost.
        if city.value.lower() in seen:  # 63
            yield duplicate(city.path, city.value)
        seen.add(city.value.lower())


def named_cities(spec: Node) -> frozenset[str]:
    """Every code of a Workload. Only values are read: a list may hold a megabyte of them."""
    placements = map(as_object, as_list(spec.content.get("placements")))
    lists = (as_list(placement.get("cityCodes")) for placement in placements if placement)
    return frozenset(as_text(code) for codes in lists for code in codes)
