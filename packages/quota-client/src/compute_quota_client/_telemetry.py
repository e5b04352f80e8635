"""The telemetry hook of a client: requests, circuits and watches.

A protocol, so that the library depends on no telemetry library (docs/spec/quota.md A1); an operator
passes an object that feeds its own metrics. Operations and outcomes are closed sets, and no hook
gets a project's name: tenants must not add time series.
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
    """Called for every request and every change of state. Must return at once and never raise."""

    def request_ended(self, operation: Operation, outcome: Outcome, took: timedelta) -> None:
        """One request ended."""
        ...

    def circuit_moved(self, *, is_open: bool) -> None:
        """The circuit of some project opened or closed."""
        ...

    def watches_running(self, count: int) -> None:
        """The number of tracker watches that run now."""
        ...


class NoTelemetry:
    """The default: records nothing."""

    def request_ended(self, operation: Operation, outcome: Outcome, took: timedelta) -> None:
        """Does nothing."""

    def circuit_moved(self, *, is_open: bool) -> None:
        """Does nothing."""

    def watches_running(self, count: int) -> None:
        """Does nothing."""
