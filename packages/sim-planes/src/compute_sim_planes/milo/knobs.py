"""What a test may turn on a simulated Milo, at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class Knobs:
    """Each says what Milo does differently; the defaults are what was observed."""

    evaluation_delay: timedelta = timedelta(milliseconds=100)
    """From a claim's creation to its evaluation; a real Milo takes 60–160 ms."""

    ready_delay: timedelta = timedelta(milliseconds=200)
    """From a Project's creation to Ready; a real Milo takes 0.2 to 5 s."""

    skips_after_denial: bool = False
    """Parts of a claim after a denied one get no allocation: in a real Milo a race decides."""

    reaper: bool = False
    """As Milo up to v0.24.11: a granted claim without owner references is deleted."""

    reaper_delay: timedelta = timedelta(seconds=45)
    """How long after its grant; a real one takes 30–60 s."""

    _is_paused: bool = field(default=False, init=False)
    _held: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]], init=False)

    def pause(self) -> None:
        """No claim is evaluated from now on: the controller is down, or behind."""
        self._is_paused = True

    def resume(self) -> None:
        """Evaluation goes on, with all that waited in its order."""
        self._is_paused = False
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def holds(self, go_on: Callable[[], None]) -> bool:
        """Whether evaluation rests; if so `go_on` is called when it does no longer."""
        if self._is_paused:
            self._held.append(go_on)
        return self._is_paused
