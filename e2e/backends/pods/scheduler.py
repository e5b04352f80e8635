"""Opens the scheduler of a session on pods."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.backends.pods.backend import PodBackend
from e2e.backends.pods.environment import PodEnvironment
from e2e.backends.real.scheduler import PlannedScenario, RealScheduler


def open_scheduler(planned: Iterable[PlannedScenario]) -> RealScheduler:
    """The stack with nodes and images, and a scheduler on it; the caller closes both.

    The three minutes without writes (O3) are checked with operators as processes only; E-10 covers
    them with pods.
    """
    environment = PodEnvironment()
    environment.open()
    known = {one.name: one for one in planned}
    scheduler = RealScheduler(environment, known, PodBackend, is_rest_awaited=False)
    scheduler.open()
    return scheduler
