"""Whether a project plane may be asked at all; pure, the clock is an argument.

    closed ──5 failed requests in a row──▶ open ──its time comes──▶ one probe ──succeeds──▶ closed
                                            ▲                          │
                                            └──fails: twice the wait───┘

One per project, so that a project plane that is away costs its own callers nothing but an error at
once, and nobody else anything. A 429 is neither failure nor success: the plane answered, but says
nothing about its health.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final

from compute_quota_client._retry import Chance, spread_delay

FAILURES_TO_OPEN: Final = 5
_BEGINNING: Final = timedelta(0)


class Admission(Enum):
    """Leave to send one request; how it ended is told to the circuit together with it."""

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
        """Leave to send a request now, or None."""
        if not self.is_open:
            return Admission.ORDINARY
        if self._probing or now < self._probe_at:
            return None
        self._probing = True
        return Admission.PROBE

    def record_success(self) -> None:
        """The plane answered, to whichever request."""
        self._failures = 0
        self._probes_failed = 0
        self._probing = False

    def record_failure(self, admission: Admission, now: timedelta) -> None:
        """The plane did not answer, or with 5xx."""
        if admission is Admission.PROBE:
            self._probing = False
            self._probes_failed += 1
        elif self.is_open:
            # One of many that were under way when it opened: it says nothing that is not known.
            return
        self._failures += 1
        if self.is_open:
            self._probe_at = now + spread_delay(self._probes_failed, self._chance)

    def record_nothing(self, admission: Admission) -> None:
        """The request ended without saying anything about the plane: 429, given up, no connection
        free.
        """
        if admission is Admission.PROBE:
            self._probing = False
