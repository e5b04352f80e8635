"""Facts that the admission rules need from the plane of the request: cities served, rights.

The caller of the rules reads them. "Could not read" is a value of its own, because it must end in
"cannot decide"; an empty list would refuse every city (`docs/spec/api.md` 12.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from compute_api_types.labels import TOPOLOGY_CITY_CODE
from compute_api_types.names import is_routable_city
from compute_api_types.validation.document import root
from compute_api_types.validation.rendering import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compute_api_types.validation.document import Document

SERVER_ERROR: Final = 500


class Review(Enum):
    """The answer to one SubjectAccessReview: `use` of a network, `get` of a ConfigMap or Secret."""

    ALLOWED = auto()
    DENIED = auto()
    FAILED = auto()


class Unknown(Enum):
    """Why there are no facts of a kind."""

    NETWORKING_OFF = auto()
    """Not served or switched off: every city counts as served, every network as usable."""
    UNREAD = auto()
    """Not needed, or the read failed; the rules distinguish the two."""


NETWORKING_OFF: Final = Unknown.NETWORKING_OFF
UNREAD: Final = Unknown.UNREAD

Cities: TypeAlias = "frozenset[str] | Literal[Unknown.NETWORKING_OFF, Unknown.UNREAD]"
Reviews: TypeAlias = "Mapping[str, Review] | Literal[Unknown.NETWORKING_OFF]"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known on the plane of the request; whatever has no review counts as failed.

    `data_reviews` is by token, as `Secret/db`; None where referenced data is not delivered, so that
    rules 70–79 do not apply.
    """

    project: str
    cities: Cities = UNREAD
    reviews: Reviews = field(default_factory=dict[str, Review])
    data_reviews: Mapping[str, Review] | None = None


@dataclass(frozen=True, slots=True)
class CannotDecide:
    """Neither admitted nor refused: the request must be tried again, or names no project."""

    message: str
    code: int = SERVER_ERROR


def derive_unavailable(project: str) -> CannotDecide:
    """The project is not engaged on this replica, or its Locations cannot be read."""
    return CannotDecide(f"project {quote(project)} is not available for admission yet, try again")


def derive_unreviewed(reference: str) -> CannotDecide:
    """The right to read a ConfigMap or Secret, given as token, could not be checked."""
    return CannotDecide(f"your right to read {quote(reference)} could not be checked, try again")


def derive_city_codes(locations: Iterable[Document]) -> frozenset[str]:
    """The city codes that a plane's Locations serve, as far as they can be a label value."""
    codes = (
        root(location).section("spec").section("topology").text(TOPOLOGY_CITY_CODE)
        for location in locations
    )
    return frozenset(code for code in codes if is_routable_city(code))
