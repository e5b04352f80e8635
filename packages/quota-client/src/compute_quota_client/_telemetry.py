"""Where a caller may learn what the library does, without the library depending on any telemetry.

A hook, not a dependency: the library needs httpx and pydantic only (docs/spec/quota.md A1). An
operator hands in an object that feeds its own metrics. Labels are bounded: operations and outcomes
are closed vocabularies, and no hook is told a project's name, since tenants must not grow series.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import timedelta

    from compute_quota_client._exceptions import Operation


class Outcome(StrEnum):
    """How one request ended."""

    ANSWERED = "answered"
    THROTTLED = "throttled"
    FAILED = "failed"
    GIVEN_UP = "given-up"


class Telemetry(Protocol):
    """Told about every request and every change of state. Must return at once and never raise."""

    def request_ended(self, operation: Operation, outcome: Outcome, took: timedelta) -> None:
        """One request ended, whichever way."""
        ...

    def circuit_moved(self, *, is_open: bool) -> None:
        """The circuit of some project opened or closed."""
        ...

    def watches_running(self, count: int) -> None:
        """So many tracker watches run now."""
        ...


class NoTelemetry:
    """Listens to nothing."""

    def request_ended(self, operation: Operation, outcome: Outcome, took: timedelta) -> None:
        """Does nothing."""

    def circuit_moved(self, *, is_open: bool) -> None:
        """Does nothing."""

    def watches_running(self, count: int) -> None:
        """Does nothing."""
