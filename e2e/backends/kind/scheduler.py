"""Opens the scheduler of a session on kind clusters."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.backends.kind.commands import MachineFacts, check_machine
from e2e.backends.kind.environment import KindBackend, KindEnvironment
from e2e.backends.real.scheduler import PlannedScenario, RealScheduler


def open_scheduler(planned: Iterable[PlannedScenario]) -> RealScheduler:
    """The clusters with images and Karmada, and a scheduler on them; the caller closes both."""
    check_machine(MachineFacts.detect())
    environment = KindEnvironment()
    environment.open()
    known = {one.name: one for one in planned}
    scheduler = RealScheduler(environment, known, KindBackend, is_rest_awaited=False)
    scheduler.open()
    return scheduler
