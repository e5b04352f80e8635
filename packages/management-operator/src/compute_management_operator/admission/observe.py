"""The project plane of one admission request, and the cities that it serves, from caches.

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
from compute_management_operator.planes import NETWORK, SINGLE
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


def observe_cities(caches: Caches, plane: PlaneName, networking: OptionalKindsReader) -> Cities:
    cities = served_cities(caches, plane, networking)
    if isinstance(cities, Off):
        return NETWORKING_OFF
    return UNREAD if isinstance(cities, Unreadable) else cities


def are_networks_checked(caches: Caches, plane: PlaneName, networking: OptionalKindsReader) -> bool:
    """Whether rights to networks are reviewed; also where the Networks cannot be listed."""
    return not isinstance(networking.read(caches, plane, NETWORK), Off)
