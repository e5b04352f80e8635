"""Reads caches of this replica for one admission: the plane it is about, and the cities served."""

from __future__ import annotations

from compute_api_types.validation import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    derive_unavailable,
    parse_project,
)
from compute_api_types.validation.facts import Cities
from compute_management_operator.admission.request import Request
from compute_management_operator.kinds import NETWORK
from compute_management_operator.networking import (
    Consulting,
    Off,
    consult,
    served_cities,
)
from compute_management_operator.plane_names import SINGLE
from compute_operator_kit.cache import Caches
from compute_operator_kit.keys import PlaneName, Role
from compute_operator_kit.objects import Unreadable


def observe_plane(request: Request, caches: Caches, *, is_single: bool) -> PlaneName | CannotDecide:
    """The one plane whose facts decide; there is no other to fall back to."""
    project = SINGLE if is_single else parse_project(request.extra)
    if isinstance(project, CannotDecide):
        return project
    plane = PlaneName(project)
    return plane if plane in caches.planes(Role.PROJECT) else derive_unavailable(project)


def observe_cities(caches: Caches, plane: PlaneName, consulting: Consulting) -> Cities:
    found = served_cities(caches, plane, consulting)
    if isinstance(found, Off):
        return NETWORKING_OFF
    return UNREAD if isinstance(found, Unreadable) else found


def are_networks_checked(caches: Caches, plane: PlaneName, consulting: Consulting) -> bool:
    """Whether the project has networks to ask about; one it cannot list still has rights."""
    return not isinstance(consult(caches, plane, NETWORK, consulting), Off)
