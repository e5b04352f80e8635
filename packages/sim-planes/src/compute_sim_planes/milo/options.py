"""Options of a simulated Milo, which a test may change at any time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class MiloOptions:
    """Delays and deviations; the defaults are what was observed."""

    evaluation_delay: timedelta = timedelta(milliseconds=100)
    """From a claim's creation to its evaluation; a real Milo takes 60–160 ms."""

    ready_delay: timedelta = timedelta(milliseconds=200)
    """From a Project's creation to Ready; a real Milo takes 0.2 to 5 s."""

    skips_after_denial: bool = False
    """Requests of a claim after a denied one get no allocation: in a real Milo a race decides."""

    reaper: bool = False
    """As in Milo up to v0.24.11: a granted claim without owner references is deleted."""

    reaper_delay: timedelta = timedelta(seconds=45)
    """The delay after the grant; in a real Milo 30–60 s."""

    _is_paused: bool = field(default=False, init=False)
    _deferred: list[Callable[[], None]] = field(
        default_factory=list[Callable[[], None]], init=False
    )

    def pause(self) -> None:
        """Stop evaluating claims, as if the controller were down or late."""
        self._is_paused = True

    def resume(self) -> None:
        """Resume evaluation, with the deferred claims in their order."""
        self._is_paused = False
        deferred, self._deferred = self._deferred, []
        for callback in deferred:
            callback()

    def defer_if_paused(self, callback: Callable[[], None]) -> bool:
        """Whether evaluation is paused; if so, `callback` is called on `resume`."""
        if self._is_paused:
            self._deferred.append(callback)
        return self._is_paused
