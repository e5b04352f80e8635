"""Whether networking kinds of a project are consulted, and what they say (operations.md 1.4).

`auto` follows what the plane serves, kind by kind; `on` takes a kind that is not served for
unreadable; `off` never looks. Three answers that must not be confused:

```
a View        believe it
Off           every city counts as served, no network is looked for
Unreadable    nothing may be concluded, in particular nothing deleted
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from compute_api_types import labels, names
from compute_management_operator.kinds import LOCATION
from compute_operator_kit.cache import Caches, Serving, View
from compute_operator_kit.indexing import IndexFunction
from compute_operator_kit.keys import Kind, PlaneName
from compute_operator_kit.objects import Metadata, Unreadable
from compute_operator_kit.wire import JsonObject, member_object, member_text

LOCATIONS_BY_CITY: Final = "city"
"""Index of Locations: the city code they stand for."""


class Networking(StrEnum):
    """The setting."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Off:
    """Networking is off for a kind."""


def never(plane: PlaneName, kind: Kind) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True, slots=True)
class Consulting:
    """The setting, and where the plane's word is not taken yet (`networking_switch.py`)."""

    setting: Networking
    is_doubted: Callable[[PlaneName, Kind], bool] = never


def consult(
    caches: Caches, plane: PlaneName, kind: Kind, consulting: Consulting
) -> View | Unreadable | Off:
    """What the project says about a kind, if it is asked at all."""
    if consulting.setting is Networking.OFF:
        return Off()
    view = caches.view(plane, kind)
    if view.is_synced:
        return view
    is_gone = view.serving is Serving.NOT_SERVED and not consulting.is_doubted(plane, kind)
    return Off() if is_gone and consulting.setting is Networking.AUTO else Unreadable("NotSynced")


def served_cities(
    caches: Caches, plane: PlaneName, consulting: Consulting
) -> frozenset[str] | Unreadable | Off:
    """The city codes that Locations of the project stand for."""
    found = consult(caches, plane, LOCATION, consulting)
    if isinstance(found, Unreadable | Off):
        return found
    return frozenset(found.index_values(LOCATIONS_BY_CITY))


def city_code_of(location: JsonObject) -> str:
    """The city a Location stands for, "" where it names none that could ever be routed to."""
    topology = member_object(member_object(location, "spec"), "topology")
    code = member_text(topology, labels.TOPOLOGY_CITY_CODE)
    return code if names.is_routable_city(code) else ""


def index_by_city(_: Metadata, body: JsonObject) -> Iterable[str]:
    code = city_code_of(body)
    return (code,) if code else ()


LOCATION_INDEXES: Final[dict[str, IndexFunction]] = {LOCATIONS_BY_CITY: index_by_city}
