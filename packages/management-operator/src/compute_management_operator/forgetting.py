"""Tells a controller that a plane is gone for good, so that nothing is remembered of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compute_operator_kit.cache import Change
from compute_operator_kit.keys import Kind, PlaneName, Role
from compute_operator_kit.parts import ignore_change
from compute_operator_kit.planes import Plane


@dataclass(frozen=True, slots=True)
class ForgetPlanes:
    """A listener that wants to know one thing."""

    forget: Callable[[PlaneName], None]

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:  # noqa: ARG002
        return ignore_change

    def synced(self, plane: Plane, kind: Kind) -> None:
        pass

    def recovered(self, plane: Plane) -> None:
        pass

    def disengaged(self, plane: Plane) -> None:
        self.forget(plane.name)
