"""What is remembered about projects: a circuit and a pause each, for at most 1,024 of them.

A process may touch any number of projects over its life. State that nobody used for ten minutes is
dropped, the least recently used first, and what is in use is never dropped under its user.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from compute_quota_client._circuit import Circuit
from compute_quota_client._clock import loop_now

if TYPE_CHECKING:
    from collections.abc import Generator

    from compute_quota_client._retry import Chance

MAX_PROJECTS: Final = 1024
KEPT_UNUSED: Final = timedelta(minutes=10)


@dataclass(slots=True, eq=False)
class ProjectState:
    """One project's health as this process sees it; times are readings of the loop's clock."""

    circuit: Circuit
    not_before: timedelta = timedelta(0)
    paused_by: int | None = None
    last_used: timedelta = timedelta(0)
    users: int = 0

    def pause_for(self, pause: timedelta, status: int) -> None:
        """Nothing is sent to this project before `pause` is over; a longer one that runs already
        stays.
        """
        if loop_now() + pause > self.not_before:
            self.not_before = loop_now() + pause
            self.paused_by = status


class ProjectStates:
    """The states by project: those in use, and the others in the order they were used last."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._in_use: dict[str, ProjectState] = {}
        self._unused: OrderedDict[str, ProjectState] = OrderedDict()

    def __len__(self) -> int:
        return len(self._in_use) + len(self._unused)

    @contextmanager
    def using(self, project: str) -> Generator[ProjectState, None, None]:
        """The state of `project`, held for as long as it is used."""
        state = self._in_use.get(project) or self._unused.pop(project, None)
        state = self._in_use[project] = state or ProjectState(Circuit(self._chance))
        state.users += 1
        try:
            yield state
        finally:
            state.users -= 1
            if state.users == 0:
                state.last_used = loop_now()
                self._unused[project] = self._in_use.pop(project)
                self._drop_unused(state.last_used)

    def _drop_unused(self, now: timedelta) -> None:
        while self._unused:
            oldest = next(iter(self._unused.values()))
            if len(self) <= MAX_PROJECTS and now - oldest.last_used < KEPT_UNUSED:
                return
            self._unused.popitem(last=False)
