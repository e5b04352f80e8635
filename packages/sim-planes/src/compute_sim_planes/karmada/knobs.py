"""What a test may turn on a simulated Karmada, at any time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(slots=True)
class Knobs:
    """How long things take. The defaults are those of Karmada's own flags."""

    hop: timedelta = timedelta(milliseconds=10)
    """From a change to the look of a controller: an object passes six of them on its way down."""

    retry_first: timedelta = timedelta(milliseconds=5)
    """The first wait after a failure; each further one is twice as long."""

    retry_longest: timedelta = timedelta(seconds=1000)
    """Where doubling ends (`--rate-limiter-max-delay`)."""

    discovery_interval: timedelta = timedelta(seconds=30)
    """How often the detector looks for new kinds."""

    health_interval: timedelta = timedelta(seconds=10)
    """How often a member is probed (`--cluster-status-update-frequency`)."""

    ready_after: timedelta = timedelta(seconds=30)
    """How long a member must answer again to be Ready (`--cluster-success-threshold`)."""

    away_after: timedelta = timedelta(seconds=30)
    """How long it must not, to be not Ready (`--cluster-failure-threshold`)."""

    cleanup_interval: timedelta = timedelta(seconds=10)
    """How often an un-join looks whether all is gone; no flag has it."""

    member_timeout: timedelta = timedelta(seconds=32)
    """How long a member that says nothing is waited for."""

    writes_events: bool = True
    """Whether Events are written; without them a run of thousands of objects is quicker."""


def knobs_of_real_planes() -> Knobs:
    """Rates as the real planes are started with (`docs/spec/neighbours.md` 4.3)."""
    two_seconds = timedelta(seconds=2)
    return Knobs(
        retry_longest=timedelta(seconds=10),
        health_interval=two_seconds,
        ready_after=two_seconds,
        away_after=two_seconds,
    )
