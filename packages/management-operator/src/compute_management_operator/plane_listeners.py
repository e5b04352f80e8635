"""A listener that forgets a plane when it is disengaged, for controllers with memory per plane.

Without it the memory of a deleted project would be kept, and used for a recreated one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import override

from compute_operator_kit.core.keys import PlaneName
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import PlaneListener


@dataclass(frozen=True, slots=True)
class ForgetPlanes(PlaneListener):
    """Calls `forget` with the name of each plane that is disengaged."""

    forget: Callable[[PlaneName], None]

    @override
    def disengaged(self, plane: Plane) -> None:
        self.forget(plane.name)
