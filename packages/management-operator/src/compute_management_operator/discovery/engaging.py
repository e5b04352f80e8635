"""How engaging goes: the time it takes, and how many planes are at work; for dashboards only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from compute_operator_kit.cache import Change
from compute_operator_kit.clock import ZERO, Clock
from compute_operator_kit.keys import Kind, PlaneName, Role
from compute_operator_kit.measures import Measures
from compute_operator_kit.parts import ignore_change
from compute_operator_kit.planes import Plane
from compute_operator_kit.reach import Reach

ENGAGED: Final = "compute_projects_engaged"
FAILING: Final = "compute_projects_failing"
ENGAGE_SECONDS: Final = "compute_project_engage_seconds"
LATE_AFTER: Final = timedelta(seconds=30)  # management.md 9: what one engagement may take


class Engaging:
    """Follows planes of projects from the decision to engage them to their first whole view."""

    def __init__(
        self, reach: Reach, clock: Clock, measures: Measures, wanted: Callable[[], frozenset[str]]
    ) -> None:
        """`wanted` names the projects that ought to be engaged now."""
        self._reach = reach
        self._clock = clock
        self._measures = measures
        self._wanted = wanted
        self._began: dict[PlaneName, timedelta] = {}  # those that are not whole yet
        self._late: set[PlaneName] = set()

    def begin(self, plane: PlaneName) -> None:
        self._began[plane] = self._clock.monotonic()

    def look(self, plane: PlaneName) -> timedelta | None:
        """When to look again at one that is not whole yet; past its time it has failed, which is
        told once, and goes on trying.
        """
        began = self._began.get(plane)
        if began is None or plane in self._late:
            return None
        left = began + LATE_AFTER - self._clock.monotonic()
        if left > ZERO:
            return left
        self._late.add(plane)
        self._measures.observe(ENGAGE_SECONDS, LATE_AFTER.total_seconds(), outcome="timeout")
        return None

    def report(self) -> None:
        found = self._reach.planes.engaged(Role.PROJECT)
        whole = frozenset(engaged.plane.name for engaged in found if engaged.is_synced)
        self._measures.gauge(ENGAGED, len(whole))
        self._measures.gauge(FAILING, len(self._wanted() - whole))

    # what planes tell ----------------------------------------------------------------------------

    def teller(self, role: Role, kind: Kind) -> Callable[[Change], None]:  # noqa: ARG002
        return ignore_change

    def synced(self, plane: Plane, kind: Kind) -> None:  # noqa: ARG002
        engaged = self._reach.planes.find(plane.name)
        if plane.name in self._began and engaged is not None and engaged.is_synced:
            took = self._clock.monotonic() - self._began.pop(plane.name)
            self._late.discard(plane.name)
            self._measures.observe(ENGAGE_SECONDS, took.total_seconds(), outcome="engaged")

    def recovered(self, plane: Plane) -> None:
        pass

    def disengaged(self, plane: Plane) -> None:
        self._began.pop(plane.name, None)
        self._late.discard(plane.name)
