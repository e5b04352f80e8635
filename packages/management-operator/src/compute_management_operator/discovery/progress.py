"""Metrics of engagement: the time it takes, and how many planes are engaged or failing.

Without them an operator that cannot list one project looks healthy. Nothing is decided by them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from typing_extensions import override

from compute_management_operator.discovery.delays import ENGAGE_LATE_AFTER
from compute_operator_kit.controller.context import OperatorContext
from compute_operator_kit.core.clock import ZERO, Clock
from compute_operator_kit.core.keys import Kind, PlaneName, Role
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.planes.engaged_plane import Plane
from compute_operator_kit.planes.registry import PlaneListener

ENGAGED: Final = "compute_projects_engaged"
FAILING: Final = "compute_projects_failing"
ENGAGE_SECONDS: Final = "compute_project_engage_seconds"


class EngageProgress(PlaneListener):
    """Planes of projects from the decision to engage them to their first complete caches."""

    def __init__(
        self,
        context: OperatorContext,
        clock: Clock,
        measures: MetricsPort,
        desired: Callable[[], frozenset[str]],
    ) -> None:
        """`desired` returns the projects that should be engaged now."""
        self._context = context
        self._clock = clock
        self._measures = measures
        self._desired = desired
        self._began: dict[PlaneName, timedelta] = {}  # planes without complete caches
        self._late: set[PlaneName] = set()

    def begin(self, plane: PlaneName) -> None:
        self._began[plane] = self._clock.monotonic()

    def check(self, plane: PlaneName) -> timedelta | None:
        """The time left until a plane without complete caches is late; a late one is counted once,
        and its lists are still retried.
        """
        began = self._began.get(plane)
        if began is None or plane in self._late:
            return None
        left = began + ENGAGE_LATE_AFTER - self._clock.monotonic()
        if left > ZERO:
            return left
        self._late.add(plane)
        seconds = ENGAGE_LATE_AFTER.total_seconds()
        self._measures.observe(ENGAGE_SECONDS, seconds, outcome="timeout")
        return None

    def update_gauges(self) -> None:
        planes = self._context.planes.engaged(Role.PROJECT)
        synced = frozenset(engaged.plane.name for engaged in planes if engaged.is_synced)
        self._measures.gauge(ENGAGED, len(synced))
        self._measures.gauge(FAILING, len(self._desired() - synced))

    # --- listener of planes ---------------------------------------------------------------------

    @override
    def synced(self, plane: Plane, kind: Kind) -> None:
        engaged = self._context.planes.find(plane.name)
        if plane.name in self._began and engaged is not None and engaged.is_synced:
            took = self._clock.monotonic() - self._began.pop(plane.name)
            self._late.discard(plane.name)
            self._measures.observe(ENGAGE_SECONDS, took.total_seconds(), outcome="engaged")

    @override
    def disengaged(self, plane: Plane) -> None:
        self._began.pop(plane.name, None)
        self._late.discard(plane.name)
