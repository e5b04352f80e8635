"""State per project: a circuit breaker and a pause each, for at most 1,024 projects.

A process may use any number of projects, which must not fill its memory. State that was not used
for ten minutes is dropped, the least recently used first; state in use is never dropped.
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
    """Health of one project plane; times are readings of the loop's clock."""

    circuit: Circuit
    not_before: timedelta = timedelta(0)
    paused_by: int | None = None
    last_used: timedelta = timedelta(0)
    users: int = 0

    def pause_for(self, pause: timedelta, status: int) -> None:
        """Sends nothing to this project before `pause` is over; a longer present pause stays."""
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
        """The state of `project`, which is not dropped inside the `with` block."""
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
