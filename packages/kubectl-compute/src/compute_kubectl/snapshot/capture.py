"""Documents as the planes served them, per plane and kind, before they are decoded.

The form in which a snapshot is saved and loaded again: a decoded snapshot has lost every field that
this release does not know, and a later one may explain more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from compute_api_types.wire import JsonObject
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.planes import Role


@dataclass(frozen=True, slots=True)
class Reading:
    """The documents of one kind, and how the read ended."""

    access: Access = Access.NOT_ASKED
    items: tuple[JsonObject, ...] = ()
    at: datetime | None = None
    detail: str = ""
    is_partial: bool = False


NOT_ASKED = Reading()


@dataclass(frozen=True, slots=True)
class CapturedPlane:
    """The readings of one plane by the plural name of the kind."""

    name: str
    role: Role
    access: Access = Access.NOT_ASKED
    detail: str = ""
    at: datetime | None = None
    skew: timedelta | None = None
    readings: Mapping[str, Reading] = field(default_factory=dict[str, Reading])

    def reading(self, plural: str) -> Reading:
        return self.readings.get(plural, NOT_ASKED)


@dataclass(frozen=True, slots=True)
class Capture:
    """Everything that was read for one question."""

    namespace: str
    at: datetime
    planes: tuple[CapturedPlane, ...] = ()

    def of(self, role: Role) -> tuple[CapturedPlane, ...]:
        return tuple(plane for plane in self.planes if plane.role is role)
