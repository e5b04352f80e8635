"""The project plane of one admission request, and what its caches show of networking.

There is no fallback to another plane: a Workload must not be admitted by the Locations of another
project.
"""

from __future__ import annotations

from compute_api_types.validation import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    derive_unavailable,
    parse_project,
)
from compute_api_types.validation.facts import Cities
from compute_management_operator.admission.request import AdmissionRequest
from compute_management_operator.networking import served_cities
from compute_management_operator.planes import LOCATION, NETWORK, SINGLE
from compute_operator_kit.cache.optional_kinds import Off, OptionalKindsReader
from compute_operator_kit.cache.store import Caches
from compute_operator_kit.core.keys import PlaneName, Role
from compute_operator_kit.core.objects import Unreadable


def observe_plane(
    request: AdmissionRequest, caches: Caches, *, is_single: bool
) -> PlaneName | CannotDecide:
    """The plane of the project that the request names, if it is engaged here."""
    project = SINGLE if is_single else parse_project(request.extra)
    if isinstance(project, CannotDecide):
        return project
    plane = PlaneName(project)
    return plane if plane in caches.planes(Role.PROJECT) else derive_unavailable(project)


def observe_cities(
    caches: Caches, plane: PlaneName, networking: OptionalKindsReader
) -> Cities | None:
    """The cities that the cache shows; None where Locations are not watched, or not listed yet."""
    cities = served_cities(caches, plane, networking)
    if isinstance(cities, Off):
        return NETWORKING_OFF
    if isinstance(cities, Unreadable):
        return UNREAD if networking.has_answer(caches, plane, LOCATION) else None
    return cities


def are_networks_checked(
    caches: Caches, plane: PlaneName, networking: OptionalKindsReader
) -> bool | None:
    """Whether rights to networks are reviewed, also where the Networks cannot be listed; None where
    they are not watched, or not listed yet.
    """
    networks = networking.read(caches, plane, NETWORK)
    if isinstance(networks, Unreadable) and not networking.has_answer(caches, plane, NETWORK):
        return None
    return not isinstance(networks, Off)
