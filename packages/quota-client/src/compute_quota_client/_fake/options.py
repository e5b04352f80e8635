"""The options of a fake Milo, which a test may change at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal


def _wall_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Knobs:
    """Options of the fake; a test may set any of them at any time."""

    paused: bool = False
    """Claims are evaluated by `FakeQuota.evaluate` only."""

    evaluation_delay: timedelta = timedelta(milliseconds=100)
    """How long a claim waits for its evaluation. A real Milo takes 60–160 ms."""

    latency: timedelta = timedelta(0)
    """How long every answer takes; the client times out where that is longer than it waits."""

    away: set[str] = field(default_factory=set[str])
    """Projects with a plane that cannot be reached."""

    suspended: set[str] = field(default_factory=set[str])
    """Projects that refuse every new claim and every change of one, as Milo does."""

    silent_watches: bool = False
    """Watches are accepted and send no event, not even bookmarks."""

    bookmark_every: timedelta = timedelta(seconds=60)
    """How often a watch that allows bookmarks gets one."""

    expired_at_start: Literal["status", "event"] = "status"
    """How a watch from an expired version is refused: by its status, or inside the stream."""

    reaper: bool = False
    """As Milo up to v0.24.11: a granted claim without owner references is deleted."""

    reaper_delay: timedelta = timedelta(seconds=45)
    """How long after its grant; a real one takes 30–60 s."""

    now: Callable[[], datetime] = _wall_clock
    """The wall clock that timestamps are taken from."""

    def read_clock(self) -> datetime:
        """The time now; a method, since a test may replace `now`."""
        return self.now()
