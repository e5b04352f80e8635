"""The circuit breaker of one project plane; pure, the clock is an argument.

    closed ──5 failed requests in a row──▶ open ──its time comes──▶ one probe ──succeeds──▶ closed
                                            ▲                          │
                                            └──fails: twice the wait───┘

One per project, so that callers of an unavailable plane get an error at once instead of a timeout,
and callers of other projects are not affected. A 429 is neither failure nor success: it is no sign
of the plane's health.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final

from compute_quota_client._retry import Chance, spread_delay

FAILURES_TO_OPEN: Final = 5
_BEGINNING: Final = timedelta(0)


class Admission(Enum):
    """Permission to send one request; it is passed to `record_…` with the result."""

    ORDINARY = "ordinary"
    PROBE = "probe"


class Circuit:
    """Counts failed requests in a row; `now` is a reading of a monotonic clock."""

    __slots__ = ("_chance", "_failures", "_probe_at", "_probes_failed", "_probing")

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._failures = 0
        self._probes_failed = 0
        self._probe_at = _BEGINNING
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether requests are refused, but for probes."""
        return self._failures >= FAILURES_TO_OPEN

    def admit(self, now: timedelta) -> Admission | None:
        """Permission to send a request now, or None."""
        if not self.is_open:
            return Admission.ORDINARY
        if self._probing or now < self._probe_at:
            return None
        self._probing = True
        return Admission.PROBE

    def record_success(self) -> None:
        """The plane answered a request."""
        self._failures = 0
        self._probes_failed = 0
        self._probing = False

    def record_failure(self, admission: Admission, now: timedelta) -> None:
        """The plane did not answer, or with 5xx."""
        if admission is Admission.PROBE:
            self._probing = False
            self._probes_failed += 1
        elif self.is_open:
            # One of many requests in flight when the circuit opened: it adds nothing.
            return
        self._failures += 1
        if self.is_open:
            self._probe_at = now + spread_delay(self._probes_failed, self._chance)

    def record_nothing(self, admission: Admission) -> None:
        """The request ended without a sign of the plane's health: 429, cancelled, no connection."""
        if admission is Admission.PROBE:
            self._probing = False
